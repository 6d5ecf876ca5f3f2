//! From a filled slot to a delivered batch.

use std::sync::Arc;

use super::super::assembly::Assembly;
use super::super::bad::BadSample;
use super::super::observe::metrics::BatchTimestamps;
use super::super::outputs::Output;
use super::progress::Begun;
use super::{Delivered, Pump};
use crate::backend::{Feed, Lane};
use crate::error::{DeviceError, LoadError, Stage};
use crate::staging::{Fill, Filled, Finish};

impl<L: Lane> Pump<L> {
    /// Sends the batch whose turn it is, if it is ready and there is an output for it.
    pub(super) fn send_front(&mut self) -> bool {
        if !self.progress.window.is_ready() {
            return false;
        }
        if self.progress.discarding || self.progress.lost.is_some() {
            self.discard_front();
            return true;
        }
        let Some(output) = self.outputs.take() else { return false };
        let Some((number, begun)) = self.progress.window.take_ready() else { return false };
        match begun {
            Begun::Failed(source) => {
                self.deliver(output, Err(LoadError::Device { batch: number, stage: Stage::Begin, source }));
            }
            Begun::Filling { fill, at, handed_out, ended } => {
                let epoch = self.progress.epoch.as_ref().map_or(0, |epoch| epoch.sampler.epoch());
                let (slot, ended, sent) = (Some(fill.slot()), ended.unwrap_or(handed_out), self.now());
                let times =
                    BatchTimestamps { epoch, number, slot, begun: at, handed_out, ended, sent, submitted: sent };
                self.finish_fill(fill, times, output);
            }
        }
        true
    }

    fn finish_fill(&mut self, fill: Fill, times: BatchTimestamps, output: Output<L::Tensor>) {
        let (slot, number) = (fill.slot(), times.number);
        let assembly = Arc::clone(&self.progress.assemblies[slot]);
        match fill.finish() {
            Finish::Filled(filled) => {
                let (bad, error) = self.settle(&assembly, number);
                let (samples, padding) = (assembly.samples(), assembly.padding());
                if error.is_none() && samples > 0 {
                    self.send(filled, &assembly, times, output, bad);
                    return;
                }
                self.lane.cancel(filled.cancel());
                if error.is_some() {
                    self.discard();
                }
                let result = error.map_or(Ok(Delivered { number, samples, padding, at: times.sent }), Err);
                self.deliver_with(output, result, bad);
            }
            Finish::Cancelled(cancelled) => {
                self.lane.cancel(cancelled);
                self.deliver_failure(&assembly, output, number);
            }
            Finish::Open(fill) => {
                // The slot was reported ended, so this is a defect of the loader; the slot is lost, the user is told.
                drop(fill);
                let reason = format!("slot {slot} was reported ended while it is being filled");
                self.deliver(output, Err(LoadError::Stopped { reason }));
            }
        }
    }

    fn send(
        &mut self,
        filled: Filled,
        assembly: &Assembly,
        times: BatchTimestamps,
        mut output: Output<L::Tensor>,
        bad: Vec<BadSample>,
    ) {
        assembly.move_out(&mut output.indices, &mut output.host);
        let (number, samples, padding) = (times.number, assembly.samples(), assembly.padding());
        let Output { tensor, indices, host } = output;
        match self.lane.submit(Feed::Staged(filled), samples, tensor) {
            Ok(submitted) => {
                let times = BatchTimestamps { submitted: self.look(), ..times };
                self.note_submitted(submitted.id, assembly.read_time(), times);
                let output = Output { tensor: submitted.tensor, indices, host };
                self.deliver_with(output, Ok(Delivered { number, samples, padding, at: times.submitted }), bad);
            }
            Err(rejected) => {
                let output = Output { tensor: rejected.tensor, indices, host };
                self.reject(output, number, rejected.error, bad);
            }
        }
    }

    /// Delivers why a batch could not be filled.
    fn deliver_failure(&mut self, assembly: &Assembly, output: Output<L::Tensor>, number: u64) {
        let Some(failure) = assembly.take_failure() else {
            let reason = "a worker ended without its batch".to_owned();
            self.deliver(output, Err(LoadError::Stopped { reason }));
            return;
        };
        let (bad, too_many) = self.settle(assembly, number);
        if too_many.is_some() {
            self.discard();
        }
        self.deliver_with(output, Err(too_many.unwrap_or_else(|| failure.into_error(number))), bad);
    }

    /// Counts a batch's bad samples, and tells whether they are too many.
    fn settle(&mut self, assembly: &Assembly, number: u64) -> (Vec<BadSample>, Option<LoadError>) {
        let Some(epoch) = &self.progress.epoch else { return (Vec::new(), None) };
        let asked = epoch.sampler.batch_len(number);
        self.bad_limit.take(epoch.sampler.epoch(), number, asked, assembly.take_noted())
    }

    /// Delivers why a batch was not sent, with what was bad of it all the same.
    pub(super) fn reject(&mut self, output: Output<L::Tensor>, number: u64, source: DeviceError, bad: Vec<BadSample>) {
        if matches!(source, DeviceError::Lost { .. }) {
            self.outputs.put(output);
            self.lose(source);
            self.progress.lost_at = number;
        } else {
            self.deliver_with(output, Err(LoadError::Device { batch: number, stage: Stage::Submit, source }), bad);
        }
    }

    /// Takes the oldest batch out without sending it.
    pub(super) fn discard_front(&mut self) {
        if let Some((_, Begun::Filling { fill, .. })) = self.progress.window.take_ready() {
            match fill.finish() {
                Finish::Filled(filled) => self.lane.cancel(filled.cancel()),
                Finish::Cancelled(cancelled) => self.lane.cancel(cancelled),
                Finish::Open(_) => {}
            }
        }
    }
}
