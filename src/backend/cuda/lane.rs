//! A lane on a CUDA device: slots, device buffers and kernels for one layout and one strategy.

use std::collections::VecDeque;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::device::CudaBackend;
use super::driver::{Copying, DeviceMemory, Direct, Event, Memory};
use super::kernel::{Kernels, fingerprint_bytes};
use super::staging::Slots;
use super::tensor::CudaTensor;
use super::timing::{Marks, Timing};
use crate::backend::{
    Feed, Footprint, GpuSpan, GpuTimes, Lane, LaneSpec, MemoryUse, Rejected, SubmissionId, Submitted, Wait,
};
use crate::error::DeviceError;
use crate::staging::{Cancelled, Fill, FillState, Loan};

/// Slots, device buffers and kernels for one layout and one strategy.
pub struct CudaLane {
    // Dropped in this order: what the device reads waits for the device itself.
    pub(super) slots: Vec<Slot>,
    pub(super) direct: Option<Direct>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) in_flight: VecDeque<InFlight>,
    pub(super) kernels: Kernels,
    pub(super) upload: Arc<CudaStream>,
    pub(super) compute: Arc<CudaStream>,
    pub(super) memory_of_slots: Slots,
    /// Reached when the last upload has ended, for the compute stream.
    pub(super) uploaded: Event,
    pub(super) spare: Vec<Event>,
    pub(super) next_buffer: usize,
    /// The offsets that a kernel gathers from, in pageable memory; used again.
    pub(super) offsets: Vec<u64>,
    pub(super) finished: Vec<SubmissionId>,
    pub(super) next_id: SubmissionId,
    pub(super) timing: Option<Timing>,
    pub(super) held: Footprint,
    pub(super) allocations: u64,
    pub(super) spec: LaneSpec,
    pub(super) backend: CudaBackend,
}

pub(super) struct Slot {
    pub(super) state: Arc<FillState>,
    /// `None` only while its copy is being queued or after it was lost.
    pub(super) event: Option<Event>,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// Without memory where it is made for each batch.
    Free(Option<Memory>),
    Filling(Loan<Memory>),
    InFlight(Copying),
    /// Its memory is on its way from one stage to the next.
    Moving,
}

/// A device buffer between staging and kernel.
pub(super) struct Buffer {
    pub(super) memory: DeviceMemory,
    /// Reached when the kernel has read it.
    pub(super) read: Event,
}

pub(super) struct InFlight {
    pub(super) id: SubmissionId,
    pub(super) done: Event,
    /// Reached when `done` is.
    pub(super) marks: Option<Marks>,
}

impl CudaLane {
    pub(super) fn context(&self) -> &Arc<CudaContext> {
        self.backend.context()
    }

    pub(super) fn failed(&self, error: DriverError) -> DeviceError {
        self.backend.lost().error("submitting a batch", error)
    }

    pub(super) fn check_samples(&self, samples: usize) -> Result<(), DeviceError> {
        match self.spec.layout.batch_size() {
            most if samples == 0 || samples > most => Err(DeviceError::Refused {
                message: format!("{samples} samples do not make a batch of at most {most}"),
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn spare_event(&mut self) -> Result<Event, DeviceError> {
        match self.spare.pop() {
            Some(event) => Ok(event),
            None => Event::new(self.context()).map_err(|error| self.failed(error)),
        }
    }

    pub(super) fn slot_event(&mut self, slot: usize) -> Result<Event, DeviceError> {
        match self.slots[slot].event.take() {
            Some(event) => Ok(event),
            None => Event::new(self.context()).map_err(|error| self.failed(error)),
        }
    }

    /// Waits for a copy and frees its slot.
    pub(super) fn end_copy(&mut self, slot: usize, copying: Copying) {
        if let Ok((memory, event)) = copying.finish() {
            self.slots[slot].event = Some(event);
            self.free(slot, memory);
        }
        // Otherwise the device is lost, and a slot that is neither free nor in flight is not handed out any more.
    }

    /// Notes what the device has finished: slots when they are copied, submissions when their kernels have run.
    fn collect(&mut self) -> Result<(), DriverError> {
        for slot in 0..self.slots.len() {
            let Stage::InFlight(copying) = &self.slots[slot].stage else { continue };
            if copying.is_done()?
                && let Stage::InFlight(copying) = std::mem::replace(&mut self.slots[slot].stage, Stage::Moving)
            {
                self.end_copy(slot, copying);
            }
        }
        while let Some(oldest) = self.in_flight.front()
            && oldest.done.is_reached()?
        {
            let Some(InFlight { id, done, marks }) = self.in_flight.pop_front() else { break };
            self.spare.push(done);
            if let (Some(timing), Some(marks)) = (&mut self.timing, marks) {
                timing.ended(id, marks);
            }
            self.finished.push(id);
        }
        Ok(())
    }

    fn wait(&mut self, wait: Wait) -> Result<(), DeviceError> {
        self.backend.lost().check()?;
        let collected = self.collect().and_then(|()| {
            let all = self.in_flight.len();
            let count = match wait {
                Wait::Poll => 0,
                Wait::One => usize::from(self.finished.is_empty()),
                Wait::AtMost(most) => all.saturating_sub(most),
                Wait::All => all,
            };
            // The last first: the thread wakes up once.
            self.in_flight.iter().take(count).rev().try_for_each(|submission| submission.done.wait())?;
            if count > 0 { self.collect() } else { Ok(()) }
        });
        collected.map_err(|error| self.backend.lost().error("waiting for the device", error))
    }
}

impl Lane for CudaLane {
    type Tensor = CudaTensor;

    fn output(&mut self) -> Result<CudaTensor, DeviceError> {
        let (context, lost) = (self.context(), self.backend.lost());
        lost.check()?;
        let desc = self.spec.preprocess.tensor(&self.spec.layout, self.spec.layout.batch_size());
        let make = |what, bytes: usize| {
            DeviceMemory::new(context, bytes).map_err(|error| lost.allocation(what, bytes as u64, error))
        };
        let memory = make("a tensor", desc.buffer_bytes().unwrap_or(usize::MAX))?;
        let sums = self.spec.fingerprints.then(|| fingerprint_bytes(self.spec.layout.batch_size()));
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
        let free = self.slots.iter().position(|slot| matches!(slot.stage, Stage::Free(_)));
        let Some(number) = free else { return Ok(None) };
        let memory = match std::mem::replace(&mut self.slots[number].stage, Stage::Moving) {
            Stage::Free(Some(memory)) => memory,
            // Made for this batch; on failure the slot stays free.
            other => {
                self.slots[number].stage = other;
                self.memory_of_slots.make()?
            }
        };
        let slot = &mut self.slots[number];
        let (loan, fill) = Loan::lend(number, memory, &slot.state);
        slot.stage = Stage::Filling(loan);
        Ok(Some(fill))
    }

    fn cancel(&mut self, cancelled: Cancelled) {
        let number = cancelled.slot();
        match std::mem::replace(&mut self.slots[number].stage, Stage::Moving) {
            Stage::Filling(loan) => self.free(number, loan.cancelled(&cancelled)),
            other => self.slots[number].stage = other,
        }
    }

    fn submit(
        &mut self,
        feed: Feed<'_>,
        samples: usize,
        output: CudaTensor,
    ) -> Result<Submitted<CudaTensor>, Rejected<CudaTensor>> {
        let submitted = match feed {
            Feed::Staged(filled) => self.submit_staged(&filled, samples, &output),
            Feed::Direct(offsets) => self.submit_direct(offsets, samples, &output),
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
            self.finished.extend(self.in_flight.drain(..).map(|submission| submission.id));
        }
        finished.append(&mut self.finished);
        result
    }

    fn in_flight(&self) -> usize {
        self.in_flight.len() + self.finished.len()
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
            let _ = stream.synchronize();
        }
    }
}
