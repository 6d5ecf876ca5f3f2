//! Slots of host memory, and a device that reads them.

use std::sync::Arc;
use std::time::Instant;

use super::faults::FaultState;
use super::kernel::Kernel;
use super::queue::{Queue, Submission};
use super::tensor::HostTensor;
use crate::backend::{
    Feed, Footprint, GpuSpan, GpuTimes, Lane, LaneSpec, MemoryUse, Rejected, SubmissionId, Submitted, Wait,
};
use crate::error::DeviceError;
use crate::layout::BatchLayout;
use crate::staging::{Cancelled, Fill, FillState, Filled, HostMemory, Loan};

/// Slots of host memory and the `memcpy` that empties them.
pub struct HostLane {
    layout: BatchLayout,
    output_bytes: usize,
    fingerprints: bool,
    faults: Arc<FaultState>,
    queue: Arc<Queue>,
    slots: Vec<Slot>,
    next_id: SubmissionId,
    in_flight: usize,
    memory: MemoryUse,
}

/// One slot: where its memory is.
struct Slot {
    state: Arc<FillState>,
    memory: SlotState,
}

enum SlotState {
    Free(HostMemory),
    Filling(Loan<HostMemory>),
    InFlight,
}

impl HostLane {
    pub(super) fn new(spec: &LaneSpec, faults: Arc<FaultState>) -> Result<Self, DeviceError> {
        let bytes = spec.layout.slot_bytes();
        let slot = |_| Ok(Slot { state: Arc::default(), memory: SlotState::Free(HostMemory::new(bytes)?) });
        let slots = (0..spec.slots).map(slot).collect::<Result<Vec<_>, DeviceError>>()?;
        let staging = (bytes * slots.len()) as u64;
        let desc = spec.preprocess.tensor(&spec.layout, spec.layout.batch_size());
        let kernel = Kernel::new(&spec.preprocess, &spec.layout);
        let queue = Queue::new(kernel, spec.layout.clone(), Arc::clone(&faults), slots.len());
        Ok(Self {
            layout: spec.layout.clone(),
            output_bytes: desc.buffer_bytes().unwrap_or(usize::MAX),
            fingerprints: spec.fingerprints,
            queue: Arc::new(if spec.timing { queue.timed(spec.slots + spec.outputs) } else { queue }),
            faults,
            memory: MemoryUse { held: Footprint { staging, ..Footprint::default() }, allocations: slots.len() as u64 },
            slots,
            next_id: 0,
            in_flight: 0,
        })
    }

    /// Takes the memory of a filled slot, if it holds all that is to be sent.
    fn take(&mut self, filled: &Filled, samples: usize) -> Result<HostMemory, DeviceError> {
        let slot = &mut self.slots[filled.slot()];
        let memory = match std::mem::replace(&mut slot.memory, SlotState::InFlight) {
            SlotState::Filling(loan) => loan.filled(filled),
            other => {
                slot.memory = other;
                return Err(DeviceError::Refused { message: format!("slot {} was not being filled", filled.slot()) });
            }
        };
        let needed = self.layout.payload(samples);
        if samples == 0 || samples > self.layout.batch_size() || filled.bytes() < needed {
            let message = format!("{} bytes are filled and {samples} samples need {needed}", filled.bytes());
            self.slots[filled.slot()].memory = SlotState::Free(memory);
            return Err(DeviceError::Refused { message });
        }
        Ok(memory)
    }
}

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
        let free = self.slots.iter().position(|slot| matches!(slot.memory, SlotState::Free(_)));
        let Some(number) = free else { return Ok(None) };
        let slot = &mut self.slots[number];
        let SlotState::Free(memory) = std::mem::replace(&mut slot.memory, SlotState::InFlight) else {
            return Ok(None);
        };
        let (loan, fill) = Loan::lend(number, memory, &slot.state);
        slot.memory = SlotState::Filling(loan);
        Ok(Some(fill))
    }

    fn cancel(&mut self, cancelled: Cancelled) {
        let slot = &mut self.slots[cancelled.slot()];
        slot.memory = match std::mem::replace(&mut slot.memory, SlotState::InFlight) {
            SlotState::Filling(loan) => SlotState::Free(loan.cancelled(&cancelled)),
            other => other,
        };
    }

    fn submit(
        &mut self,
        feed: Feed<'_>,
        samples: usize,
        output: HostTensor,
    ) -> Result<Submitted<HostTensor>, Rejected<HostTensor>> {
        let Feed::Staged(filled) = feed else {
            let message = "host memory has no direct feeding".to_owned();
            return Err(Rejected { error: DeviceError::Refused { message }, tensor: output });
        };
        let slot = filled.slot();
        let memory = match self.take(&filled, samples) {
            Ok(memory) => memory,
            Err(error) => return Err(Rejected { error, tensor: output }),
        };
        if let Err(error) = self.faults.submission() {
            self.slots[slot].memory = SlotState::Free(memory);
            return Err(Rejected { error, tensor: output });
        }
        let id = self.next_id;
        self.next_id += 1;
        self.in_flight += 1;
        let due = Instant::now() + self.faults.delay();
        self.queue.push(Submission { id, slot, memory, samples, tensor: output.clone(), start: due, due });
        Ok(Submitted { id, tensor: output })
    }

    fn reap(&mut self, wait: Wait, finished: &mut Vec<SubmissionId>) -> Result<(), DeviceError> {
        let result = self.queue.run(wait);
        let before = finished.len();
        self.queue.finished(|id, slot, memory| {
            self.slots[slot].memory = SlotState::Free(memory);
            finished.push(id);
        });
        self.in_flight -= finished.len() - before;
        result
    }

    fn in_flight(&self) -> usize {
        self.in_flight
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
        self.queue.finished(|_, _, _| ());
    }
}
