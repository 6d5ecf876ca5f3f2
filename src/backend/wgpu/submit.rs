//! Submitting filled slots.

use super::lane::{InFlight, Stage, WgpuLane};
use super::mapped::Memory;
use super::tensor::WgpuTensor;
use super::work::Work;
use crate::backend::SubmissionId;
use crate::error::DeviceError;
use crate::staging::Filled;

impl WgpuLane {
    /// Takes the memory of a filled slot, if it holds all that is to be sent.
    fn take(&mut self, filled: &Filled, samples: usize) -> Result<Memory, DeviceError> {
        let slot = filled.slot();
        let stage = std::mem::replace(&mut self.slots[slot].stage, Stage::Free);
        let Stage::Filling(loan) = stage else {
            self.slots[slot].stage = stage;
            return Err(DeviceError::Refused { message: format!("slot {slot} was not being filled") });
        };
        let memory = loan.filled(filled);
        let needed = self.spec.layout.payload(samples);
        if samples == 0 || samples > self.spec.layout.batch_size() || filled.bytes() < needed {
            self.staging.cancel(slot, memory);
            let message = format!("{} bytes are filled and {samples} samples need {needed}", filled.bytes());
            return Err(DeviceError::Refused { message });
        }
        Ok(memory)
    }

    pub(super) fn try_submit(
        &mut self,
        filled: &Filled,
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<SubmissionId, DeviceError> {
        let slot = filled.slot();
        let memory = self.take(filled, samples)?;
        let (id, backend) = (self.next_id, self.backend.clone());
        match backend.scope(|| self.record(id, slot, memory, samples, output)).flatten() {
            Ok(work) => {
                self.next_id += 1;
                let frees = self.staging.frees_on_submit();
                self.slots[slot].stage = if frees { Stage::Free } else { Stage::InFlight };
                output.written_by(work.clone());
                self.in_flight.push_back(InFlight { id, slot: (!frees).then_some(slot), work });
                Ok(id)
            }
            Err(error) => {
                // A number that was used must not be reported for the next submission.
                self.next_id += 1;
                self.slots[slot].stage = self.recover(slot, &error);
                Err(error)
            }
        }
    }

    /// Records copy and kernels and submits them.
    fn record(
        &mut self,
        id: SubmissionId,
        slot: usize,
        memory: Memory,
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<Work, DeviceError> {
        let desc = wgpu::CommandEncoderDescriptor { label: Some("gpufeed batch") };
        let mut encoder = self.backend.device().create_command_encoder(&desc);
        let to = self.copies_to(output).clone();
        let bytes = self.spec.layout.copy_bytes(samples) as u64;
        let timed = self.timing.as_ref().map(|timing| (timing, timing.start(id, bytes, &mut encoder)));
        self.staging.record(slot, memory, &mut encoder, &to, bytes);
        if let Some((timing, set)) = timed {
            timing.copied(set, &mut encoder);
        }
        if let Some(bindings) = output.bindings(slot) {
            self.kernels.encode(&mut encoder, bindings, samples);
        }
        if let Some((timing, set)) = timed {
            timing.end(set, &mut encoder);
        }
        let (backend, keep) = (self.backend.clone(), self.staging.keep(slot));
        backend.send([encoder.finish()], keep, || {
            self.staging.sent(slot);
            if let Some((timing, set)) = timed {
                timing.sent(set);
            }
        })
    }

    fn recover(&mut self, slot: usize, error: &DeviceError) -> Stage {
        if matches!(error, DeviceError::Lost { .. }) {
            return Stage::Broken;
        }
        match self.staging.recover(slot) {
            Ok(()) => Stage::Free,
            Err(error) => {
                log::error!("slot {slot} is lost: its submission failed, and it cannot be used again: {error}");
                Stage::Broken
            }
        }
    }
}
