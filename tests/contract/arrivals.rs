//! Devices that copy on a queue of their own: a batch is delivered when it has arrived, and nothing before it.

use std::sync::Arc;
use std::time::Duration;

use gpufeed::backend::host::{Faults, HostBackend, Moments, Release};
use gpufeed::{LoadError, Loader, LoaderOptions, SampleLayout, Strategy, SyntheticSource};

use crate::device::{host, run};

fn host_that_copies_beside(release: &Arc<Release>) -> HostBackend {
    let moments = Moments::Released(Arc::clone(release));
    HostBackend::with_faults(Faults { moments, copies_beside: true, ..Faults::default() })
}

fn loader(backend: &HostBackend, refused: bool) -> Loader<HostBackend> {
    let layout = SampleLayout::bytes(&[8]).expect("a layout");
    let source = Arc::new(SyntheticSource::blank(layout, 40));
    let outputs = if refused { 3 } else { 2 };
    let options = LoaderOptions { batch_size: 4, slots: 2, outputs, ..LoaderOptions::default() };
    Loader::new(backend, source, options).expect("the loader opens")
}

/// Whoever waits this long in vain has not got what would have been there at once.
const IN_VAIN: Duration = Duration::from_millis(30);

#[test]
fn a_batch_is_delivered_when_its_copy_has_ended_and_not_before() {
    run("arrivals", host, Strategy::Memcpy, |_| {
        let release = Arc::new(Release::default());
        let mut loader = loader(&host_that_copies_beside(&release), false);
        let mut epoch = loader.epoch(0);
        for number in 0..10 {
            let early = epoch.next_timeout(IN_VAIN).expect("the epoch is not over");
            assert!(matches!(early, Err(LoadError::TimedOut(_))), "batch {number} has not arrived");
            release.end_copy();
            // Its kernel is still to come: the application's queue orders that.
            let batch = epoch.try_next().expect("the epoch is not over").expect("it has arrived");
            assert_eq!((batch.number(), batch.is_ready().expect("the device is there")), (number, false));
            release.end_kernel();
            batch.wait().expect("it is written");
        }
        assert!(epoch.try_next().is_none());
        drop(epoch);
        release.end_all();
    });
}

#[test]
fn an_error_does_not_overtake_a_batch_that_is_on_its_way() {
    run("errors in order", host, Strategy::Memcpy, |_| {
        let release = Arc::new(Release::default());
        let moments = Moments::Released(Arc::clone(&release));
        let faults = Faults { moments, copies_beside: true, refuse_submission: Some(1), ..Faults::default() };
        let mut loader = loader(&HostBackend::with_faults(faults), true);
        let mut epoch = loader.epoch(0);
        let early = epoch.next_timeout(IN_VAIN).expect("the epoch is not over");
        assert!(matches!(early, Err(LoadError::TimedOut(_))));
        release.end_all();
        assert_eq!(epoch.try_next().expect("a batch").expect("it arrives").number(), 0);
        let refused = epoch.try_next().expect("the refused one");
        assert!(matches!(refused, Err(LoadError::Device { batch: 1, .. })));
        let rest = std::iter::from_fn(|| epoch.try_next()).map(|batch| batch.expect("it arrives").number());
        assert_eq!(rest.collect::<Vec<_>>(), (2..10).collect::<Vec<_>>());
    });
}

#[test]
fn a_loss_ends_the_wait_for_what_will_not_arrive() {
    run("a loss", host, Strategy::Memcpy, |_| {
        let backend = host_that_copies_beside(&Arc::default());
        let mut loader = loader(&backend, false);
        let mut epoch = loader.epoch(0);
        assert!(epoch.next_timeout(IN_VAIN).expect("the epoch is not over").is_err());
        backend.lose("the test loses it");
        // What was submitted is delivered, as without a second queue, and then the loss.
        let held: Vec<_> = std::iter::from_fn(|| epoch.try_next()).take_while(Result::is_ok).flatten().collect();
        assert!(held.iter().all(|batch| batch.read().is_err()));
        assert!(matches!(epoch.try_next(), None | Some(Err(_))));
    });
}
