//! From a free slot to jobs for the workers.

use std::sync::Arc;
use std::time::Instant;

use super::super::sampler::Sampler;
use super::super::worker::Job;
use super::Pump;
use super::progress::Begun;
use crate::backend::Lane;
use crate::error::DeviceError;
use crate::staging::Fill;

impl<L: Lane> Pump<L> {
    /// Takes a slot and hands it to the workers; false if that is not possible now.
    pub(super) fn begin_next(&mut self) -> bool {
        // Batches that could not be begun take no slot; they wait here all the same.
        if self.direct.is_some() || self.progress.window.len() >= self.progress.assemblies.len() {
            return false;
        }
        let progress = &mut self.progress;
        let (Some(number), Some(sampler), None) = (progress.window.to_begin(), progress.sampler, &progress.lost) else {
            return false;
        };
        let start = Instant::now();
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
        let begun = Instant::now();
        let waited = progress.starved_since.take().map(|since| start - since);
        self.metrics.begun(begun - start, waited);
        self.hand_out(fill, start, begun, sampler, number);
        true
    }

    /// Cuts a slot into regions and gives them to the workers.
    fn hand_out(&mut self, mut fill: Fill, at: Instant, handed_out: Instant, sampler: Sampler, number: u64) {
        let slot = fill.slot();
        let assembly = &self.progress.assemblies[slot];
        assembly.start(sampler.batch(number));
        let samples = assembly.samples();
        // All regions are cut before the first is handed out: a worker that ends the last open region reports the slot.
        self.progress.cut.extend(self.layout.runs(samples, self.workers).map(|run| {
            let region = fill.cut(self.layout.run_bytes(&run, samples).len());
            Job { assembly: Arc::clone(assembly), slot, run, region }
        }));
        self.progress.window.begun(Some(slot), Begun::Filling { fill, at, handed_out, ended: None });
        let mut lost_worker = false;
        for job in self.progress.cut.drain(..) {
            // Workers outlive the pump; were one not to, its region is dropped here, which cancels the batch.
            lost_worker |= self.jobs.send(job).is_err();
        }
        if lost_worker {
            self.progress.slot_ended(slot);
        }
    }
}
