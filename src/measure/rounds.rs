//! The timed rounds of one configuration.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::busy::{User, check_seen};
use super::cpu::process_cpu;
use super::outcome::VerifyError;
use super::report::{GpuRates, Round};
use super::verify::{Checker, check_timed};
use crate::backend::{Backend, Seen};
use crate::layout::BatchLayout;
use crate::loader::{Batch, Distribution, Loader, LoaderOptions, LoaderStats};
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
    /// What a consumer saw of the first batches of epoch 0, when they were verified.
    reference: Vec<u32>,
}

impl<B: Backend> Contestant<B> {
    pub(super) fn new(
        backend: &B,
        source: &Arc<dyn Source>,
        options: LoaderOptions,
        reference: Vec<u32>,
    ) -> Result<Self, VerifyError> {
        let checker = Checker::new(Arc::clone(source), &options)?;
        let (backend, source) = (backend.clone(), Arc::clone(source));
        Ok(Self { backend, source, options, checker, hold: false, whole: None, staging: None, epoch: 0, reference })
    }

    /// Whether the loaders stay open between the rounds.
    pub(super) fn hold(&mut self, hold: bool) {
        self.hold = hold;
    }

    /// One round from source to tensor, whose last batch is compared, with the latencies of its batches; `None` if it was ended early.
    pub(super) fn round(
        &mut self,
        slice: Duration,
        user: &mut User<'_, B>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<(Round, Distribution)>, VerifyError> {
        self.epoch += 1;
        // Of epoch 0 it is known what the consumer should see.
        let epoch = if user.is_busy() { 0 } else { self.epoch };
        let round = self.checked_round(epoch, slice, user, stop);
        if !self.hold || round.is_err() {
            self.whole = None;
        }
        round
    }

    fn checked_round(
        &mut self,
        epoch: u64,
        slice: Duration,
        user: &mut User<'_, B>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<(Round, Distribution)>, VerifyError> {
        let loader = open(&mut self.whole, &self.backend, &self.source, &self.options)?;
        let (pass, last) = pass(loader, epoch, slice, user, stop)?;
        let latencies = loader.latencies();
        if stop() {
            return Ok(None);
        }
        if let Some(seen) = &pass.seen {
            check_seen(seen, pass.stats.batches, &self.reference)?;
        }
        if let Some(last) = &last {
            check_timed(&mut self.checker, &self.options, last)?;
        }
        Ok(pass.round().map(|round| (round, latencies)))
    }

    /// One round of the staging step alone: one slot and raw bytes, so that the CPU's part follows the device's and is not
    /// timed beside it. In GB/s.
    pub(super) fn staging(&mut self, slice: Duration, stop: &dyn Fn() -> bool) -> Result<Option<f64>, VerifyError> {
        let options = self.options.clone();
        let options = LoaderOptions { slots: 1, outputs: 2, preprocess: Preprocess::Raw, step: None, ..options };
        let loader = open(&mut self.staging, &self.backend, &self.source, &options)?;
        let (pass, last) = pass(loader, self.epoch, slice, &mut User::idle(), stop)?;
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
        let loader = open(&mut loader, &self.backend, &self.source, &options)?;
        let (pass, last) = pass(loader, self.epoch, slice, &mut User::idle(), stop)?;
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
    /// Seconds that the user's CPU waited for the device, apart from `next`.
    waited_s: f64,
    seen: Option<Seen>,
    stats: LoaderStats,
}

/// Takes batches as fast as they come until the time is over, and everything that was begun by then. The clock runs from
/// an idle device to an idle device, so that all work it sees is counted, the user's own included.
pub(super) fn pass<B: Backend>(
    loader: &mut Loader<B>,
    number: u64,
    slice: Duration,
    user: &mut User<'_, B>,
    stop: &dyn Fn() -> bool,
) -> Result<(Pass, Option<Batch<B>>), VerifyError> {
    user.begin().map_err(VerifyError::Consumer)?;
    loader.reset_stats();
    let cpu = process_cpu();
    let start = Instant::now();
    let mut epoch = loader.epoch(number);
    let (mut last, mut ending, mut batches, mut waited) = (None, false, 0, Duration::ZERO);
    while epoch.remaining() > 0 {
        // With one output there is no next batch while this one is held.
        drop(last.take());
        last = epoch.next().transpose()?;
        if let Some(batch) = &last {
            waited += user.take(batch).map_err(VerifyError::Consumer)?;
        }
        batches += 1;
        if !ending && (stop() || (batches >= MIN_BATCHES && start.elapsed() >= slice)) {
            epoch.wind_down();
            ending = true;
        }
    }
    drop(epoch);
    loader.wait_idle()?;
    user.end().map_err(VerifyError::Consumer)?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_s = cpu.zip(process_cpu()).map(|(before, after)| after.saturating_sub(before).as_secs_f64());
    let seen = user.seen().map_err(VerifyError::Consumer)?;
    Ok((Pass { seconds, cpu_s, waited_s: waited.as_secs_f64(), seen, stats: loader.stats() }, last))
}

impl Pass {
    /// `None` if nothing was delivered.
    pub(super) fn round(self) -> Option<Round> {
        let Self { seconds, cpu_s, waited_s, stats, .. } = self;
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
            waited_s,
            stats,
        })
    }
}
