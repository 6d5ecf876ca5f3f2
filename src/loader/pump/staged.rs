//! Batches that workers fill: from a slot to regions, and back to a slot that can be submitted.

use std::sync::Arc;
use std::time::Instant;

use super::super::assembly::Assembly;
use super::super::observe::metrics::BatchTimestamps;
use super::super::order::sampler::Sampler;
use super::super::schedule::{BatchId, Event};
use super::super::worker::Job;
use super::epochs::Epochs;
use super::prepared::{Lists, Prepared, Unsent};
use crate::backend::{Input, Lane};
use crate::error::{DeviceError, LoadError, Stage};
use crate::layout::BatchLayout;
use crate::staging::{Fill, Finish};

/// Slots that workers fill.
pub(in crate::loader) struct Staged {
    /// One a slot.
    assemblies: Vec<Arc<Assembly>>,
    /// By slot; `None` where it is not being filled.
    fills: Vec<Option<Filling>>,
    /// Batches that could not be begun.
    failed: Vec<(BatchId, LoadError)>,
    jobs: flume::Sender<Job>,
    layout: BatchLayout,
    workers: usize,
    /// Whether bad samples are left out.
    skips: bool,
    /// Regions between being taken and being handed out; used again.
    regions: Vec<Job>,
}

struct Filling {
    fill: Fill,
    begun: Instant,
    handed_out: Instant,
    ended: Option<Instant>,
}

impl Staged {
    /// For batches of at most `samples` samples.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(in crate::loader) fn new(
        slots: usize,
        samples: usize,
        jobs: flume::Sender<Job>,
        layout: BatchLayout,
        workers: usize,
        skips: bool,
    ) -> Result<Self, DeviceError> {
        let assembly = |_| Ok(Arc::new(Assembly::new(&layout, samples)?));
        Ok(Self {
            assemblies: (0..slots).map(assembly).collect::<Result<_, DeviceError>>()?,
            fills: (0..slots).map(|_| None).collect(),
            failed: Vec::new(),
            jobs,
            layout,
            workers,
            skips,
            regions: Vec::new(),
        })
    }

    /// Has a slot filled with the samples of a batch; `begun` and `handed_out` are when its memory was asked for and there.
    pub(super) fn begin(
        &mut self,
        batch: BatchId,
        mut fill: Fill,
        sampler: &Sampler,
        begun: Instant,
        handed_out: Instant,
    ) -> Event {
        let (slot, number) = (fill.slot(), batch.number);
        let assembly = &self.assemblies[slot];
        assembly.start(sampler.batch(number), sampler.padding(number), (sampler.epoch(), number));
        take_regions(&mut fill, assembly, 0, &self.layout, self.workers, &mut self.regions);
        if !self.hand_out() {
            let reason = "its workers have ended".to_owned();
            self.failed.push((batch, LoadError::Stopped { reason }));
            return Event::BeginFailed;
        }
        self.fills[slot] = Some(Filling { fill, begun, handed_out, ended: None });
        Event::Begun { slot }
    }

    /// The device has no memory for a batch.
    pub(super) fn refused(&mut self, batch: BatchId, source: DeviceError) -> Event {
        self.failed.push((batch, LoadError::Device { batch: batch.number, stage: Stage::Begin, source }));
        Event::BeginFailed
    }

    /// Why a batch could not be begun.
    pub(super) fn take_failure(&mut self, batch: BatchId) -> LoadError {
        match self.failed.iter().position(|(failed, _)| *failed == batch) {
            Some(position) => self.failed.swap_remove(position).1,
            None => LoadError::Stopped { reason: format!("batch {} failed without a reason", batch.number) },
        }
    }

    /// Forgets what belongs to batches that are not wanted any more.
    pub(super) fn forget_failures(&mut self) {
        self.failed.clear();
    }

    /// The last region of a slot has ended. False if it is filled again, without the samples that are to be left out.
    pub(super) fn slot_ended(&mut self, slot: usize, now: Instant) -> bool {
        let assembly = &self.assemblies[slot];
        let first = if self.skips && !assembly.is_cancelled() { assembly.drop_skipped() } else { None };
        let samples = assembly.samples();
        if let Some(filling) = &mut self.fills[slot] {
            filling.ended = Some(now);
        }
        // What lies before the first bad sample stays; something is always read, which ends the slot once more.
        !first.is_some_and(|first| samples > 0 && self.fill_again(slot, first.min(samples - 1)))
    }

    /// Has a slot filled from sample `from` on; false if it cannot be, and then it cannot be finished either, which is reported.
    fn fill_again(&mut self, slot: usize, from: usize) -> bool {
        let Some(Filling { fill, .. }) = &mut self.fills[slot] else { return false };
        if !fill.restart(from) {
            return false;
        }
        take_regions(fill, &self.assemblies[slot], from, &self.layout, self.workers, &mut self.regions);
        self.hand_out()
    }

    /// Gives the regions to the workers; false if they are gone, and then the slot cannot be filled.
    fn hand_out(&mut self) -> bool {
        let mut served = true;
        for job in self.regions.drain(..) {
            served &= self.jobs.send(job).is_ok();
        }
        served
    }

    /// Asks the workers to give a slot up.
    pub(super) fn cancel(&self, slot: usize) {
        self.assemblies[slot].cancel();
    }

    /// Gives back a slot that has ended and is not wanted.
    pub(super) fn discard<L: Lane>(&mut self, slot: usize, lane: &mut L) {
        match self.fills[slot].take().map(|filling| filling.fill.finish()) {
            Some(Finish::Filled(filled)) => lane.cancel(filled.cancel()),
            Some(Finish::Cancelled(cancelled)) => lane.cancel(cancelled),
            Some(Finish::Open(_)) | None => {}
        }
    }

    /// Makes a submission of a slot that has ended, and writes the lists that go with it.
    pub(super) fn prepare<L: Lane>(
        &mut self,
        batch: BatchId,
        slot: usize,
        lane: &mut L,
        epochs: &mut Epochs,
        now: Instant,
        (indices, host): Lists<'_>,
    ) -> Result<Prepared<'static>, Box<Unsent>> {
        let assembly = Arc::clone(&self.assemblies[slot]);
        let Some(Filling { fill, begun, handed_out, ended }) = self.fills[slot].take() else {
            return Err(Unsent::stopped(format!("slot {slot} was reported ended and is not being filled")));
        };
        let (filled, ended) = match fill.finish() {
            Finish::Filled(filled) => (filled, ended.unwrap_or(handed_out)),
            Finish::Cancelled(cancelled) => {
                lane.cancel(cancelled);
                return Err(failure(&assembly, batch, epochs));
            }
            // The slot was reported ended, so this is a defect of the loader; the slot is lost, the user learns of it.
            Finish::Open(_) => {
                return Err(Unsent::stopped(format!("slot {slot} was reported ended while it is being filled")));
            }
        };
        let (bad, error) = epochs.settle(batch, assembly.take_noted());
        let (samples, padding, number) = (assembly.samples(), assembly.padding(), batch.number);
        if error.is_some() || samples == 0 {
            lane.cancel(filled.cancel());
            return Err(Unsent::settled(batch, padding, bad, error, now));
        }
        assembly.move_out(indices, host);
        let (epoch, read_time) = (assembly.batch().0, assembly.read_time());
        let times =
            BatchTimestamps { epoch, number, slot: Some(slot), begun, handed_out, ended, sent: now, submitted: now };
        Ok(Prepared { input: Input::Staged(filled), samples, padding, bad, read_time, times })
    }
}

/// Why a batch could not be filled.
fn failure(assembly: &Assembly, batch: BatchId, epochs: &mut Epochs) -> Box<Unsent> {
    let Some(failure) = assembly.take_failure() else {
        return Unsent::stopped("a worker ended without its batch".to_owned());
    };
    let (bad, too_many) = epochs.settle(batch, assembly.take_noted());
    let ends_epoch = too_many.is_some();
    let error = too_many.unwrap_or_else(|| failure.into_error(batch.number));
    Box::new(Unsent { result: Err(error), bad, ends_epoch })
}

/// Takes a slot's regions, from sample `from` on. All are taken before the first is handed out: a
/// worker that ends the last open region reports the slot.
fn take_regions(
    fill: &mut Fill,
    assembly: &Arc<Assembly>,
    from: usize,
    layout: &BatchLayout,
    workers: usize,
    regions: &mut Vec<Job>,
) {
    let (slot, samples) = (fill.slot(), assembly.samples());
    regions.extend(layout.runs(samples - from, workers).map(|run| {
        let region = fill.take_region(layout, run.len());
        Job { assembly: Arc::clone(assembly), slot, region }
    }));
}
