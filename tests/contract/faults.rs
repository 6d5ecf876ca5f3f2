//! What goes wrong, and what is left afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpufeed::{
    Backend, DeviceError, LoadError, Loader, LoaderOptions, OpenError, SampleContext, SampleLayout, SampleWriter,
    Source, SourceError, Strategy,
};

use crate::device::{TestDevice, skip};
use crate::loaders::options;

/// A source that calls `at` before each sample, and writes what it says.
pub struct Scripted<F> {
    layout: SampleLayout,
    len: u64,
    at: F,
}

impl<F: Fn(u64) -> Result<usize, SourceError> + Send + Sync> Scripted<F> {
    pub fn shared(len: u64, at: F) -> Arc<Self> {
        Arc::new(Self { layout: SampleLayout::bytes(&[40]).expect("a valid layout"), len, at })
    }
}

impl<F: Fn(u64) -> Result<usize, SourceError> + Send + Sync> Source for Scripted<F> {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let bytes = (self.at)(sample.index)?;
        out.write(&vec![sample.index as u8; bytes])?;
        Ok(())
    }
}

pub fn a_source_that_fails_is_named_and_the_next_batch_arrives<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = Scripted::shared(40, |index| if index == 21 { Err("the disk is wet".into()) } else { Ok(40) });
    let options = LoaderOptions { batch_size: 8, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    for epoch in 0..3 {
        let results: Vec<_> = loader.epoch(epoch).map(|batch| batch.map(|batch| batch.number())).collect();
        assert_eq!(results.len(), 5);
        for (number, result) in results.iter().enumerate() {
            match result {
                Ok(delivered) => assert_eq!(*delivered, number as u64),
                Err(LoadError::Sample { index: 21, batch: 2, source }) => {
                    assert_eq!((number, source.to_string().as_str()), (2, "the disk is wet"));
                }
                Err(error) => panic!("another error: {error}"),
            }
        }
        assert!(results[2].is_err());
    }
}

pub fn a_panic_and_a_short_sample_are_errors<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = Scripted::shared(32, |index| match index {
        3 => panic!("sample three is unlucky"),
        12 => Ok(39),
        _ => Ok(40),
    });
    let options = LoaderOptions { batch_size: 8, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    let results: Vec<_> = loader.epoch(0).map(|batch| batch.map(|batch| batch.read().expect("readable"))).collect();
    let [Err(panicked), Err(short), Ok(third), Ok(_)] = &results[..] else { panic!("two errors, two batches") };
    assert!(matches!(panicked, LoadError::Panic { index: 3, batch: 0, message } if message.contains("unlucky")));
    assert!(matches!(short, LoadError::ShortSample { index: 12, batch: 1, written: 39, expected: 40, .. }));
    assert!(third.chunks(40).zip(16u8..).all(|(sample, value)| sample.iter().all(|&byte| byte == value)));
}

pub fn dropping_at_any_moment_returns<B: TestDevice>(backend: &B, strategy: Strategy) {
    for (workers, slots, outputs) in [(1, 1, 1), (3, 2, 3)] {
        let source = Scripted::shared(64, |index| {
            if index % 13 == 5 {
                std::thread::sleep(Duration::from_micros(300));
            }
            Ok(40)
        });
        let options = LoaderOptions { batch_size: 4, workers, slots, outputs, ..options(strategy) };
        let mut loader = Loader::new(backend, source.clone(), options.clone()).expect("the loader opens");
        for taken in 0..5 {
            assert_eq!(loader.epoch(taken).take(taken as usize).filter(Result::is_ok).count(), taken as usize);
        }
        // What was given up does not show in the next epoch.
        let numbers: Vec<_> = loader.epoch(9).map(|batch| batch.expect("no error").number()).collect();
        assert!(numbers.into_iter().eq(0..16));
        for taken in [0, 1, 7] {
            let mut loader = Loader::new(backend, source.clone(), options.clone()).expect("the loader opens");
            let _ = loader.epoch(0).take(taken).count();
            let start = Instant::now();
            drop(loader);
            assert!(start.elapsed() < options.shutdown_timeout, "dropped after {taken} batches");
        }
    }
}

pub fn an_epoch_that_is_dropped_at_once_is_not_read<B: TestDevice>(backend: &B, strategy: Strategy) {
    let reads = Arc::new(AtomicU64::new(0));
    let source = {
        let reads = Arc::clone(&reads);
        Scripted::shared(4000, move |_| {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(40)
        })
    };
    let options = LoaderOptions { batch_size: 4, slots: 2, outputs: 2, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    for epoch in 0..20 {
        drop(loader.epoch(epoch));
    }
    // Asking the pump anything puts us behind what it was told.
    loader.memory().expect("the pump is there");
    std::thread::sleep(Duration::from_millis(30));
    let before = reads.load(Ordering::Relaxed);
    assert!(before < 20 * 4 * 4, "{before} samples were read for nobody");
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(reads.load(Ordering::Relaxed), before, "an epoch that nobody wants goes on");
    let numbers: Vec<_> = loader.epoch(0).map(|batch| batch.expect("no error").number()).collect();
    assert!(numbers.into_iter().eq(0..1000));
}

pub fn an_epoch_may_fail_at_every_sample<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = Scripted::shared(400, |_| Err("gone".into()));
    let options = LoaderOptions { batch_size: 4, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    for epoch in 0..3 {
        assert_eq!(loader.epoch(epoch).filter(|batch| matches!(batch, Err(LoadError::Sample { .. }))).count(), 100);
    }
}

pub fn a_device_lost_while_slots_are_filled_is_an_error<B: TestDevice>(backend: &B, strategy: Strategy) {
    let validated = std::env::var_os("WGPU_VALIDATION").is_some_and(|value| value != "0");
    if strategy == Strategy::WriteBufferWith && validated {
        // `Queue::write_staging_buffer` returns before it takes the buffer over, and the buffer has no destructor.
        let reason = "wgpu 30.0.2 leaks the staging buffer of a view that is dropped after its device was lost";
        return skip("write-buffer-with on a lost device", reason);
    }
    let reads = Arc::new(AtomicU64::new(0));
    let source = {
        let (backend, reads) = (backend.clone(), Arc::clone(&reads));
        Scripted::shared(400, move |_| {
            if reads.fetch_add(1, Ordering::Relaxed) == 50 {
                backend.lose();
                // Others go on writing into memory of the lost device.
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(40)
        })
    };
    let options = LoaderOptions { batch_size: 8, workers: 3, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    let results: Vec<_> = loader.epoch(0).map(|batch| batch.map(drop)).collect();
    let error = results.last().expect("there are deliveries").as_ref().expect_err("the last one is the loss");
    assert!(matches!(error, LoadError::Device { source: DeviceError::Lost { .. }, .. }), "{error}");
    assert!(results.len() < 50, "nothing is delivered after the loss");
    // It stays lost, and says so.
    let again: Vec<_> = loader.epoch(1).collect();
    assert!(matches!(again[..], [Err(LoadError::Device { source: DeviceError::Lost { .. }, .. })]), "{again:?}");
}

pub fn a_strategy_of_another_backend_says_why<B: TestDevice>(backend: &B, strategy: Strategy) {
    let foreign = if strategy == Strategy::Memcpy { Strategy::MappedRing } else { Strategy::Memcpy };
    let options = LoaderOptions { strategy: Some(foreign), ..options(strategy) };
    let error = Loader::new(backend, Scripted::shared(8, |_| Ok(40)), options).map(|_| ()).expect_err("not here");
    let OpenError::Unsupported(unsupported) = error else { panic!("another error: {error}") };
    assert_eq!(unsupported.strategy, foreign);
    assert!(!unsupported.reason.is_empty());
    assert_eq!(Backend::supports(backend, foreign).expect_err("the same answer"), unsupported);
}
