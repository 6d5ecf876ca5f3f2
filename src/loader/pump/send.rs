//! From a filled slot to a delivered batch.

use std::sync::Arc;

use super::super::assembly::Assembly;
use super::super::metrics::Passage;
use super::super::outputs::Output;
use super::progress::Begun;
use super::{Delivered, Pump};
use crate::backend::{Feed, Lane};
use crate::error::{DeviceError, LoadError, Stage};
use crate::staging::{Fill, Finish};

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
                let passage = Passage { epoch, number, slot, begun: at, handed_out, ended, sent, submitted: sent };
                self.finish_fill(fill, passage, output);
            }
        }
        true
    }

    fn finish_fill(&mut self, fill: Fill, passage: Passage, mut output: Output<L::Tensor>) {
        let (slot, number) = (fill.slot(), passage.number);
        let assembly = Arc::clone(&self.progress.assemblies[slot]);
        match fill.finish() {
            Finish::Filled(filled) => {
                let (samples, padding) = match self.settle(&assembly, number) {
                    Ok(counts) => counts,
                    Err(error) => {
                        self.lane.cancel(filled.cancel());
                        self.discard();
                        self.deliver(output, Err(error));
                        return;
                    }
                };
                if samples == 0 {
                    self.lane.cancel(filled.cancel());
                    self.deliver(output, Ok(Delivered { number, samples, padding, at: passage.sent }));
                    return;
                }
                assembly.copy_out(&mut output.indices, &mut output.labels);
                let Output { tensor, indices, labels } = output;
                match self.lane.submit(Feed::Staged(filled), samples, tensor) {
                    Ok(submitted) => {
                        let passage = Passage { submitted: self.look(), ..passage };
                        self.note_submitted(submitted.id, assembly.read_time(), passage);
                        let output = Output { tensor: submitted.tensor, indices, labels };
                        self.deliver(output, Ok(Delivered { number, samples, padding, at: passage.submitted }));
                    }
                    Err(rejected) => {
                        let output = Output { tensor: rejected.tensor, indices, labels };
                        self.reject(output, number, rejected.error);
                    }
                }
            }
            Finish::Cancelled(cancelled) => {
                self.lane.cancel(cancelled);
                match assembly.take_failure() {
                    Some(failure) => self.deliver(output, Err(failure.into_error(number))),
                    None => {
                        let reason = "a worker ended without its batch".to_owned();
                        self.deliver(output, Err(LoadError::Stopped { reason }));
                    }
                }
            }
            Finish::Open(fill) => {
                // The slot was reported ended, so this is a defect of the loader; the slot is lost, the user is told.
                drop(fill);
                let reason = format!("slot {slot} was reported ended while it is being filled");
                self.deliver(output, Err(LoadError::Stopped { reason }));
            }
        }
    }

    /// Counts a filled batch's bad samples: how many samples are left, and how many of them are padding.
    fn settle(&mut self, assembly: &Assembly, number: u64) -> Result<(usize, usize), LoadError> {
        let samples = assembly.samples();
        let Some(epoch) = &self.progress.epoch else { return Ok((samples, 0)) };
        let noted = assembly.take_noted();
        self.toll.take(epoch.sampler.epoch(), number, epoch.sampler.batch(number).len(), noted)?;
        Ok((samples, assembly.padding()))
    }

    pub(super) fn reject(&mut self, output: Output<L::Tensor>, number: u64, source: DeviceError) {
        if matches!(source, DeviceError::Lost { .. }) {
            self.outputs.put(output);
            self.lose(source);
            self.progress.lost_at = number;
        } else {
            self.deliver(output, Err(LoadError::Device { batch: number, stage: Stage::Submit, source }));
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
