//! Slots of host memory, and a device that reads them.

use std::sync::Arc;
use std::time::Duration;

use super::faults::FaultState;
use super::kernel::Kernel;
use super::queue::{Queue, StagedSlot};
use super::tensor::HostTensor;
use crate::backend::{
    Footprint, GpuSpan, GpuTimes, Input, Lane, LaneSpec, MemoryUse, Rejected, SubmissionId, Submitted, Wait,
    check_filled,
};
use crate::error::{DeviceError, OpenError};
use crate::layout::BatchLayout;
use crate::preprocess::OutputLayout;
use crate::staging::{Cancelled, Fill, Filled, HostMemory, SlotPool};

/// How often a copy is looked at that a batch waits for.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// Slots of host memory and the `memcpy` that empties them.
pub struct HostLane {
    layout: BatchLayout,
    output_bytes: usize,
    fingerprints: usize,
    faults: Arc<FaultState>,
    queue: Arc<Queue>,
    slots: SlotPool<HostMemory>,
    memory: MemoryUse,
}

impl HostLane {
    pub(super) fn new(spec: &LaneSpec, faults: &Arc<FaultState>) -> Result<Self, OpenError> {
        let bytes = spec.layout.slot_bytes();
        let slots = (0..spec.slots).map(|_| HostMemory::new(bytes).map(Some)).collect::<Result<Vec<_>, _>>()?;
        let staging = (bytes * slots.len()) as u64;
        let tensors = OutputLayout::new(&spec.preprocess, &spec.layout)?;
        let output_bytes = tensors.bytes();
        let kernel = Kernel::new(&spec.preprocess, &spec.layout)?;
        let (faults, submissions) = (Arc::clone(faults), spec.slots + spec.outputs);
        let queue = Queue::new(kernel, spec.layout.clone(), tensors, Arc::clone(&faults), submissions, spec.timing);
        Ok(Self {
            layout: spec.layout.clone(),
            output_bytes,
            fingerprints: spec.fingerprint_count(),
            queue: Arc::new(queue),
            faults,
            memory: MemoryUse { held: Footprint { staging, ..Footprint::default() }, allocations: slots.len() as u64 },
            slots: SlotPool::new(slots),
        })
    }

    fn submit_staged(
        &mut self,
        filled: &Filled,
        samples: usize,
        output: &HostTensor,
    ) -> Result<SubmissionId, DeviceError> {
        let (number, memory) = (filled.slot(), self.slots.send(filled)?);
        let checked = check_filled(&self.layout, filled, samples).and_then(|()| output.check_idle());
        let checked = checked.and_then(|()| self.faults.submission());
        match checked {
            Ok(submission) => Ok(self.queue.push(submission, StagedSlot { number, memory, samples }, output.clone())),
            Err(error) => {
                self.slots.free(number, Some(memory));
                Err(error)
            }
        }
    }
}

impl crate::backend::sealed::Sealed for HostLane {}

impl Lane for HostLane {
    type Tensor = HostTensor;

    fn output(&mut self) -> Result<HostTensor, DeviceError> {
        self.faults.check()?;
        let tensor = HostTensor::new(self.output_bytes, self.fingerprints, Arc::clone(&self.queue))?;
        self.memory.held.outputs += self.output_bytes as u64;
        self.memory.allocations += 1;
        Ok(tensor)
    }

    fn begin(&mut self) -> Result<Option<Fill>, DeviceError> {
        self.faults.check()?;
        self.slots.begin(|_| HostMemory::new(self.layout.slot_bytes()))
    }

    fn cancel(&mut self, cancelled: Cancelled) {
        if let Some(memory) = self.slots.cancel(&cancelled) {
            self.slots.free(cancelled.slot(), Some(memory));
        }
    }

    fn submit(
        &mut self,
        input: Input<'_>,
        samples: usize,
        output: HostTensor,
    ) -> Result<Submitted<HostTensor>, Rejected<HostTensor>> {
        let submitted = match input {
            Input::Staged(filled) => self.submit_staged(&filled, samples, &output),
            Input::Direct { .. } => {
                Err(DeviceError::Refused { message: "host memory has no direct feeding".to_owned() })
            }
        };
        match submitted {
            Ok(id) => Ok(Submitted { id, tensor: output }),
            Err(error) => Err(Rejected { error, tensor: output }),
        }
    }

    fn reap(&mut self, wait: Wait, finished: &mut Vec<SubmissionId>) -> Result<(), DeviceError> {
        let result = self.queue.run(wait);
        self.queue.report(finished, |slot, memory| self.slots.free(slot, Some(memory)));
        result
    }

    fn has_arrived(&mut self, id: SubmissionId) -> Result<bool, DeviceError> {
        match (self.faults.copies_beside(), self.faults.kernels_beside()) {
            (false, false) => Ok(true),
            (_, true) => self.faults.check().map(|()| !self.queue.is_under_way(id)),
            (true, false) => self.faults.check().map(|()| !self.queue.is_copying(id)),
        }
    }

    fn await_arrival(&mut self, at_most: Duration) {
        std::thread::sleep(at_most.min(POLL_INTERVAL));
    }

    fn in_flight(&self) -> usize {
        self.queue.outstanding()
    }

    fn memory(&self) -> MemoryUse {
        self.memory
    }

    fn gpu_times(&mut self) -> Option<GpuTimes> {
        self.queue.times()
    }

    fn gpu_spans(&mut self, spans: &mut Vec<GpuSpan>) {
        self.queue.spans(spans);
    }
}

impl Drop for HostLane {
    fn drop(&mut self) {
        // Tensors may outlive the lane. An error means that nothing is in flight any more.
        let _ = self.queue.run(Wait::All);
        // The slots' memory goes with the lane.
        self.queue.report(&mut Vec::new(), |_, _| ());
    }
}
