//! What never ends: a source that does not return, and a device that does not finish. The user gets away from both.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gpufeed::backend::host::{Faults, HostBackend};
use gpufeed::{
    FeedError, Feeder, FeederOptions, LoadError, Loader, LoaderOptions, PumpState, SampleContext, SampleLayout,
    SampleWriter, Source, SourceError,
};
use log::{Level, LevelFilter, Log, Metadata, Record};

/// Keeps the errors that are logged.
struct Errors(Mutex<Vec<String>>);

impl Log for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Error
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().expect("no panic").push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn errors() -> &'static Errors {
    static ERRORS: OnceLock<Errors> = OnceLock::new();
    let errors = ERRORS.get_or_init(|| Errors(Mutex::default()));
    // Fails for all tests but the first.
    let _ = log::set_logger(errors);
    log::set_max_level(LevelFilter::Error);
    errors
}

fn was_logged(text: &str) -> bool {
    errors().0.lock().expect("no panic").iter().any(|line| line.contains(text))
}

/// Does not return from sample `at` until it is released.
struct Stuck {
    at: u64,
    entered: AtomicBool,
    released: AtomicBool,
}

impl Stuck {
    fn at(at: u64) -> Arc<Self> {
        Arc::new(Self { at, entered: AtomicBool::new(false), released: AtomicBool::new(false) })
    }
}

impl Source for Stuck {
    fn layout(&self) -> SampleLayout {
        SampleLayout::bytes(&[4096]).expect("a layout")
    }

    fn len(&self) -> u64 {
        16
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        while sample.index == self.at && !self.released.load(Ordering::Relaxed) {
            self.entered.store(true, Ordering::Relaxed);
            sleep(Duration::from_millis(1));
        }
        Ok(out.write(&[7; 4096])?)
    }
}

fn options() -> LoaderOptions {
    let shutdown_timeout = Duration::from_millis(50);
    LoaderOptions { batch_size: 4, workers: 2, slots: 2, outputs: 3, shutdown_timeout, ..LoaderOptions::default() }
}

#[test]
fn a_worker_that_does_not_return_is_left_behind_and_said() {
    errors();
    let source = Stuck::at(5);
    let mut loader = Loader::new(&HostBackend::new(), source.clone(), options()).expect("a loader");
    assert_eq!(loader.epoch(0).take(1).filter(Result::is_ok).count(), 1);
    while !source.entered.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(1));
    }
    drop(loader);
    assert!(was_logged("its slot and its thread are left behind"), "{:?}", errors().0);
    assert!(was_logged("is leaked (16384 bytes): a worker is still writing it"), "{:?}", errors().0);
    assert!(was_logged("thread gpufeed-worker-"), "{:?}", errors().0);
    // Its memory is still there when it goes on after all, and then it ends: nobody else holds the source.
    source.released.store(true, Ordering::Relaxed);
    let start = Instant::now();
    while Arc::strong_count(&source) > 1 {
        assert!(start.elapsed() < Duration::from_secs(20), "the worker does not end");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_device_that_does_not_finish_is_told_and_left_behind() {
    errors();
    let backend = HostBackend::with_faults(Faults { delay: Duration::from_secs(3600), ..Faults::default() });
    let stall_timeout = Some(Duration::from_millis(50));
    let options = LoaderOptions { slots: 1, stall_timeout, ..options() };
    let mut loader = Loader::new(&backend, Stuck::at(u64::MAX), options).expect("a loader");
    let mut epoch = loader.epoch(0);
    let first = epoch.find_map(Result::ok).expect("it is delivered before the device has finished it");
    assert_eq!(first.wait_timeout(Duration::from_millis(5)), Ok(false));
    let stall = std::iter::from_fn(|| epoch.try_next()).find_map(|batch| match batch {
        Err(LoadError::Stalled(stall)) => (stall.pump == PumpState::AwaitsDevice).then_some(stall),
        other => panic!("the only slot is in flight, and still: {other:?}"),
    });
    let stall = stall.expect("the epoch is not over");
    assert_eq!((stall.in_flight, stall.reading.len()), (1, 0), "{stall}");
    assert!(
        stall.to_string().contains("the pump waits for the device; 0 slots are being filled, 1 batches"),
        "{stall}"
    );
    let canceller = epoch.canceller();
    canceller.cancel();
    assert!(matches!(epoch.next(), Some(Err(LoadError::Cancelled))));
    drop(epoch);
    assert!(matches!(loader.wait_idle(), Err(LoadError::Cancelled)));
    drop(loader);
    assert!(was_logged("thread gpufeed-pump is left behind"), "{:?}", errors().0);
    drop(first);
}

#[test]
fn a_frame_need_not_wait_for_ever() {
    let backend = HostBackend::with_faults(Faults { delay: Duration::from_secs(3600), ..Faults::default() });
    let options = FeederOptions { slots: 1, ..FeederOptions::default() };
    let layout = SampleLayout::bytes(&[4]).expect("a layout");
    let mut feeder = Feeder::new(&backend, layout, options).expect("a feeder");
    let patience = Duration::from_millis(5);
    let first = feeder.feed_timeout(&[&[1; 4]], patience).expect("the only slot");
    let error = feeder.feed_timeout(&[&[2; 4]], patience).map(|_| ()).expect_err("it is in flight");
    assert_eq!(error, FeedError::TimedOut(patience));
    // Dropping the feeder would wait for the device.
    std::thread::spawn(move || drop((first, feeder)));
}

/// A source whose answers change once the loader is open.
struct Fickle {
    asked: AtomicU64,
    layout_panics: bool,
    read_panics: bool,
}

/// What a panic carries that panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

impl Source for Fickle {
    fn layout(&self) -> SampleLayout {
        let opening = std::thread::current().name().is_none_or(|name| !name.starts_with("gpufeed-worker"));
        assert!(opening || !self.layout_panics, "asked by a worker");
        SampleLayout::bytes(&[8]).expect("a layout")
    }

    /// It grows with every question.
    fn len(&self) -> u64 {
        3 + 10 * self.asked.fetch_add(1, Ordering::Relaxed)
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        if self.read_panics && sample.index == 1 {
            std::panic::panic_any(Bomb);
        }
        Ok(out.write(&[7; 8])?)
    }
}

/// What becomes of one epoch of it; a loader that hangs says so in time.
fn of_fickle(layout_panics: bool, read_panics: bool) -> Vec<Result<usize, LoadError>> {
    let source = Arc::new(Fickle { asked: AtomicU64::new(0), layout_panics, read_panics });
    let stall_timeout = Some(Duration::from_secs(20));
    let options = LoaderOptions { stall_timeout, ..options() };
    let mut loader = Loader::new(&HostBackend::new(), source, options).expect("a loader");
    loader.epoch(0).take(3).map(|batch| batch.map(|batch| batch.len())).collect()
}

#[test]
fn a_source_that_grows_after_opening_delivers_what_it_had() {
    let batches = of_fickle(false, false);
    assert!(matches!(batches[..], [Ok(3)]), "{batches:?}");
}

#[test]
fn a_layout_is_not_asked_for_by_a_worker_where_a_panic_would_hang() {
    let batches = of_fickle(true, false);
    assert!(matches!(batches[..], [Ok(3)]), "{batches:?}");
}

#[test]
fn a_panic_whose_payload_panics_when_dropped_is_an_error_and_no_hang() {
    let batches = of_fickle(false, true);
    assert!(matches!(batches[..], [Err(LoadError::Panic { index: 1, .. })]), "{batches:?}");
}
