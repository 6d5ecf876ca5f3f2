//! A lane on a CUDA device: slots, device buffers and kernels for one layout and one strategy.

use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError};

use super::device::CudaBackend;
use super::driver::{Copying, DeviceMemory, Event, Memory, RegisteredReader, Stream, wait_for};
use super::kernel::{Kernels, fingerprint_bytes};
use super::staging::Slots;
use super::tensor::CudaTensor;
use super::timing::{Marks, Timing};
use crate::backend::completions::{Completions, DeviceProgress};
use crate::backend::{
    Footprint, GpuSpan, GpuTimes, Input, Lane, LaneSpec, MemoryUse, Rejected, SubmissionId, Submitted, Wait,
};
use crate::error::DeviceError;
use crate::preprocess::{Geometry, OutputField, OutputLayout};
use crate::staging::{Cancelled, Fill, SlotPool};

/// Slots, device buffers and kernels for one layout and one strategy.
pub struct CudaLane {
    // Dropped in this order: what the device reads waits for the device itself.
    pub(super) slots: SlotPool<Memory>,
    pub(super) completions: Completions<SlotRead, Running>,
    /// Slots that a lost device was reading.
    pub(super) abandoned: Vec<SlotRead>,
    pub(super) direct: Option<RegisteredReader>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) kernels: Kernels,
    /// Bytes of one output's tensors.
    pub(super) output_bytes: usize,
    pub(super) tensors: OutputLayout,
    /// What is copied to the tensors beside the kernels.
    pub(super) beside: Vec<OutputField>,
    pub(super) upload: Arc<Stream>,
    pub(super) compute: Arc<Stream>,
    pub(super) memory_of_slots: Slots,
    /// Reached when the last upload has ended, for the compute stream.
    pub(super) uploaded: Event,
    pub(super) spare: Vec<Event>,
    pub(super) next_buffer: usize,
    /// The offsets that a kernel gathers from, and the geometries of a pipeline's samples, in pageable memory; used again.
    pub(super) offsets: Vec<u64>,
    pub(super) records: Vec<[f32; Geometry::WORDS]>,
    pub(super) timing: Option<Timing>,
    pub(super) held: Footprint,
    pub(super) allocations: u64,
    pub(super) spec: LaneSpec,
    pub(super) backend: CudaBackend,
}

/// A slot that the device reads.
pub(super) struct SlotRead {
    pub(super) slot: usize,
    pub(super) copying: Copying,
}

/// The rest of a submission.
pub(super) struct Running {
    pub(super) done: Event,
    /// Reached when `done` is.
    pub(super) marks: Option<Marks>,
}

/// A device buffer between staging and kernel.
pub(super) struct Buffer {
    pub(super) memory: DeviceMemory,
    /// Reached when the kernel has read it.
    pub(super) read: Event,
}

/// Where what the device has finished goes.
struct Finished<'a> {
    slots: &'a mut SlotPool<Memory>,
    memory_of_slots: &'a Slots,
    spare: &'a mut Vec<Event>,
    timing: &'a mut Option<Timing>,
}

impl Finished<'_> {
    /// Frees the slot of a copy, which is waited for.
    fn free(&mut self, read: SlotRead) {
        match read.copying.finish() {
            Ok((memory, event)) => {
                self.spare.push(event);
                self.slots.free(read.slot, self.memory_of_slots.keep(memory));
            }
            // The device is lost, as the next call will say.
            Err(_) => self.slots.give_up(read.slot),
        }
    }
}

impl DeviceProgress<SlotRead, Running> for Finished<'_> {
    type Error = DriverError;

    fn has_copied(&mut self, read: &SlotRead, _: &Running) -> Result<bool, DriverError> {
        read.copying.is_done()
    }

    fn copied(&mut self, read: SlotRead, _: &mut Running) {
        self.free(read);
    }

    fn has_finished(&mut self, _: SubmissionId, running: &Running) -> Result<bool, DriverError> {
        running.done.is_reached()
    }

    fn finished(&mut self, id: SubmissionId, running: Running) {
        self.spare.push(running.done);
        if let (Some(timing), Some(marks)) = (&mut self.timing, running.marks) {
            timing.ended(id, marks);
        }
    }
}

impl CudaLane {
    pub(super) fn context(&self) -> &Arc<CudaContext> {
        self.backend.context()
    }

    pub(super) fn failed(&self, error: DriverError) -> DeviceError {
        self.backend.lost().error("submitting a batch", error)
    }

    pub(super) fn spare_event(&mut self) -> Result<Event, DeviceError> {
        match self.spare.pop() {
            Some(event) => Ok(event),
            None => Event::new(self.context()).map_err(|error| self.failed(error)),
        }
    }

    /// Waits for a copy that belongs to no submission, and frees its slot.
    pub(super) fn end_copy(&mut self, read: SlotRead) {
        let Self { slots, memory_of_slots, spare, timing, .. } = self;
        Finished { slots, memory_of_slots, spare, timing }.free(read);
    }

    /// Asks the device what it has finished.
    fn look(&mut self) -> Result<(), DriverError> {
        let Self { slots, memory_of_slots, spare, timing, .. } = self;
        self.completions.advance(&mut Finished { slots, memory_of_slots, spare, timing })
    }

    fn wait(&mut self, wait: Wait) -> Result<(), DeviceError> {
        self.backend.lost().check()?;
        let ended = self.look().and_then(|()| {
            // The last first: the thread wakes up once.
            let mut awaited = self.completions.awaited(wait).rev();
            let waited = awaited.try_fold(0, |waited, running| running.done.wait().map(|()| waited + 1))?;
            drop(awaited);
            if waited > 0 { self.look() } else { Ok(()) }
        });
        ended.map_err(|error| self.backend.lost().error("waiting for the device", error))
    }
}

impl crate::backend::sealed::Sealed for CudaLane {}

impl Lane for CudaLane {
    type Tensor = CudaTensor;

    fn output(&mut self) -> Result<CudaTensor, DeviceError> {
        let (context, lost) = (self.context(), self.backend.lost());
        lost.check()?;
        let make = |what, bytes: usize| {
            DeviceMemory::new(context, bytes).map_err(|error| lost.allocation(what, bytes as u64, error))
        };
        let memory = make("a tensor", self.output_bytes)?;
        let sums = self.spec.fingerprints.then(|| fingerprint_bytes(self.spec.fingerprint_count()));
        let sums = sums.map(|bytes| make("fingerprints", bytes)).transpose()?;
        let bytes = memory.bytes() + sums.as_ref().map_or(0, DeviceMemory::bytes);
        let allocations = 1 + u64::from(sums.is_some());
        let tensor = CudaTensor::new(&self.backend, memory, sums);
        let tensor = tensor.map_err(|error| lost.error("making an output", error))?;
        self.held.outputs += bytes as u64;
        self.allocations += allocations;
        Ok(tensor)
    }

    fn begin(&mut self) -> Result<Option<Fill>, DeviceError> {
        self.backend.lost().check()?;
        self.slots.begin(|_| self.memory_of_slots.make())
    }

    fn cancel(&mut self, cancelled: Cancelled) {
        if let Some(memory) = self.slots.cancel(&cancelled) {
            self.slots.free(cancelled.slot(), self.memory_of_slots.keep(memory));
        }
    }

    fn submit(
        &mut self,
        input: Input<'_>,
        samples: usize,
        output: CudaTensor,
    ) -> Result<Submitted<CudaTensor>, Rejected<CudaTensor>> {
        let submitted = match input {
            Input::Staged(filled) => self.submit_staged(&filled, samples, &output),
            Input::Direct { offsets, records } => self.submit_direct(offsets, records, samples, &output),
        };
        match submitted {
            Ok(id) => Ok(Submitted { id, tensor: output }),
            Err(error) => Err(Rejected { error, tensor: output }),
        }
    }

    fn reap(&mut self, wait: Wait, finished: &mut Vec<SubmissionId>) -> Result<(), DeviceError> {
        let result = self.wait(wait);
        if let Err(DeviceError::Lost { .. }) = result {
            // What was in flight has ended; its slots are not used again, and are freed once the device lets go of them.
            self.completions.abandon(|read, _| self.abandoned.extend(read));
        }
        self.completions.report(finished);
        result
    }

    fn in_flight(&self) -> usize {
        self.completions.outstanding()
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse { held: self.held, allocations: self.allocations + self.memory_of_slots.made }
    }

    fn gpu_times(&mut self) -> Option<GpuTimes> {
        self.timing.as_ref()?.times()
    }

    fn gpu_spans(&mut self, spans: &mut Vec<GpuSpan>) {
        if let Some(timing) = &mut self.timing {
            timing.spans(spans);
        }
    }
}

impl Drop for CudaLane {
    fn drop(&mut self) {
        for stream in [&self.upload, &self.compute] {
            // An error is sticky: then nothing runs on the device any more.
            let _ = wait_for(stream);
        }
    }
}
