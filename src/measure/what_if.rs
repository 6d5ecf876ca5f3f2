//! How fast a loader would be if one of its stages were free: the ceiling that the others set, measured by running it so.
//!
//! Each time a loader with the same options runs for a moment, with a consumer that does nothing: as it is; over a few batches held in
//! memory, so that the source is free but for the copy; without normalisation, so that no kernel runs; with both, which leaves the copy;
//! and with twice the slots. These are estimates, of bytes that nobody verifies: [`compare`](super::compare) measures.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::busy::User;
use super::cycled::Cycled;
use super::outcome::VerifyError;
use super::rounds::{open, pass};
use crate::backend::Backend;
use crate::error::OpenError;
use crate::loader::LoaderOptions;
use crate::preprocess::Preprocess;
use crate::source::{MemorySource, SampleContext, Source};
use crate::staging::SampleBuffer;

/// Bytes that are held in memory at most.
const MAX_HELD: usize = 256 << 20;
/// More batches than this need not be held.
const HELD_BATCHES: usize = 16;

/// What is free in a run. The consumer always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Free {
    /// The consumer alone.
    Consumer,
    /// The source: samples are copied out of memory.
    Source,
    /// The kernel: bytes are delivered as they are.
    Kernel,
    /// Source and kernel: the copy is left.
    SourceAndKernel,
    /// Slots: there are twice as many.
    Slots,
}

impl Free {
    /// A description of the run.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Consumer => "if its user did nothing",
            Self::Source => "if reading were free: batches replayed from memory",
            Self::Kernel => "if the kernel were free: bytes as they are",
            Self::SourceAndKernel => "if both were free: the copy alone",
            Self::Slots => "with twice the slots",
        }
    }
}

/// How fast a loader would be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WhatIf {
    /// What was free.
    pub free: Free,
    /// Samples a second; `None` where it could not be measured.
    pub samples_s: Option<f64>,
    /// Decimal gigabytes of the source's bytes a second.
    pub gb_s: Option<f64>,
    /// Why not.
    pub error: Option<String>,
}

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.samples_s, self.gb_s, &self.error) {
            (Some(samples), Some(gb), _) => {
                write!(f, "{}: {samples:.0} samples/s, {gb:.2} GB/s", self.free.describe())
            }
            (.., error) => {
                write!(f, "{}: not measured, {}", self.free.describe(), error.as_deref().unwrap_or("it was ended"))
            }
        }
    }
}

/// Measures how fast a loader would be if its stages were free, for about `each`. What makes no difference is left out: the
/// source where the device reads it by itself, the kernel where there is none.
///
/// The memory that the options ask for is taken again for each run, and given back.
pub fn what_if<B: Backend>(
    backend: &B,
    source: &Arc<dyn Source>,
    options: &LoaderOptions,
    each: Duration,
    stop: &dyn Fn() -> bool,
) -> Vec<WhatIf> {
    let whole = Arc::new(Cycled::new(Arc::clone(source))) as Arc<dyn Source>;
    // Of the same samples every time, whoever else shares them.
    let options = LoaderOptions { subset: None, rank: 0, world: 1, timing: false, trace: None, ..options.clone() };
    let raw = LoaderOptions { preprocess: Preprocess::Raw, step: None, ..options.clone() };
    let direct = options.strategy.unwrap_or_else(|| backend.default_strategy()).is_direct();
    let computes = !matches!(options.preprocess, Preprocess::Raw);
    let run = |free, source: &Arc<dyn Source>, options: &LoaderOptions| {
        report(free, measure(backend, source, options, each, stop).as_ref().copied())
    };
    let mut found = vec![run(Free::Consumer, &whole, &options)];
    let replayed = if direct { None } else { Some(replay(&**source, options.batch_size)) };
    let replayed = replayed.map(|held| held.map(|held| Arc::new(Cycled::new(Arc::new(held))) as Arc<dyn Source>));
    match &replayed {
        Some(Ok(held)) => found.push(run(Free::Source, held, &options)),
        Some(Err(error)) => found.push(report(Free::Source, Err(error))),
        None => {}
    }
    if computes {
        found.push(run(Free::Kernel, &whole, &raw));
    }
    if let (true, Some(Ok(held))) = (computes, &replayed) {
        found.push(run(Free::SourceAndKernel, held, &raw));
    }
    found.push(run(Free::Slots, &whole, &LoaderOptions { slots: 2 * options.slots, ..options.clone() }));
    found
}

fn report(free: Free, measured: Result<Option<(f64, f64)>, &VerifyError>) -> WhatIf {
    let (rate, error) = match measured {
        Ok(rate) => (rate, None),
        Err(error) => (None, Some(error.to_string())),
    };
    WhatIf { free, samples_s: rate.map(|(samples, _)| samples), gb_s: rate.map(|(_, gb)| gb), error }
}

/// Samples and gigabytes a second; `None` if it was ended before anything was delivered.
fn measure<B: Backend>(
    backend: &B,
    source: &Arc<dyn Source>,
    options: &LoaderOptions,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Option<(f64, f64)>, VerifyError> {
    if stop() {
        return Ok(None);
    }
    let mut loader = None;
    let loader = open(&mut loader, backend, source, options)?;
    let (pass, last) = pass(loader, 1, time, &mut User::idle(), stop)?;
    drop(last);
    let round = pass.round();
    Ok(round.map(|round| (round.samples_s, round.gb_s)))
}

/// The first samples, in memory, without their fields on the host.
fn replay(source: &dyn Source, batch_size: usize) -> Result<MemorySource, VerifyError> {
    let layout = source.layout();
    let bytes = layout.byte_len();
    let fit = (MAX_HELD / bytes.max(1)).clamp(1, batch_size.saturating_mul(HELD_BATCHES));
    let samples = usize::try_from(source.len()).unwrap_or(usize::MAX).min(fit);
    let mut memory = Vec::with_capacity(samples * bytes);
    let mut sample = SampleBuffer::new(layout.clone()).map_err(OpenError::from)?;
    for index in 0..samples as u64 {
        let read = source.read(&SampleContext::of(index), &mut sample.writer());
        read.map_err(|source| VerifyError::Source { batch: 0, index, source })?;
        layout.on_device().for_each(|field| memory.extend_from_slice(sample.bytes(field.name()).unwrap_or_default()));
    }
    Ok(MemorySource::new(memory, layout.without_host())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Normalize;
    use crate::backend::host::{Faults, HostBackend};
    use crate::error::SourceError;
    use crate::layout::SampleLayout;
    use crate::staging::SampleWriter;

    const SLOW: Duration = Duration::from_millis(20);

    struct Slow;

    impl Source for Slow {
        fn layout(&self) -> SampleLayout {
            SampleLayout::image(2, 2, 3).expect("a valid layout")
        }

        fn len(&self) -> u64 {
            30
        }

        fn read(&self, _: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
            std::thread::sleep(SLOW);
            Ok(out.write(&[7; 12])?)
        }
    }

    fn rates(faults: Faults, source: &Arc<dyn Source>) -> impl Fn(Free) -> f64 + use<> {
        let options = LoaderOptions {
            batch_size: 1,
            workers: 1,
            preprocess: Normalize::imagenet().into(),
            ..LoaderOptions::default()
        };
        let backend = HostBackend::with_faults(faults);
        let found = what_if(&backend, source, &options, Duration::from_millis(300), &|| false);
        assert!(found.iter().all(|run| run.error.is_none()), "{found:?}");
        assert_eq!(found.len(), 5);
        move |free| found.iter().find(|run| run.free == free).and_then(|run| run.samples_s).expect("measured")
    }

    #[test]
    fn a_slow_source_is_free_when_it_is_replayed() {
        let source: Arc<dyn Source> = Arc::new(Slow);
        let rate = rates(Faults::default(), &source);
        let (now, replayed, raw) = (rate(Free::Consumer), rate(Free::Source), rate(Free::Kernel));
        assert!(replayed > 2.0 * now && raw < 2.0 * now, "{now}, {replayed}, {raw}");
    }

    #[test]
    fn nothing_that_is_free_helps_a_slow_copy() {
        let image = SampleLayout::image(2, 2, 3).expect("a valid layout");
        let source: Arc<dyn Source> = Arc::new(crate::source::random_images(image, 30, 1).expect("images"));
        let rate = rates(Faults { copy: SLOW, ..Faults::default() }, &source);
        let (now, copied) = (rate(Free::Consumer), rate(Free::SourceAndKernel));
        assert!(copied < 2.0 * now, "{now}, {copied}");
    }

    #[test]
    fn what_cannot_be_read_or_is_stopped_has_no_rate() {
        struct Broken;
        impl Source for Broken {
            fn layout(&self) -> SampleLayout {
                SampleLayout::bytes(&[4]).expect("a valid layout")
            }
            fn len(&self) -> u64 {
                3
            }
            fn read(&self, _: &SampleContext, _: &mut SampleWriter<'_>) -> Result<(), SourceError> {
                Err("broken".into())
            }
        }
        let found = what_if(
            &HostBackend::new(),
            &(Arc::new(Broken) as Arc<dyn Source>),
            &LoaderOptions::default(),
            Duration::from_millis(10),
            &|| false,
        );
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|run| run.samples_s.is_none() && run.error.is_some()), "{found:?}");
        assert!(found[1].to_string().contains("not measured, batch 0: sample 0"), "{}", found[1]);
    }
}
