//! From a free slot to jobs for the workers.

use std::sync::Arc;
use std::time::Instant;

use super::super::assembly::Assembly;
use super::super::worker::Job;
use super::Pump;
use super::progress::Begun;
use crate::backend::Lane;
use crate::error::DeviceError;
use crate::layout::BatchLayout;
use crate::staging::Fill;

impl<L: Lane> Pump<L> {
    /// Takes a slot and hands it to the workers; false if that is not possible now.
    pub(super) fn begin_next(&mut self) -> bool {
        // Batches that could not be begun take no slot; they wait here all the same.
        if self.direct.is_some() || self.progress.window.len() >= self.progress.assemblies.len() {
            return false;
        }
        let progress = &mut self.progress;
        let (Some(number), Some(_), None) = (progress.window.to_begin(), &progress.epoch, &progress.lost) else {
            return false;
        };
        let start = self.clock.unwrap_or_else(Instant::now);
        let fill = match self.lane.begin() {
            Ok(Some(fill)) => fill,
            Ok(None) => {
                progress.starved_since.get_or_insert(start);
                return false;
            }
            Err(error @ DeviceError::Lost { .. }) => {
                self.lose(error);
                return false;
            }
            Err(error) => {
                progress.window.begun(None, Begun::Failed(error));
                return true;
            }
        };
        let begun = *self.clock.insert(Instant::now());
        let waited = progress.starved_since.take().map(|since| start - since);
        self.metrics.begun(begun - start, waited);
        self.activity.moved();
        self.observer.flush();
        self.fill_first(fill, start, begun, number);
        // Cutting and handing out took a while.
        self.clock = None;
        true
    }

    /// Has a slot filled with the samples of a batch.
    fn fill_first(&mut self, mut fill: Fill, at: Instant, handed_out: Instant, number: u64) {
        let (slot, progress) = (fill.slot(), &mut self.progress);
        let Some(epoch) = &progress.epoch else { return };
        let (sampler, batch) = (&epoch.sampler, (epoch.sampler.epoch(), number));
        progress.assemblies[slot].start(sampler.batch(number), sampler.padding(number), batch);
        cut(&mut fill, &progress.assemblies[slot], 0, &self.layout, self.workers, &mut progress.cut);
        self.progress.window.begun(Some(slot), Begun::Filling { fill, at, handed_out, ended: None });
        self.hand_out(slot);
    }

    /// The last region of a slot has ended: its batch is ready, or is filled again without the samples that were left out.
    pub(super) fn slot_ended(&mut self, slot: usize) {
        self.activity.moved();
        let assembly = &self.progress.assemblies[slot];
        let first = if self.skips && !assembly.is_cancelled() { assembly.drop_skipped() } else { None };
        let samples = assembly.samples();
        self.progress.slot_ended(slot, self.now());
        if let Some(first) = first
            && samples > 0
        {
            // What lies before the first bad sample stays; something is always read, which ends the slot once more.
            self.fill_again(slot, first.min(samples - 1));
        }
    }

    /// Has a slot filled from sample `from` on.
    fn fill_again(&mut self, slot: usize, from: usize) {
        let Some(Begun::Filling { fill, .. }) = self.progress.window.ready(slot) else { return };
        if !fill.restart(from) {
            // Then the fill cannot be finished either, and that is told.
            return;
        }
        let assembly = &self.progress.assemblies[slot];
        cut(fill, assembly, from, &self.layout, self.workers, &mut self.progress.cut);
        self.progress.window.unready(slot);
        self.hand_out(slot);
    }

    /// Gives a slot's regions to the workers.
    fn hand_out(&mut self, slot: usize) {
        let mut lost_worker = false;
        for job in self.progress.cut.drain(..) {
            // Workers outlive the pump; were one not to, its region is dropped here, which cancels the batch.
            lost_worker |= self.jobs.send(job).is_err();
        }
        if lost_worker {
            self.progress.slot_ended(slot, Instant::now());
        }
    }
}

/// Cuts a slot into regions, from sample `from` on. All are cut before the first is handed out: a worker that ends
/// the last open region reports the slot.
fn cut(
    fill: &mut Fill,
    assembly: &Arc<Assembly>,
    from: usize,
    layout: &BatchLayout,
    workers: usize,
    jobs: &mut Vec<Job>,
) {
    let (slot, samples) = (fill.slot(), assembly.samples());
    jobs.extend(layout.runs(samples - from, workers).map(|run| {
        let region = fill.take_region(layout, run.len());
        Job { assembly: Arc::clone(assembly), slot, region }
    }));
}
