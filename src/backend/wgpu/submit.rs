//! Submitting filled slots.

use super::lane::WgpuLane;
use super::mapped::Memory;
use super::tensor::WgpuTensor;
use super::work::Work;
use crate::backend::{SubmissionId, check_filled};
use crate::error::DeviceError;
use crate::preprocess::{PipelinePlan, Preprocess};
use crate::staging::Filled;

impl WgpuLane {
    pub(super) fn submit_staged(
        &mut self,
        filled: &Filled,
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<SubmissionId, DeviceError> {
        let (slot, memory) = (filled.slot(), self.slots.send(filled)?);
        if let Err(error) = check_filled(&self.spec.layout, filled, samples) {
            self.staging.cancel(slot, memory);
            self.slots.free(slot, None);
            return Err(error);
        }
        let (id, backend) = (self.completions.next_id(), self.backend.clone());
        match backend.scope(|| self.record(id, slot, memory, samples, output)).flatten() {
            Ok(work) => {
                let frees = self.staging.frees_on_submit();
                if frees {
                    self.slots.free(slot, None);
                }
                output.written_by(work.clone());
                self.completions.push(id, (!frees).then_some(slot), work);
                Ok(id)
            }
            Err(error) => {
                self.recover(slot, &error);
                Err(error)
            }
        }
    }

    /// Where the strategy copies a batch to, and at which byte.
    pub(super) fn copies_to<'a>(&'a self, output: &'a WgpuTensor) -> (&'a wgpu::Buffer, u64) {
        match &self.device_bytes {
            Some(buffer) if self.spec.preprocess.computes() => (buffer, 0),
            _ => (output.target(), output.target_offset()),
        }
    }

    /// The number of the field that holds a pipeline's records.
    pub(super) fn geometry_field(&self) -> Option<usize> {
        match &self.spec.preprocess {
            Preprocess::Pipeline(_) => PipelinePlan::record_field(self.spec.layout.sample()).ok(),
            _ => None,
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
        let (to, start) = self.copies_to(output);
        let to = to.clone();
        let bytes = self.spec.layout.copy_bytes(samples) as u64;
        let timed = self.timing.as_ref().map(|timing| (timing, timing.start(id, bytes, &mut encoder)));
        // What kernels read in place is copied nowhere, and may be more than the tensor.
        let end = (start + bytes).min(to.size());
        self.staging.record(slot, memory, &mut encoder, to.slice(start..end));
        if let Some((timing, set)) = timed {
            timing.copied(set, &mut encoder);
        }
        self.record_fields(&mut encoder, self.kernels_read(slot), output, samples);
        if let Some(bindings) = output.bindings(slot) {
            self.kernels.encode(&mut encoder, bindings, samples);
        }
        if let Some((timing, set)) = timed {
            timing.end(set, &mut encoder);
        }
        let step = self.record_step(self.staged_bytes(), samples, output)?;
        let (backend, keep) = (self.backend.clone(), self.staging.keep(slot));
        backend.send(std::iter::once(encoder.finish()).chain(step), keep, || {
            self.staging.sent(slot);
            if let Some((timing, set)) = timed {
                timing.sent(set);
            }
        })
    }

    /// Records the copies of the fields that no kernel works on, from where the kernels read to the tensors.
    pub(super) fn record_fields(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        from: Option<&wgpu::Buffer>,
        output: &WgpuTensor,
        samples: usize,
    ) {
        let Some(from) = from else { return };
        let geometry = self.geometry_field().filter(|_| output.is_given());
        for field in self.copied_fields.iter().filter(|field| Some(field.field) != geometry) {
            let tensor = field.of(samples);
            let bytes = (tensor.byte_len() as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
            let to = output.target_offset() + tensor.offset as u64;
            encoder.copy_buffer_to_buffer(from, field.slot_offset as u64, output.target(), to, bytes);
        }
    }

    /// Where the kernels find the bytes of a slot.
    pub(super) fn kernels_read(&self, slot: usize) -> Option<&wgpu::Buffer> {
        self.staging.in_place().get(slot).or(self.device_bytes.as_ref())
    }

    /// Makes a slot usable again whose submission failed.
    fn recover(&mut self, slot: usize, error: &DeviceError) {
        let recovered = match error {
            DeviceError::Lost { .. } => return self.slots.give_up(slot),
            _ => self.staging.recover(slot),
        };
        match recovered {
            Ok(()) => self.slots.free(slot, None),
            Err(error) => {
                log::error!("slot {slot} is lost: its submission failed, and it cannot be used again: {error}");
                self.slots.give_up(slot);
            }
        }
    }
}
