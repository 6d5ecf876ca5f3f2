//! The automatic choice of strategy and workers, on every kind of device this machine has.

#![allow(clippy::print_stderr)] // What is skipped, and what was chosen, is said.

use std::fs;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use gpufeed::source::random_images;
use gpufeed::{
    AnyBackend, AnyLoader, AutoOptions, LoaderOptions, Normalize, OpenError, SampleContext, SampleLayout, SampleWriter,
    Source, SourceError, Strategy, SyntheticSource, Tuned,
};

/// Of `host`, `vulkan:0` and `gl:0` those that are there; the others are skipped in sight.
fn devices(test: &str) -> Vec<AnyBackend> {
    let open = |id: &&str| match AnyBackend::open(id) {
        Err(OpenError::NoDevice { .. }) => {
            let line = format!("skipped: {test}: there is no {id}");
            eprintln!("{line}");
            if let Some(path) = std::env::var_os("GPUFEED_SKIP_LOG") {
                let log = fs::OpenOptions::new().create(true).append(true).open(path);
                log.and_then(|mut log| writeln!(log, "{line}")).expect("the list of skipped tests can be written");
            }
            None
        }
        opened => Some(opened.expect("the device is there and opens")),
    };
    ["host", "vulkan:0", "gl:0"].iter().filter_map(open).collect()
}

fn images() -> Arc<dyn Source> {
    Arc::new(random_images(SampleLayout::image(32, 32, 3).expect("an image"), 300, 1).expect("in memory"))
}

fn options() -> LoaderOptions {
    LoaderOptions { batch_size: 16, preprocess: Normalize::imagenet().into(), ..LoaderOptions::default() }
}

fn short() -> AutoOptions {
    AutoOptions { budget: Duration::from_millis(400), ..AutoOptions::default() }
}

fn tune(device: &AnyBackend, source: &Arc<dyn Source>, options: LoaderOptions, auto: &AutoOptions) -> Tuned {
    let tuned = device.tune(source, options, auto).expect("the default runs");
    eprintln!("{}: {:?}: {}", device.info().id, tuned.took, tuned.why);
    assert_eq!((tuned.options.strategy, tuned.options.workers), (Some(tuned.strategy), tuned.workers));
    tuned
}

#[test]
fn what_is_chosen_runs_and_is_told_with_its_evidence() {
    for device in devices("what_is_chosen_runs_and_is_told_with_its_evidence") {
        let source = images();
        let tuned = tune(&device, &source, options(), &AutoOptions::default());
        assert!(!tuned.strategy.allocates_per_batch() && !tuned.from_cache, "{tuned:?}");
        let trial = tuned.trials.iter().find(|t| (t.strategy, t.workers) == (tuned.strategy, tuned.workers));
        let trial = trial.expect("what was chosen was tried");
        assert!(trial.median_gb_s() > Some(0.0) && trial.batches > 0 && trial.failed.is_none(), "{trial:?}");
        assert!(tuned.why.contains(&format!("`{}`", tuned.strategy)) && tuned.why.contains("B/s"), "{}", tuned.why);
        assert_eq!(tuned.why.contains("software"), device.info().is_software(), "{}", tuned.why);
        let mut loader = device.loader(source, tuned.options).expect("a loader");
        assert_eq!(loader.epoch(0).map(|batch| batch.expect("a batch").len()).sum::<usize>(), 300);
    }
}

#[test]
fn every_strategy_of_constant_memory_is_tried_and_no_other() {
    for device in devices("every_strategy_of_constant_memory_is_tried_and_no_other") {
        let auto = AutoOptions { workers: Some(1), ..AutoOptions::default() };
        let tuned = tune(&device, &images(), options(), &auto);
        let runs = |strategy: &Strategy| !strategy.allocates_per_batch() && device.supports(*strategy).is_ok();
        let mut expected: Vec<Strategy> = Strategy::ALL.iter().copied().filter(runs).collect();
        // One candidate is no choice, and nothing is measured.
        expected.retain(|_| !tuned.trials.is_empty());
        let mut tried: Vec<Strategy> = tuned.trials.iter().map(|trial| trial.strategy).collect();
        tried.sort_unstable();
        expected.sort_unstable();
        assert_eq!((tried, tuned.workers), (expected, 1), "{}", tuned.why);
    }
}

#[test]
fn what_is_pinned_stays() {
    for device in devices("what_is_pinned_stays") {
        let strategy = device.default_strategy();
        let auto = AutoOptions { strategy: Some(strategy), ..short() };
        let tuned = tune(&device, &images(), options(), &auto);
        assert!(tuned.strategy == strategy && tuned.trials.iter().all(|trial| trial.strategy == strategy));
        let auto = AutoOptions { workers: Some(3), ..auto };
        let tuned = tune(&device, &images(), options(), &auto);
        assert_eq!((tuned.strategy, tuned.workers, tuned.trials.len()), (strategy, 3, 0), "nothing is left to choose");
    }
}

#[test]
fn what_cannot_run_is_an_error_where_it_is_pinned() {
    let host = AnyBackend::open("host").expect("the host");
    let refused = |options, auto: &AutoOptions| host.tune(&images(), options, auto).expect_err("refused");
    let pinned = AutoOptions { strategy: Some(Strategy::PinnedRing), ..short() };
    assert!(matches!(refused(options(), &pinned), OpenError::Unsupported(_)));
    let none = AutoOptions { workers: Some(0), ..short() };
    assert!(matches!(refused(options(), &none), OpenError::Option { option: "workers", .. }));
    let poor = LoaderOptions { byte_budget: Some(10), ..options() };
    assert!(matches!(refused(poor, &short()), OpenError::OverBudget { .. }), "no candidate can be opened");
}

#[test]
fn a_choice_that_was_kept_is_not_measured_again() {
    let folder = tempfile::tempdir().expect("a folder");
    for device in devices("a_choice_that_was_kept_is_not_measured_again") {
        let file = folder.path().join("auto.json");
        let auto = AutoOptions { cache: Some(file.clone()), ..AutoOptions::default() };
        let measured = tune(&device, &images(), options(), &auto);
        let kept = tune(&device, &images(), options(), &auto);
        assert!(!measured.from_cache && kept.from_cache && kept.trials.is_empty());
        assert_eq!((kept.strategy, kept.workers), (measured.strategy, measured.workers));
        assert!(kept.why.contains(&measured.why), "{}", kept.why);
        let other = tune(&device, &images(), LoaderOptions { batch_size: 8, ..options() }, &auto);
        assert!(!other.from_cache, "another batch is another choice");
        fs::write(&file, "{ this is no JSON").expect("written");
        let anew = tune(&device, &images(), options(), &auto);
        assert!(!anew.from_cache && !anew.trials.is_empty());
        assert!(tune(&device, &images(), options(), &auto).from_cache, "the file was replaced");
    }
}

/// Waits for a while at each sample, as a network does.
struct Waiting(SyntheticSource, Duration);

impl Source for Waiting {
    fn layout(&self) -> SampleLayout {
        self.0.layout()
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        std::thread::sleep(self.1);
        self.0.read(sample, out)
    }
}

fn waiting(time: Duration) -> Arc<dyn Source> {
    let images = SyntheticSource::new(SampleLayout::image(32, 32, 3).expect("an image"), 1000);
    Arc::new(Waiting(images, time))
}

#[test]
fn a_source_that_waits_gets_more_workers() {
    let host = AnyBackend::open("host").expect("the host");
    let options = LoaderOptions { batch_size: 4, workers: 2, ..options() };
    let tuned = tune(&host, &waiting(Duration::from_millis(5)), options, &AutoOptions::default());
    assert!(tuned.workers > 2, "{}", tuned.why);
}

#[test]
fn a_source_too_slow_to_measure_keeps_the_defaults_and_says_so() {
    for device in devices("a_source_too_slow_to_measure_keeps_the_defaults_and_says_so") {
        let options = options();
        let (strategy, workers) = (device.default_strategy(), options.workers);
        let tuned = tune(&device, &waiting(Duration::from_millis(100)), options, &short());
        assert_eq!((tuned.strategy, tuned.workers), (strategy, workers));
        assert!(tuned.why.contains("nothing could be measured"), "{}", tuned.why);
    }
}

/// Does not return before it is told to.
struct Stuck {
    layout: SampleLayout,
    free: Mutex<bool>,
    freed: Condvar,
}

impl Source for Stuck {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        100
    }

    fn read(&self, _: &SampleContext, _: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let free = self.free.lock().expect("no panic");
        drop(self.freed.wait_while(free, |free| !*free).expect("no panic"));
        Err("told to go".into())
    }
}

#[test]
fn a_source_that_is_stuck_does_not_hold_the_caller() {
    let layout = SampleLayout::bytes(&[8]).expect("bytes");
    let stuck = Arc::new(Stuck { layout, free: Mutex::new(false), freed: Condvar::new() });
    let source: Arc<dyn Source> = stuck.clone();
    let host = AnyBackend::open("host").expect("the host");
    // Returns although nobody has freed the source yet.
    let tuned = tune(&host, &source, LoaderOptions::default(), &short());
    assert!(tuned.why.contains("nothing could be measured"), "{}", tuned.why);
    *stuck.free.lock().expect("no panic") = true;
    stuck.freed.notify_all();
}

/// Fails at every sample.
struct Broken(SampleLayout);

impl Source for Broken {
    fn layout(&self) -> SampleLayout {
        self.0.clone()
    }

    fn len(&self) -> u64 {
        100
    }

    fn read(&self, _: &SampleContext, _: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        Err("it is broken".into())
    }
}

#[test]
fn a_source_that_always_fails_is_told_in_the_reason() {
    let source: Arc<dyn Source> = Arc::new(Broken(SampleLayout::bytes(&[8]).expect("bytes")));
    let host = AnyBackend::open("host").expect("the host");
    let tuned = tune(&host, &source, LoaderOptions::default(), &short());
    assert!(tuned.why.contains("nothing could be measured") && tuned.why.contains("it is broken"), "{}", tuned.why);
}

#[test]
fn trials_beside_a_consumer_that_computes_say_so_and_are_kept_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    for device in devices("trials_beside_a_consumer_that_computes_say_so_and_are_kept_apart") {
        let cache = Some(folder.path().join("auto.json"));
        let busy =
            |us| AutoOptions { compute: Duration::from_micros(us), cache: cache.clone(), ..AutoOptions::default() };
        let tuned = tune(&device, &images(), options(), &busy(500));
        assert_eq!((tuned.compute, tuned.from_cache), (Duration::from_micros(500), false));
        assert!(tuned.why.contains("; beside a consumer that computes for 500 us a batch"), "{}", tuned.why);
        assert!(tuned.trials.iter().any(|trial| trial.median_gb_s() > Some(0.0)), "{tuned:?}");
        let again = tune(&device, &images(), options(), &busy(500));
        assert!(again.from_cache && again.compute == tuned.compute, "{again:?}");
        assert!(!tune(&device, &images(), options(), &busy(0)).from_cache, "an idle consumer is another choice");
    }
}

#[test]
fn a_consumer_that_computes_for_too_long_is_an_error_and_no_choice() {
    let host = AnyBackend::open("host").expect("the host");
    let auto = AutoOptions { compute: Duration::from_secs(2), ..short() };
    let refused = host.tune(&images(), options(), &auto).expect_err("too long");
    assert!(matches!(refused, OpenError::Option { option: "compute", .. }), "{refused}");
}

/// Loads an epoch, and takes so long for each batch.
fn load(mut loader: AnyLoader, step: Duration) -> AnyLoader {
    for batch in loader.epoch(0) {
        let _held = batch.expect("a batch");
        std::thread::sleep(step);
    }
    loader
}

#[test]
fn a_consumer_is_known_by_its_steps_and_the_choice_is_made_again_beside_it() {
    for device in devices("a_consumer_is_known_by_its_steps_and_the_choice_is_made_again_beside_it") {
        // A machine that does much else needs its time, and few candidates.
        let (budget, strategy) = (Duration::from_secs(12), Some(device.default_strategy()));
        let auto = AutoOptions { budget, strategy, ..AutoOptions::default() };
        let options = LoaderOptions { batch_size: 30, ..options() };
        let tuned = tune(&device, &images(), options, &auto);
        let loader = device.loader(images(), tuned.options.clone()).expect("a loader");
        let order = loader.options().clone();
        // Long against any step here, so that it is seen on a busy machine too.
        let loader = load(loader, Duration::from_millis(200));
        let (mut loader, again) = loader.tune_again(&tuned, &auto).expect("it runs");
        eprintln!("{}: {}", device.info().id, again.why);
        assert!(
            again.compute > Duration::ZERO && again.why.contains("beside a consumer that computes"),
            "{}",
            again.why
        );
        assert_eq!((loader.strategy(), loader.options().workers), (again.strategy, again.workers));
        assert_eq!((loader.options().batch_size, loader.options().seed), (order.batch_size, order.seed));
        assert_eq!(loader.epoch(2).map(|batch| batch.expect("a batch").len()).sum::<usize>(), 300);
    }
}

#[test]
fn after_a_few_batches_nothing_is_known_and_what_runs_stays() {
    let host = AnyBackend::open("host").expect("the host");
    let (auto, options) = (short(), LoaderOptions { batch_size: 100, ..options() });
    let tuned = tune(&host, &images(), options, &auto);
    let mut loader = host.loader(images(), tuned.options.clone()).expect("a loader");
    loader.epoch(0).for_each(|batch| drop(batch.expect("a batch")));
    let (loader, again) = loader.tune_again(&tuned, &auto).expect("it runs");
    assert_eq!((loader.strategy(), again.workers, again.trials.len()), (tuned.strategy, tuned.workers, 0));
    assert!(again.why.ends_with("3 batches are too few to know the consumer by"), "{}", again.why);
}
