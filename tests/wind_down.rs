//! Ending an epoch early without losing what was begun, and waiting for the device.

use std::sync::Arc;
use std::time::Duration;

use gpufeed::backend::host::{Faults, HostBackend};
use gpufeed::{DeviceError, LoadError, Loader, LoaderOptions, SampleLayout, SyntheticSource};

fn loader(backend: &HostBackend, samples: u64) -> Loader<HostBackend> {
    let source = SyntheticSource::new(SampleLayout::bytes(&[64]).expect("a layout"), samples);
    let options = LoaderOptions { batch_size: 4, slots: 3, outputs: 2, workers: 2, ..LoaderOptions::default() };
    Loader::new(backend, Arc::new(source), options).expect("a loader")
}

#[test]
fn an_epoch_wound_down_delivers_what_was_begun_and_no_more() {
    let backend = HostBackend::with_faults(Faults { delay: Duration::from_millis(2), ..Faults::default() });
    let mut loader = loader(&backend, 4000);
    for number in 0..3 {
        let mut epoch = loader.epoch(number);
        for expected in 0..5 {
            assert_eq!(epoch.next().expect("a batch").expect("no error").number(), expected);
        }
        epoch.wind_down();
        let left = epoch.remaining();
        // What can be begun is bounded by the slots and what is ready by the outputs.
        assert!(left <= 5, "{left} batches were begun ahead");
        let numbers: Vec<u64> = epoch.map(|batch| batch.expect("no error").number()).collect();
        assert_eq!(numbers, (5..5 + left).collect::<Vec<_>>());
        loader.wait_idle().expect("nothing is lost");
    }
    let whole: Vec<u64> = loader.epoch(9).map(|batch| batch.expect("no error").number()).collect();
    assert_eq!(whole.len(), 1000, "an epoch after it is whole");
}

#[test]
fn winding_down_at_either_end_of_an_epoch_is_harmless() {
    let mut loader = loader(&HostBackend::new(), 40);
    let mut epoch = loader.epoch(0);
    epoch.wind_down();
    let begun = epoch.remaining();
    assert_eq!(epoch.count() as u64, begun);
    let mut epoch = loader.epoch(1);
    assert_eq!(epoch.by_ref().count(), 10);
    epoch.wind_down();
    assert!(epoch.next().is_none());
    drop(epoch);
    assert_eq!(loader.epoch(2).count(), 10);
}

#[test]
fn after_a_loss_winding_down_still_ends_in_the_error() {
    let backend = HostBackend::new();
    let mut loader = loader(&backend, 4000);
    let mut epoch = loader.epoch(0);
    drop(epoch.next());
    backend.lose("pulled out");
    let mut lost = false;
    for _ in 0..20 {
        epoch.wind_down();
        match epoch.next() {
            Some(Err(LoadError::Device { source: DeviceError::Lost { .. }, .. })) => lost = true,
            Some(_) => {}
            None => break,
        }
    }
    drop(epoch);
    // Whether a batch or only the wait met the loss depends on how far the pump had come.
    let idle = loader.wait_idle();
    assert!(lost || idle.is_ok() || matches!(idle, Err(LoadError::Device { .. })));
    assert!(matches!(loader.epoch(1).next(), Some(Err(LoadError::Device { .. }))));
}
