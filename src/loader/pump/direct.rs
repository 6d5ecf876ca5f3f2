//! Batches that the device gathers from the source's own memory: no slot, no worker, only a list of offsets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::metrics::Passage;
use super::super::outputs::Output;
use super::{Delivered, Pump};
use crate::backend::{Feed, Lane};
use crate::error::LoadError;
use crate::source::Source;

/// Where samples lie in the source's own memory.
pub(in crate::loader) struct Direct {
    pub(in crate::loader) source: Arc<dyn Source>,
    /// Batches in flight at most.
    pub(in crate::loader) depth: usize,
    pub(in crate::loader) offsets: Vec<u64>,
}

impl Direct {
    /// Looks up the samples of a batch.
    fn locate<T>(&mut self, indices: impl Iterator<Item = u64>, output: &mut Output<T>) {
        self.offsets.clear();
        output.indices.clear();
        output.labels.clear();
        for index in indices {
            self.offsets.push(self.source.position(index));
            output.indices.push(index);
            output.labels.extend(self.source.label(index));
        }
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
        if let Err(source) = direct.source.check() {
            let index = sampler.batch(number).next().unwrap_or_default();
            self.deliver(output, Err(LoadError::Sample { index, batch: number, source }));
            return true;
        }
        direct.locate(sampler.batch(number), &mut output);
        let padding = sampler.padding(number);
        let located = *self.clock.insert(Instant::now());
        self.metrics.begun(located - start, waited);
        let Output { tensor, indices, labels } = output;
        let samples = indices.len();
        match self.lane.submit(Feed::Direct(&direct.offsets), samples, tensor) {
            Ok(submitted) => {
                let (epoch, at) = (sampler.epoch(), *self.clock.insert(Instant::now()));
                let [handed_out, ended, sent] = [located; 3];
                let passage =
                    Passage { epoch, number, slot: None, begun: start, handed_out, ended, sent, submitted: at };
                self.note_submitted(submitted.id, Duration::ZERO, passage);
                let output = Output { tensor: submitted.tensor, indices, labels };
                self.deliver(output, Ok(Delivered { number, samples, padding, at }));
            }
            Err(rejected) => {
                let output = Output { tensor: rejected.tensor, indices, labels };
                self.reject(output, number, rejected.error);
            }
        }
        true
    }
}
