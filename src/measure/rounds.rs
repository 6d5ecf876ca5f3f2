//! The timed rounds of one configuration.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cpu::process_cpu;
use super::outcome::VerifyError;
use super::report::{GpuRates, Round};
use super::verify::{Checker, check_timed};
use crate::backend::Backend;
use crate::layout::BatchLayout;
use crate::loader::{Batch, Loader, LoaderOptions, LoaderStats};
use crate::preprocess::Preprocess;
use crate::source::Source;

/// A round has at least this many batches, however slow the device.
const MIN_BATCHES: u64 = 3;

/// A configuration that is timed round by round.
pub(super) struct Contestant<B: Backend> {
    backend: B,
    source: Arc<dyn Source>,
    options: LoaderOptions,
    checker: Checker,
    /// Whether the loaders stay open between the rounds.
    hold: bool,
    whole: Option<Loader<B>>,
    staging: Option<Loader<B>>,
    epoch: u64,
}

impl<B: Backend> Contestant<B> {
    pub(super) fn new(backend: &B, source: &Arc<dyn Source>, options: LoaderOptions) -> Result<Self, VerifyError> {
        let checker = Checker::new(Arc::clone(source), &options)?;
        let (backend, source) = (backend.clone(), Arc::clone(source));
        Ok(Self { backend, source, options, checker, hold: false, whole: None, staging: None, epoch: 0 })
    }

    /// Whether the loaders stay open between the rounds.
    pub(super) fn hold(&mut self, hold: bool) {
        self.hold = hold;
    }

    /// One round from source to tensor, whose last batch is compared; `None` if it was ended early.
    pub(super) fn round(&mut self, slice: Duration, stop: &dyn Fn() -> bool) -> Result<Option<Round>, VerifyError> {
        self.epoch += 1;
        let loader = open(&mut self.whole, &self.backend, &self.source, &self.options)?;
        let (pass, last) = pass(loader, self.epoch, slice, stop)?;
        if stop() {
            return Ok(None);
        }
        if let Some(last) = &last {
            check_timed(&mut self.checker, &self.options, last)?;
        }
        drop(last);
        if !self.hold {
            self.whole = None;
        }
        Ok(pass.round())
    }

    /// One round of the staging step alone: one slot and raw bytes, so that the CPU's part follows the device's and is not
    /// timed beside it. In GB/s.
    pub(super) fn staging(&mut self, slice: Duration, stop: &dyn Fn() -> bool) -> Result<Option<f64>, VerifyError> {
        let options = LoaderOptions { slots: 1, outputs: 2, preprocess: Preprocess::Raw, ..self.options.clone() };
        let loader = open(&mut self.staging, &self.backend, &self.source, &options)?;
        let (pass, last) = pass(loader, self.epoch, slice, stop)?;
        drop(last);
        if !self.hold {
            self.staging = None;
        }
        let staging_s = pass.stats.staging_s();
        Ok((!stop() && staging_s > 0.0).then(|| pass.stats.bytes as f64 / 1e9 / staging_s))
    }

    /// What the device's own clock says of a pass that is not timed otherwise: `None` without such a clock.
    pub(super) fn gpu(&self, slice: Duration, stop: &dyn Fn() -> bool) -> Result<Option<GpuRates>, VerifyError> {
        let options = LoaderOptions { timing: true, ..self.options.clone() };
        let mut loader = None;
        let (pass, last) = pass(open(&mut loader, &self.backend, &self.source, &options)?, self.epoch, slice, stop)?;
        drop(last);
        let layout = BatchLayout::new(self.source.layout(), options.batch_size)?;
        let (samples, copied) = (options.batch_size, layout.payload(options.batch_size));
        let moved = match &options.preprocess {
            Preprocess::Raw => None,
            preprocess => Some((copied + preprocess.tensor(&layout, samples).byte_len()) as u64),
        };
        Ok(pass.stats.gpu.and_then(|times| GpuRates::of(times, copied as u64, moved)))
    }
}

/// The loader that is open, or a new one that has been warmed up.
pub(super) fn open<'a, B: Backend>(
    opened: &'a mut Option<Loader<B>>,
    backend: &B,
    source: &Arc<dyn Source>,
    options: &LoaderOptions,
) -> Result<&'a mut Loader<B>, VerifyError> {
    if opened.is_none() {
        let mut loader = Loader::new(backend, Arc::clone(source), options.clone())?;
        // Every slot is written once, and pipelines are compiled.
        let mut epoch = loader.epoch(0);
        for _ in 0..options.slots {
            epoch.next().transpose()?;
        }
        epoch.wind_down();
        epoch.try_for_each(|batch| batch.map(drop))?;
        drop(epoch);
        loader.wait_idle()?;
        *opened = Some(loader);
    }
    opened.as_mut().ok_or(VerifyError::Stopped)
}

/// What one pass took.
pub(super) struct Pass {
    seconds: f64,
    cpu_s: Option<f64>,
    stats: LoaderStats,
}

/// Takes batches as fast as they come until the time is over, and everything that was begun by then. The clock runs from
/// an idle device to an idle device, so that all work it sees is counted.
pub(super) fn pass<B: Backend>(
    loader: &mut Loader<B>,
    number: u64,
    slice: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<(Pass, Option<Batch<B>>), VerifyError> {
    loader.reset_stats();
    let cpu = process_cpu();
    let start = Instant::now();
    let mut epoch = loader.epoch(number);
    let mut last = None;
    let mut ending = false;
    let mut batches = 0;
    while epoch.remaining() > 0 {
        // With one output there is no next batch while this one is held.
        drop(last.take());
        last = epoch.next().transpose()?;
        batches += 1;
        if !ending && (stop() || (batches >= MIN_BATCHES && start.elapsed() >= slice)) {
            epoch.wind_down();
            ending = true;
        }
    }
    drop(epoch);
    loader.wait_idle()?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_s = cpu.zip(process_cpu()).map(|(before, after)| after.saturating_sub(before).as_secs_f64());
    Ok((Pass { seconds, cpu_s, stats: loader.stats() }, last))
}

impl Pass {
    /// `None` if nothing was delivered.
    pub(super) fn round(self) -> Option<Round> {
        let Self { seconds, cpu_s, stats } = self;
        let gb = stats.bytes as f64 / 1e9;
        (stats.batches > 0 && seconds > 0.0).then(|| Round {
            seconds,
            batches: stats.batches,
            samples: stats.samples,
            bytes: stats.bytes,
            samples_s: stats.samples as f64 / seconds,
            gb_s: gb / seconds,
            cpu_s_per_gb: cpu_s.map(|cpu_s| cpu_s / gb),
            staging_gb_s: None,
            stats,
        })
    }
}
