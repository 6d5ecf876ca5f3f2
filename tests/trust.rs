//! Waits, limits and counts where two things happen at once: on the host backend, whose device can be told to be slow or to hang.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread::sleep;
use std::time::Duration;

use gpufeed::backend::host::{Faults, HostBackend};
use gpufeed::{
    BadSamples, Batch, Epoch, LoadError, Loader, LoaderOptions, SampleContext, SampleLayout, SampleWriter, Source,
    SourceError, Tolerance,
};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Calls `at` before each sample, which is of forty bytes of its index.
struct Scripted<F> {
    len: u64,
    at: F,
}

impl<F: Fn(u64) -> Result<(), SourceError> + Send + Sync> Source for Scripted<F> {
    fn layout(&self) -> SampleLayout {
        SampleLayout::bytes(&[40]).expect("a layout")
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        (self.at)(sample.index)?;
        Ok(out.write(&[sample.index as u8; 40])?)
    }
}

fn loader(
    backend: &HostBackend,
    len: u64,
    options: LoaderOptions,
    at: impl Fn(u64) -> Result<(), SourceError> + Send + Sync + 'static,
) -> Loader<HostBackend> {
    Loader::new(backend, Arc::new(Scripted { len, at }), options).expect("a loader")
}

fn options() -> LoaderOptions {
    LoaderOptions { batch_size: 4, workers: 1, shutdown_timeout: MS(50), ..LoaderOptions::default() }
}

/// A flag, and what holds a sample back until it is set.
fn gate() -> (Arc<AtomicBool>, impl Fn() + Send + Sync) {
    let open = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&open);
    (open, move || {
        while !seen.load(Ordering::Relaxed) {
            sleep(MS(1));
        }
    })
}

fn hanging() -> HostBackend {
    HostBackend::with_faults(Faults { delay: Duration::from_secs(3600), ..Faults::default() })
}

/// Looks at a future once, as an executor does that then has other things to do.
fn poll<R>(future: std::pin::Pin<&mut impl Future<Output = R>>) -> Poll<R> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn who_looks_again_and_again_is_told_of_a_stall_too() {
    let (open, wait) = gate();
    let options = LoaderOptions { stall_timeout: Some(MS(200)), ..options() };
    let mut loader = loader(&HostBackend::new(), 12, options, move |index| {
        if index == 5 {
            wait();
        }
        Ok(())
    });
    let mut epoch = loader.epoch(0);
    let mut looks = std::iter::from_fn(|| epoch.next_timeout(MS(20)));
    let stall = looks.find_map(|batch| match batch {
        Ok(_) | Err(LoadError::TimedOut(_)) => None,
        Err(error) => Some(error),
    });
    assert!(matches!(stall, Some(LoadError::Stalled(_))), "{stall:?}");
    open.store(true, Ordering::Relaxed);
}

#[test]
fn a_future_that_is_not_looked_at_is_no_stall() {
    let (open, wait) = gate();
    let options = LoaderOptions { stall_timeout: Some(MS(100)), ..options() };
    let mut loader = loader(&HostBackend::new(), 40, options, move |_| {
        wait();
        Ok(())
    });
    let mut epoch = loader.epoch(0);
    let mut numbers = Vec::new();
    {
        let mut next = pin!(epoch.next_async());
        assert!(poll(next.as_mut()).is_pending());
        open.store(true, Ordering::Relaxed);
        sleep(MS(700));
        let Poll::Ready(Some(batch)) = poll(next.as_mut()) else { panic!("it is there") };
        numbers.push(batch.expect("the batch").number());
    }
    // Nothing but batches is in the channel: nobody has waited in vain.
    numbers.extend(epoch.map(|batch| batch.expect("a batch").number()));
    assert!(numbers.into_iter().eq(0..10));
}

#[test]
fn holding_all_is_an_error_behind_what_is_out_of_date_too() {
    let (open, wait) = gate();
    let options = LoaderOptions { outputs: 1, stall_timeout: Some(MS(300)), ..options() };
    let mut loader = loader(&HostBackend::new(), 40, options, move |index| {
        if index == 4 {
            wait();
        }
        Ok(())
    });
    let mut epoch = loader.epoch(0);
    let held = epoch.next().expect("the first").expect("a batch");
    // Of no epoch that is to come.
    let canceller = epoch.canceller();
    drop(epoch);
    open.store(true, Ordering::Relaxed);
    assert!(!canceller.is_cancelled());
    for number in 1..4 {
        assert!(matches!(loader.epoch(number).next(), Some(Err(LoadError::AllTensorsLeased { outputs: 1 }))));
    }
    drop(held);
    assert_eq!(loader.epoch(5).filter(Result::is_ok).count(), 10);
}

#[test]
fn an_iterator_ends_with_an_error_that_it_would_repeat() {
    let options = LoaderOptions { outputs: 2, ..options() };
    let mut loader = loader(&HostBackend::new(), 40, options, |_| Ok(()));
    let leased = |batch: &Result<Batch<HostBackend>, LoadError>| {
        matches!(batch, Err(LoadError::AllTensorsLeased { outputs: 2 }))
    };
    // Bounded, so that the test fails instead of taking all memory.
    let mut epoch = loader.epoch(0);
    let all: Vec<_> = epoch.by_ref().take(5).collect();
    assert_eq!((all.len(), all[..2].iter().filter(|batch| batch.is_ok()).count()), (3, 2), "{all:?}");
    assert!(leased(&all[2]));
    assert!(epoch.next().is_none());
    // Nothing is lost: whoever asks on purpose goes on with the same batch.
    assert!(leased(&epoch.try_next().expect("the epoch is not over")));
    assert!(leased(&epoch.next_timeout(MS(1)).expect("the epoch is not over")));
    drop(all);
    assert_eq!(epoch.try_next().expect("it goes on").expect("a batch").number(), 2);
    drop(epoch);
    assert_eq!(loader.epoch(1).filter_map(Result::ok).count(), 10);
}

#[test]
fn an_iterator_ends_with_a_stall_and_nothing_is_lost() {
    let (open, wait) = gate();
    let options = LoaderOptions { stall_timeout: Some(MS(100)), ..options() };
    let mut loader = loader(&HostBackend::new(), 40, options, move |_| {
        wait();
        Ok(())
    });
    let mut epoch = loader.epoch(0);
    let all: Vec<_> = epoch.by_ref().take(3).collect();
    assert!(matches!(all[..], [Err(LoadError::Stalled(_))]), "{all:?}");
    open.store(true, Ordering::Relaxed);
    assert_eq!(std::iter::from_fn(|| epoch.try_next()).filter_map(Result::ok).count(), 10);
}

#[test]
fn questions_to_a_pump_that_hangs_end() {
    let options = LoaderOptions { slots: 1, stall_timeout: Some(MS(50)), ..options() };
    let mut loader = loader(&hanging(), 40, options, |_| Ok(()));
    let mut epoch = loader.epoch(0);
    assert!(epoch.by_ref().any(|batch| matches!(batch, Err(LoadError::Stalled(_)))));
    let before = epoch.remaining();
    epoch.wind_down();
    assert_eq!(epoch.remaining(), before, "it was not done");
    drop(epoch);
    assert!(matches!(loader.wait_idle(), Err(LoadError::Stalled(_))));
    assert_eq!(loader.memory(), None);
}

#[test]
fn waits_are_counted_whole_however_often_they_end_in_time() {
    let mut loader = loader(&HostBackend::new(), 3, LoaderOptions { batch_size: 1, ..options() }, |_| {
        sleep(MS(60));
        Ok(())
    });
    let mut epoch = loader.epoch(0);
    let looks = std::iter::from_fn(|| epoch.next_timeout(MS(10)));
    assert_eq!(looks.filter(Result::is_ok).count(), 3);
    drop(epoch);
    let stats = loader.stats();
    // Each sample takes longer than a look; at first the wait was at its start.
    assert!(stats.wait.max_us > 20e3 && stats.errors == 0, "{stats:?}");
}

#[test]
fn what_cannot_be_replaced_counts_against_the_limit() {
    for workers in [1, 3] {
        let bad_samples = BadSamples::Substitute(Tolerance::Count(6));
        let options = LoaderOptions { bad_samples, workers, ..options() };
        let mut loader = loader(&HostBackend::new(), 400, options, |_| Err("dead".into()));
        let errors: Vec<LoadError> = loader.epoch(0).filter_map(Result::err).collect();
        let [
            LoadError::Sample { index: 0, batch: 0, .. },
            LoadError::TooManyBadSamples { bad: 7, seen: 8, index: 6, .. },
        ] = errors.as_slice()
        else {
            panic!("{errors:?}")
        };
        let report = loader.bad_samples();
        assert_eq!((report.unreplaced, report.skipped, report.substituted), (7, 0, 0));
        assert!(report.listed.iter().all(|bad| bad.batch_lost && bad.cause == "dead"), "{report:?}");
    }
}

#[test]
fn what_was_given_up_and_resumed_is_listed_once_and_limited_once() {
    let bad = |index: u64| if index % 10 == 5 { Err("bad".into()) } else { Ok(()) };
    let of = |most| LoaderOptions { bad_samples: BadSamples::Skip(Tolerance::Count(most)), ..options() };
    let mut whole = loader(&HostBackend::new(), 40, of(4), bad);
    let mut epoch = whole.epoch(0);
    assert!(epoch.by_ref().take(5).all(|batch| batch.is_ok()));
    // What is prefetched beyond is given up.
    sleep(MS(50));
    let token = epoch.resume_token().expect("in order");
    drop(epoch);
    assert_eq!(whole.resume(&token).expect("the same").filter(Result::is_ok).count(), 5);
    let listed: Vec<u64> = whole.bad_samples().listed.iter().map(|bad| bad.index).collect();
    assert_eq!(listed, [5, 15, 25, 35]);
    let mut other = loader(&HostBackend::new(), 40, of(3), bad);
    let error = other.resume(&token).expect("a limit may change").find_map(Result::err);
    assert!(matches!(error, Some(LoadError::TooManyBadSamples { bad: 4, seen: 36, index: 35, .. })), "{error:?}");
}

#[test]
fn a_rate_is_what_it_says() {
    let options = LoaderOptions { bad_samples: BadSamples::Skip(Tolerance::Rate(0.29)), ..options() };
    let mut loader =
        loader(&HostBackend::new(), 100, options, |index| if index < 29 { Err("bad".into()) } else { Ok(()) });
    assert_eq!(loader.epoch(0).filter_map(Result::err).count(), 0, "29 of 100 are 29%");
}

#[test]
fn a_tensor_that_is_lent_again_before_it_is_written_waits_for_both() {
    let backend = HostBackend::with_faults(Faults { delay: MS(60), ..Faults::default() });
    let options = LoaderOptions { batch_size: 1, slots: 2, outputs: 1, ..options() };
    let mut loader = loader(&backend, 2, options, |index| {
        sleep(MS(30 * index));
        Ok(())
    });
    let mut epoch = loader.epoch(0);
    drop(take(&mut epoch));
    let second = take(&mut epoch);
    while !second.is_ready().expect("no error") {
        sleep(MS(1));
    }
    assert_eq!((second.indices(), second.read().expect("readable")), (&[1][..], vec![1; 40]));
}

fn take(epoch: &mut Epoch<'_, HostBackend>) -> Batch<HostBackend> {
    epoch.next().expect("one is left").expect("a batch")
}
