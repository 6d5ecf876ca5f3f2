//! Batches that the device gathers from the source's own memory: no slot, no worker, only a list of offsets.

use std::time::{Duration, Instant};

use super::super::locate::Locator;
use super::super::observe::metrics::BatchTimestamps;
use super::super::outputs::Output;
use super::{Delivered, Pump};
use crate::backend::{Feed, Lane, Wait};

/// How the device is fed from the source's own memory.
pub(in crate::loader) struct Direct {
    pub(in crate::loader) locator: Locator,
    /// Batches in flight at most.
    pub(in crate::loader) depth: usize,
    /// Whether the device took long over a batch the last time that it was waited for.
    pub(in crate::loader) slow: bool,
}

/// Over a batch that takes a device longer than this, a thread has time to wake up and send several more.
const SLOW: Duration = Duration::from_micros(300);

impl Direct {
    /// What to wait for when as many batches are in flight as may be. A slow device finishes most of them first: sending several at a
    /// time costs the CPU half as much a batch, since its threads wake up less often and find more in their caches.
    pub(super) fn wait(&self) -> Wait {
        if self.slow { Wait::AtMost((self.depth / 4).max(1).min(self.depth - 1)) } else { Wait::One }
    }

    /// Notes how long the device took over so many batches.
    pub(super) fn waited(&mut self, time: Duration, batches: usize) {
        self.slow = time > SLOW.saturating_mul(u32::try_from(batches.max(1)).unwrap_or(u32::MAX));
    }
}

impl<L: Lane> Pump<L> {
    /// Submits the next batch; false if that is not possible now.
    pub(super) fn submit_direct(&mut self) -> bool {
        let (Some(number), Some(epoch), None) =
            (self.progress.window.to_begin(), &self.progress.epoch, &self.progress.lost)
        else {
            return false;
        };
        let sampler = &epoch.sampler;
        let Some(direct) = &mut self.direct else { return false };
        let start = self.clock.unwrap_or_else(Instant::now);
        if self.lane.in_flight() >= direct.depth {
            self.progress.starved_since.get_or_insert(start);
            return false;
        }
        let Some(mut output) = self.outputs.take() else { return false };
        let waited = self.progress.starved_since.take().map(|since| start - since);
        self.progress.window.pass();
        if let Err(error) = direct.locator.locate((sampler.epoch(), number), sampler.batch(number), &mut output) {
            self.deliver(output, Err(error));
            return true;
        }
        let padding = sampler.padding(number);
        let located = *self.clock.insert(Instant::now());
        self.metrics.begun(located - start, waited);
        let Output { tensor, indices, host } = output;
        let samples = indices.len();
        match self.lane.submit(Feed::Direct(direct.locator.offsets()), samples, tensor) {
            Ok(submitted) => {
                let (epoch, at) = (sampler.epoch(), *self.clock.insert(Instant::now()));
                let [handed_out, ended, sent] = [located; 3];
                let times =
                    BatchTimestamps { epoch, number, slot: None, begun: start, handed_out, ended, sent, submitted: at };
                self.note_submitted(submitted.id, Duration::ZERO, times);
                let output = Output { tensor: submitted.tensor, indices, host };
                self.deliver(output, Ok(Delivered { number, samples, padding, at }));
            }
            Err(rejected) => {
                let output = Output { tensor: rejected.tensor, indices, host };
                self.reject(output, number, rejected.error, Vec::new());
            }
        }
        true
    }
}
