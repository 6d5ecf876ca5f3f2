//! What one run does. All of it is chosen by the run's seed; only the threads' timing is not.

use std::collections::HashMap;
use std::time::Duration;

use gpufeed::{BadSamples, LastBatch, LoaderOptions, Normalize, Preprocess, SampleLayout, Strategy, Subset, Tolerance};

use super::random::Random;

/// What is wrong with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFault {
    Error,
    Panic,
    /// So many bytes are missing.
    Short(usize),
    /// It fails at every other read.
    Flaky,
    /// It is right, and takes a while.
    Slow(Duration),
}

/// How one epoch is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// To its end.
    Whole,
    /// So many batches, then it is dropped.
    Part(u64),
    /// So many batches, then it is wound down.
    WindDown(u64),
    /// To its end, holding batches until every tensor is leased.
    Hold,
    /// To its end, taking tensors out of the loader for good.
    Keep,
    /// To its end, by awaiting.
    Await,
    /// To its end, by waiting for no longer than this.
    Impatient(Duration),
    /// So many batches; then it is dropped and resumed.
    Resume(u64),
}

/// How the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The batches that are still held go first.
    BatchesFirst,
    /// They are read once the loader is gone.
    LoaderFirst,
    /// They are read on another thread while the loader goes.
    Elsewhere,
}

/// When the device is lost, or the loader cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Only devices count these.
    AtSubmission(u64),
    AtRead(u64),
    After(Duration),
}

/// One run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub options: LoaderOptions,
    pub layout: SampleLayout,
    pub samples: u64,
    pub faults: HashMap<u64, SampleFault>,
    /// How long the device takes for a submission.
    pub delay: Duration,
    /// The submission that the device refuses.
    pub refuse: Option<u64>,
    pub loss: Option<When>,
    /// When another thread cancels the loader.
    pub cancel: Option<When>,
    pub epochs: Vec<(u64, Course)>,
    pub ending: Ending,
}

/// How large runs are at most.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub samples: u64,
    pub batch: u64,
    /// Bytes of a sample, and of an image's side.
    pub bytes: u64,
    pub side: u64,
}

impl Plan {
    /// The run of a seed, on a device that has these strategies.
    pub fn new(seed: u64, strategies: &[Strategy], size: Size) -> Self {
        let mut random = Random::new(seed);
        let r = &mut random;
        let samples = r.between(1, size.samples);
        let (layout, preprocess) = samples_of(r, size);
        let options =
            LoaderOptions { batch_size: r.between(1, size.batch) as usize, ..options(r, samples, strategies) };
        let options = LoaderOptions { preprocess, ..options };
        let submissions = samples.div_ceil(options.batch_size as u64) * 2;
        // Where the device reads the samples by itself, no worker can fail to.
        let read = !options.strategy.is_some_and(Strategy::is_direct);
        Self {
            seed,
            faults: Some(faults(r, samples, layout.byte_len())).filter(|_| read).unwrap_or_default(),
            delay: Duration::from_micros(if r.chance(70) { 0 } else { r.below(300) }),
            refuse: r.chance(20).then(|| r.below(submissions)),
            loss: r.chance(25).then(|| r.below(3)).map(|kind| when(r, kind, submissions, samples)),
            cancel: r.chance(10).then(|| r.between(1, 2)).map(|kind| when(r, kind, submissions, samples)),
            epochs: (0..r.between(1, 3)).map(|_| (r.below(5), course(r))).collect(),
            ending: r.pick(&[Ending::BatchesFirst, Ending::LoaderFirst, Ending::Elsewhere]),
            options,
            layout,
            samples,
        }
    }
}

fn samples_of(r: &mut Random, size: Size) -> (SampleLayout, Preprocess) {
    if r.chance(50) {
        let bytes = r.between(1, size.bytes) as usize;
        return (SampleLayout::bytes(&[bytes]).expect("valid"), Preprocess::Raw);
    }
    let (height, width) = (r.between(1, size.side) as usize, r.between(1, size.side) as usize);
    (SampleLayout::image(height, width, 3).expect("valid"), Normalize::unit(3).into())
}

/// A new option that may be chosen at random is a line here.
fn options(r: &mut Random, samples: u64, strategies: &[Strategy]) -> LoaderOptions {
    let world = r.mostly(80, 1, 3) as u64;
    LoaderOptions {
        slots: r.mostly(40, 1, 5),
        outputs: r.mostly(30, 1, 5),
        workers: r.mostly(40, 1, 7),
        seed: r.chance(70).then(|| r.next()),
        rank: r.below(world),
        world,
        last_batch: r.pick(&[LastBatch::Short, LastBatch::Short, LastBatch::Drop, LastBatch::Pad]),
        subset: subset(r, samples),
        ordered: r.chance(70),
        bad_samples: bad_samples(r, samples),
        strategy: Some(r.pick(strategies)),
        fingerprints: r.chance(50),
        stall_timeout: r.pick(&[None, Some(Duration::from_secs(300)), Some(Duration::from_millis(1))]),
        ..LoaderOptions::default()
    }
}

fn subset(r: &mut Random, samples: u64) -> Option<Subset> {
    match r.below(6) {
        0 => {
            let start = r.below(samples);
            Some(Subset::range(start..r.between(start + 1, samples)))
        }
        1 => Some(Subset::list((0..r.between(1, 30)).map(|_| r.below(samples)).collect::<Vec<_>>())),
        _ => None,
    }
}

fn bad_samples(r: &mut Random, samples: u64) -> BadSamples {
    let (count, rate) = (Tolerance::Count(r.below(samples)), Tolerance::Rate(r.below(101) as f64 / 100.0));
    let tolerance = r.pick(&[Tolerance::All, Tolerance::All, count, rate]);
    r.pick(&[BadSamples::Fail, BadSamples::Fail, BadSamples::Skip(tolerance), BadSamples::Substitute(tolerance)])
}

fn faults(r: &mut Random, samples: u64, bytes: usize) -> HashMap<u64, SampleFault> {
    let percent = r.pick(&[0, 0, 2, 5, 30, 100]);
    let kinds = |r: &mut Random| match r.below(5) {
        0 => SampleFault::Error,
        1 => SampleFault::Panic,
        2 => SampleFault::Short(r.between(1, bytes as u64) as usize),
        3 => SampleFault::Flaky,
        _ => SampleFault::Slow(Duration::from_micros(r.below(400))),
    };
    let mut faults = HashMap::new();
    for index in 0..samples {
        if r.chance(percent) {
            faults.insert(index, kinds(r));
        }
    }
    faults
}

fn when(r: &mut Random, kind: u64, submissions: u64, samples: u64) -> When {
    match kind {
        0 => When::AtSubmission(r.below(submissions)),
        1 => When::AtRead(r.below(samples * 2)),
        _ => When::After(Duration::from_micros(r.below(1500))),
    }
}

fn course(r: &mut Random) -> Course {
    match r.below(10) {
        0 | 1 => Course::Whole,
        2 | 3 => Course::Part(r.below(8)),
        4 => Course::WindDown(r.below(8)),
        5 => Course::Hold,
        6 => Course::Keep,
        7 => Course::Await,
        8 => Course::Impatient(Duration::from_micros(r.below(300))),
        _ => Course::Resume(r.below(8)),
    }
}
