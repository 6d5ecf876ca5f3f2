//! Epochs that one owns, and epochs that follow each other.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_core::Stream;
use gpufeed::backend::host::{Faults, HostBackend};
use gpufeed::{
    AnyLoader, Backend, Epoch, LoadError, Loader, LoaderOptions, SampleContext, SampleLayout, SampleWriter, Source,
    SourceError, SyntheticSource,
};

fn options() -> LoaderOptions {
    LoaderOptions { batch_size: 4, workers: 2, slots: 3, outputs: 3, ..LoaderOptions::default() }
}

fn loader(samples: u64, options: LoaderOptions) -> Loader<HostBackend> {
    let source = SyntheticSource::new(SampleLayout::bytes(&[16]).expect("a layout"), samples);
    Loader::new(&HostBackend::new(), Arc::new(source), options).expect("a loader")
}

/// Epoch and number of each batch.
fn numbers<B: Backend>(epoch: &mut Epoch<'_, B>) -> Vec<(u64, u64)> {
    epoch.map(|batch| batch.map(|batch| (batch.epoch(), batch.number())).expect("a batch")).collect()
}

fn all(epochs: std::ops::Range<u64>, batches: u64) -> Vec<(u64, u64)> {
    epochs.flat_map(|epoch| (0..batches).map(move |number| (epoch, number))).collect()
}

#[test]
fn an_epoch_that_owns_its_loader_moves_to_a_thread_and_gives_it_back() {
    fn fit<T: Send + 'static>(value: T) -> T {
        value
    }
    struct Application {
        epoch: Epoch<'static, HostBackend>,
    }
    let mut application = fit(Application { epoch: loader(40, options()).into_epoch(0) });
    assert_eq!(application.epoch.next().expect("the first").expect("a batch").number(), 0);
    let thread = std::thread::spawn(move || {
        assert_eq!(numbers(&mut application.epoch).len(), 9);
        assert_eq!((application.epoch.stats().batches, application.epoch.bad_samples().skipped), (10, 0));
        application.epoch.into_loader().expect("it is owned")
    });
    let mut loader = thread.join().expect("no panic");
    assert_eq!(numbers(&mut loader.epoch(1)), all(1..2, 10));
    assert!(loader.epoch(2).into_loader().is_none(), "it is borrowed");
    assert_eq!(numbers(&mut loader.epoch(3)), all(3..4, 10));
}

#[test]
fn a_stream_delivers_what_the_iterator_does_and_ends_as_it_does() {
    let mut stream = pin!(loader(40, options()).into_epochs(0..2).stream());
    let batches = pollster::block_on(async {
        let mut batches = Vec::new();
        while let Some(batch) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            let batch = batch.expect("a batch");
            batches.push((batch.epoch(), batch.number()));
        }
        batches
    });
    assert_eq!(batches, all(0..2, 10));
    // An error that would be repeated is the last item.
    let mut loader = loader(40, LoaderOptions { outputs: 2, ..options() });
    let mut stream = loader.epoch(0).stream();
    let mut next = || pollster::block_on(poll_fn(|context| Pin::new(&mut stream).poll_next(context)));
    let held = [next(), next()];
    assert!(held.iter().all(|batch| matches!(batch, Some(Ok(_)))));
    assert!(matches!(next(), Some(Err(LoadError::AllTensorsLeased { outputs: 2 }))));
    assert!(next().is_none());
}

#[test]
fn epochs_that_follow_each_other_are_each_whole() {
    for ordered in [true, false] {
        for samples in [1u64, 4, 9, 40] {
            let batches = samples.div_ceil(4);
            let mut loader = loader(samples, LoaderOptions { ordered, seed: Some(3), ..options() });
            let mut several = loader.epochs(2..7);
            assert_eq!(several.remaining(), batches * 5);
            let mut got = numbers(&mut several);
            // Within an epoch they may come in any order, and never before an earlier one's.
            assert!(got.is_sorted_by_key(|(epoch, _)| *epoch), "{got:?}");
            got.sort_unstable();
            assert_eq!((got, several.remaining()), (all(2..7, batches), 0));
            drop(several);
            assert_eq!(loader.epochs(3..3).count(), 0);
            assert_eq!(numbers(&mut loader.epoch(1)).len() as u64, batches);
        }
    }
}

/// Reads that count, and wait at the second epoch's first sample until the first epoch is at its end.
#[test]
fn the_next_epoch_is_read_while_the_last_batches_of_one_are_still_to_be_taken() {
    struct Counted(AtomicU64);
    impl Source for Counted {
        fn layout(&self) -> SampleLayout {
            SampleLayout::bytes(&[16]).expect("a layout")
        }
        fn len(&self) -> u64 {
            8
        }
        fn read(&self, _: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(out.write(&[1; 16])?)
        }
    }
    let source = Arc::new(Counted(AtomicU64::new(0)));
    let options = LoaderOptions { slots: 2, outputs: 4, ..options() };
    let mut loader = Loader::new(&HostBackend::new(), source.clone(), options).expect("a loader");
    let mut epochs = loader.epochs(0..2);
    // Nothing is taken, and all of both epochs is read all the same: four batches, four outputs.
    let start = std::time::Instant::now();
    while source.0.load(Ordering::Relaxed) < 16 {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?} samples were read", source.0);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(numbers(&mut epochs), all(0..2, 2));
}

#[test]
fn epochs_that_follow_each_other_can_be_wound_down_left_and_resumed() {
    let mut loader = loader(40, options());
    for taken in 0..25 {
        let mut epochs = loader.epochs(0..3);
        assert_eq!(epochs.by_ref().take(taken).filter(Result::is_ok).count(), taken);
        let token = epochs.resume_token().expect("in order");
        assert_eq!((token.epoch(), token.batch()), (taken as u64 / 10, taken as u64 % 10));
        if taken % 2 == 0 {
            epochs.wind_down();
            let left = epochs.remaining();
            assert!(left <= 6, "{left} batches were begun ahead");
            let rest = numbers(&mut epochs);
            assert_eq!(rest, all(0..3, 10)[taken..taken + left as usize]);
        }
        drop(epochs);
        let mut resumed = loader.resume(&token).expect("the same").followed_by(7..8);
        let rest = [&all(0..3, 10)[taken..(taken / 10 + 1) * 10], &all(7..8, 10)].concat();
        assert_eq!(numbers(&mut resumed), rest);
    }
}

#[test]
fn a_loss_ends_epochs_that_follow_each_other_once() {
    let backend = HostBackend::with_faults(Faults { lose_at_submission: Some(12), ..Faults::default() });
    let source = SyntheticSource::new(SampleLayout::bytes(&[16]).expect("a layout"), 40);
    let mut loader = Loader::new(&backend, Arc::new(source), options()).expect("a loader");
    let results: Vec<_> = loader.epochs(0..3).map(|batch| batch.map(drop)).collect();
    let errors = results.iter().filter(|result| result.is_err()).count();
    assert_eq!((errors, results.last().expect("the loss").is_err()), (1, true), "{results:?}");
}

#[test]
fn a_source_that_grows_after_opening_is_read_as_it_was() {
    struct Growing(AtomicBool);
    impl Source for Growing {
        fn layout(&self) -> SampleLayout {
            SampleLayout::bytes(&[16]).expect("a layout")
        }
        fn len(&self) -> u64 {
            if self.0.load(Ordering::Relaxed) { 1000 } else { 3 }
        }
        fn read(&self, _: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
            Ok(out.write(&[1; 16])?)
        }
    }
    let source = Arc::new(Growing(AtomicBool::new(false)));
    // Batches of more samples than there were.
    let options = LoaderOptions { batch_size: 64, seed: Some(1), ..options() };
    let mut loader = Loader::new(&HostBackend::new(), source.clone(), options).expect("a loader");
    source.0.store(true, Ordering::Relaxed);
    let batches: Vec<usize> = loader.epoch(0).map(|batch| batch.expect("a batch").len()).collect();
    assert_eq!((batches, loader.samples_per_epoch()), (vec![3], 3));
}

#[test]
fn a_loader_of_any_device_has_the_same_epochs() {
    let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[16]).expect("a layout"), 40));
    let loader: AnyLoader = gpufeed::open("host", source, options()).expect("the host is there");
    assert!(loader.supports(loader.strategy()).is_ok());
    let mut epochs = loader.into_epochs(0..2);
    assert_eq!(epochs.by_ref().filter(Result::is_ok).count(), 20);
    let loader = epochs.into_loader().expect("it is owned");
    let mut stream = loader.into_epoch(2).stream();
    let count = pollster::block_on(async {
        let mut count = 0;
        while let Some(batch) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
            count += usize::from(batch.is_ok());
        }
        count
    });
    assert_eq!(count, 10);
}
