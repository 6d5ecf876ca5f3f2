//! Sending a batch: the copy on one stream, the kernels on the other.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError};

use super::backend::reads_host;
use super::driver::{self, Event, Memory};
use super::lane::{CudaLane, Running, SlotRead};
use super::tensor::CudaTensor;
use super::timing::Timing;
use crate::backend::{CudaBatch, SubmissionId, check_filled, check_lists};
use crate::error::DeviceError;
use crate::preprocess::{Geometry, PipelinePlan, Preprocess};
use crate::staging::Filled;

impl CudaLane {
    pub(super) fn submit_staged(
        &mut self,
        filled: &Filled,
        samples: usize,
        output: &CudaTensor,
    ) -> Result<SubmissionId, DeviceError> {
        let (slot, memory) = (filled.slot(), self.slots.send(filled)?);
        let (target, event) = match self.prepare(filled, samples, output) {
            Ok(prepared) => prepared,
            Err(error) => {
                self.slots.free(slot, self.memory_of_slots.keep(memory));
                return Err(error);
            }
        };
        let read = self.upload(slot, memory, event, target, samples, output)?;
        let queued = read.copying.hold(&self.compute).map_err(|error| self.failed(error));
        match queued.and_then(|()| self.run_kernels(target, samples, output)) {
            Ok(done) => Ok(self.sent(Some(read), done)),
            Err(error) => {
                // The copy is on its way already. Whatever it brings is overwritten before anything reads it.
                self.end_copy(read);
                Err(error)
            }
        }
    }

    /// Checks a filled slot, and finds what its copy needs: where to, and the event that ends it.
    fn prepare(
        &mut self,
        filled: &Filled,
        samples: usize,
        output: &CudaTensor,
    ) -> Result<(Option<usize>, Event), DeviceError> {
        self.backend.lost().check()?;
        check_filled(&self.spec.layout, filled, samples)?;
        let event = self.spare_event()?;
        match self.target(output) {
            Ok(target) => Ok((target, event)),
            Err(error) => {
                self.spare.push(event);
                Err(error)
            }
        }
    }

    /// Queues the copy of a slot, which is free again where that fails.
    fn upload(
        &mut self,
        slot: usize,
        memory: Memory,
        event: Event,
        target: Option<usize>,
        samples: usize,
        output: &CudaTensor,
    ) -> Result<SlotRead, DeviceError> {
        let to = target.map_or(output.memory(), |buffer| &self.buffers[buffer].memory);
        let bytes = self.spec.layout.copy_bytes(samples).min(to.bytes());
        if let Some(timing) = &mut self.timing {
            timing.copy_starts(&self.upload);
        }
        let copying = driver::upload(&self.upload, memory, event, to, bytes).map_err(|not_copied| {
            self.spare.push(not_copied.event);
            self.slots.free(slot, self.memory_of_slots.keep(not_copied.memory));
            self.backend.lost().error("submitting a batch", not_copied.error)
        })?;
        if let Some(timing) = &mut self.timing {
            timing.copy_ends(&self.upload);
        }
        Ok(SlotRead { slot, copying })
    }

    /// Chooses where a batch is copied to, a device buffer or the output itself, and makes the streams wait for it.
    fn target(&mut self, output: &CudaTensor) -> Result<Option<usize>, DeviceError> {
        if matches!(self.spec.preprocess, Preprocess::Raw) {
            output.hold_for_uses(&self.upload)?;
            return Ok(None);
        }
        output.hold_for_uses(&self.compute)?;
        let buffer = self.next_buffer;
        self.next_buffer = (buffer + 1) % self.buffers.len();
        self.buffers[buffer].read.hold(&self.upload).map_err(|error| self.failed(error))?;
        Ok(Some(buffer))
    }

    /// Queues the kernels behind a copy, and what tells of their end.
    fn run_kernels(
        &mut self,
        target: Option<usize>,
        samples: usize,
        output: &CudaTensor,
    ) -> Result<Event, DeviceError> {
        let done = self.spare_event()?;
        let from = target.map_or(output.memory(), |buffer| &self.buffers[buffer].memory);
        let (stream, to) = (&self.compute, output.memory());
        if let Some(timing) = &mut self.timing {
            timing.kernel_starts(stream, false);
        }
        let beside = self.beside.iter().try_for_each(|field| {
            let tensor = field.of(samples);
            driver::copy_on_device(stream, (from, field.slot_offset), (to, tensor.offset), tensor.byte_len())
        });
        let queued = beside.and_then(|()| self.kernels.launch(stream, from, to, output.sums(), samples)).map(|()| {
            if let Some(timing) = &mut self.timing {
                timing.kernel_ends(stream);
            }
        });
        // Whatever a step says: what was queued before it reads the buffer.
        let stepped = queued.map(|()| self.queue_step(target, samples, output));
        let ended = stepped.as_ref().map_or_else(
            |error| Err(*error),
            |_| {
                target.map_or(Ok(()), |buffer| self.buffers[buffer].read.record(&self.compute))?;
                done.record(&self.compute)
            },
        );
        let compute = Arc::clone(&self.compute);
        let done = self.mark(ended, done, output, &compute)?;
        match stepped {
            Ok(Err(error)) => {
                self.spare.push(done);
                Err(error)
            }
            _ => Ok(done),
        }
    }

    /// Has the application's step queued behind the kernels.
    fn queue_step(&self, target: Option<usize>, samples: usize, output: &CudaTensor) -> Result<(), DeviceError> {
        let Some(step) = &self.spec.step else { return Ok(()) };
        let batch = CudaBatch {
            input: target.map(|buffer| self.buffers[buffer].memory.address()),
            layout: &self.spec.layout,
            output: output.memory().address(),
            tensors: &self.tensors,
            samples,
        };
        driver::make_current(self.context()).map_err(|error| self.failed(error))?;
        step.queue(&self.compute, &batch)
    }

    /// Marks the output as written where all was queued; gives the event back.
    fn mark(
        &mut self,
        queued: Result<(), DriverError>,
        done: Event,
        output: &CudaTensor,
        stream: &CudaStream,
    ) -> Result<Event, DeviceError> {
        match queued.and_then(|()| output.written_on(stream)) {
            Ok(()) => Ok(done),
            Err(error) => {
                self.spare.push(done);
                Err(self.failed(error))
            }
        }
    }

    pub(super) fn submit_direct(
        &mut self,
        offsets: &[u64],
        records: &[[f32; Geometry::WORDS]],
        samples: usize,
        output: &CudaTensor,
    ) -> Result<SubmissionId, DeviceError> {
        self.backend.lost().check()?;
        check_lists(&self.spec, samples, offsets, records)?;
        let sample_bytes = self.spec.layout.payload(1);
        let refused = |message: String| Err(DeviceError::Refused { message });
        let Some(direct) = &self.direct else {
            return refused(format!("strategy `{}` is fed through slots", self.spec.strategy));
        };
        if !direct.memory().covers(offsets, sample_bytes) {
            return refused(format!(
                "{samples} samples of {sample_bytes} bytes do not lie at these offsets of the memory"
            ));
        }
        let done = if reads_host(&self.spec, self.backend.gather()) {
            self.gather_in_kernel(offsets, output)?
        } else {
            self.gather_by_copies(offsets, records, output)?
        };
        Ok(self.sent(None, done))
    }

    fn gather_by_copies(
        &mut self,
        offsets: &[u64],
        records: &[[f32; Geometry::WORDS]],
        output: &CudaTensor,
    ) -> Result<Event, DeviceError> {
        let target = self.target(output)?;
        let to = target.map_or(output.memory(), |buffer| &self.buffers[buffer].memory);
        let (batch, bytes) = (self.backend.batch(), self.spec.layout.payload(1));
        self.records.clear();
        self.records.extend_from_slice(records);
        if let Some(timing) = &mut self.timing {
            timing.copy_starts(&self.upload);
        }
        let queued = match &mut self.direct {
            Some(direct) => direct.copy(0, batch, offsets, bytes, to),
            None => Ok(()),
        };
        let queued = queued.and_then(|()| match self.records.len() {
            0 => Ok(()),
            _ => {
                let first = PipelinePlan::records_offset(&self.spec.layout);
                driver::upload_list(&self.upload, &self.records, (to, first))
            }
        });
        if let Some(timing) = &mut self.timing {
            timing.copy_ends(&self.upload);
        }
        let ordered = queued.and_then(|()| self.uploaded.record(&self.upload));
        let ordered = ordered.and_then(|()| self.uploaded.hold(&self.compute));
        ordered.map_err(|error| self.failed(error))?;
        self.run_kernels(target, offsets.len(), output)
    }

    /// The kernels of two batches take turns on two streams, so that one reads the bus while the other ends.
    fn gather_in_kernel(&mut self, offsets: &[u64], output: &CudaTensor) -> Result<Event, DeviceError> {
        let turn = self.next_buffer;
        self.next_buffer = (turn + 1) % self.buffers.len();
        let stream = if turn == 0 { Arc::clone(&self.compute) } else { Arc::clone(&self.upload) };
        output.hold_for_uses(&stream)?;
        let done = self.spare_event()?;
        // The caller's may lie in page-locked memory, which the driver would read only later.
        self.offsets.clear();
        self.offsets.extend_from_slice(offsets);
        let queued = match &self.direct {
            Some(direct) => {
                let (on_device, to, sums) = (&self.buffers[turn].memory, output.memory(), output.sums());
                let timing = &mut self.timing;
                driver::upload_list(&stream, &self.offsets, (on_device, 0))
                    .map(|()| timing.iter_mut().for_each(|timing| timing.kernel_starts(&stream, true)))
                    .and_then(|()| self.kernels.gather(&stream, direct, &self.offsets, on_device, to, sums))
                    .map(|()| timing.iter_mut().for_each(|timing| timing.kernel_ends(&stream)))
                    .and_then(|()| done.record(&stream))
            }
            None => Ok(()),
        };
        self.mark(queued, done, output, &stream)
    }

    fn sent(&mut self, read: Option<SlotRead>, done: Event) -> SubmissionId {
        let marks = self.timing.as_mut().and_then(Timing::queued);
        let id = self.completions.next_id();
        self.completions.push(id, read, Running { done, marks });
        id
    }
}
