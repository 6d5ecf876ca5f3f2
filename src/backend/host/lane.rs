//! Slots of host memory, and a device that reads them after a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::faults::FaultState;
use super::kernel::Kernel;
use super::tensor::HostTensor;
use crate::backend::{Feed, Footprint, Lane, LaneSpec, MemoryUse, Rejected, SubmissionId, Submitted, Wait};
use crate::error::DeviceError;
use crate::layout::BatchLayout;
use crate::staging::{Cancelled, Fill, FillState, Filled, HostMemory, Lent};

/// Slots of host memory and the `memcpy` that empties them.
pub struct HostLane {
    layout: BatchLayout,
    kernel: Kernel,
    output_bytes: usize,
    fingerprints: bool,
    faults: Arc<FaultState>,
    slots: Vec<Slot>,
    queue: VecDeque<Submission>,
    finished: Vec<SubmissionId>,
    next_id: SubmissionId,
    memory: MemoryUse,
}

/// One slot: where its memory is.
struct Slot {
    state: Arc<FillState>,
    memory: SlotState,
}

enum SlotState {
    Free(HostMemory),
    Filling(Lent<HostMemory>),
    InFlight,
}

/// A slot that the device has yet to read.
struct Submission {
    id: SubmissionId,
    slot: usize,
    memory: HostMemory,
    samples: usize,
    tensor: HostTensor,
    due: Instant,
}

impl HostLane {
    pub(super) fn new(spec: &LaneSpec, faults: Arc<FaultState>) -> Result<Self, DeviceError> {
        let bytes = spec.layout.slot_bytes();
        let slot = |_| Ok(Slot { state: Arc::default(), memory: SlotState::Free(HostMemory::new(bytes)?) });
        let slots = (0..spec.slots).map(slot).collect::<Result<Vec<_>, DeviceError>>()?;
        let staging = (bytes * slots.len()) as u64;
        let desc = spec.preprocess.tensor(&spec.layout, spec.layout.batch_size());
        Ok(Self {
            layout: spec.layout,
            kernel: Kernel::new(&spec.preprocess, &spec.layout),
            output_bytes: desc.buffer_bytes().unwrap_or(usize::MAX),
            fingerprints: spec.fingerprints,
            faults,
            memory: MemoryUse { held: Footprint { staging, ..Footprint::default() }, allocations: slots.len() as u64 },
            queue: VecDeque::with_capacity(slots.len()),
            finished: Vec::with_capacity(slots.len()),
            slots,
            next_id: 0,
        })
    }

    /// Takes the memory of a filled slot, if it holds all that is to be sent.
    fn take(&mut self, filled: &Filled, samples: usize) -> Result<HostMemory, DeviceError> {
        let slot = &mut self.slots[filled.slot()];
        let memory = match std::mem::replace(&mut slot.memory, SlotState::InFlight) {
            SlotState::Filling(lent) => lent.filled(filled),
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

    /// The device reads one slot.
    fn execute(&mut self, submission: Submission) {
        let Submission { id, slot, memory, samples, tensor, .. } = submission;
        let payload = 0..self.layout.payload(samples);
        tensor.write(&self.kernel, &memory, payload, self.layout.sample().byte_len());
        self.slots[slot].memory = SlotState::Free(memory);
        self.finished.push(id);
    }

    /// The device is lost: what was in flight will never be written, and its slots are free.
    fn fail_all(&mut self, error: &DeviceError) {
        while let Some(submission) = self.queue.pop_front() {
            submission.tensor.fail(error.clone());
            self.slots[submission.slot].memory = SlotState::Free(submission.memory);
            self.finished.push(submission.id);
        }
    }

    /// Runs what is due, waiting for the first submissions as told.
    fn run_due(&mut self, wait: Wait) {
        let mut must_wait = match wait {
            Wait::Poll => 0,
            Wait::One => usize::from(self.finished.is_empty()),
            Wait::All => self.queue.len(),
        };
        while let Some(submission) = self.queue.front() {
            let left = submission.due.saturating_duration_since(Instant::now());
            if left > Duration::ZERO {
                if must_wait == 0 {
                    break;
                }
                std::thread::sleep(left);
            }
            must_wait = must_wait.saturating_sub(1);
            if let Some(submission) = self.queue.pop_front() {
                self.execute(submission);
            }
        }
    }
}

impl Lane for HostLane {
    type Tensor = HostTensor;

    fn output(&mut self) -> Result<HostTensor, DeviceError> {
        self.faults.check()?;
        self.memory.held.outputs += self.output_bytes as u64;
        self.memory.allocations += 1;
        Ok(HostTensor::new(self.output_bytes, self.fingerprints))
    }

    fn begin(&mut self) -> Result<Option<Fill>, DeviceError> {
        self.faults.check()?;
        let free = self.slots.iter().position(|slot| matches!(slot.memory, SlotState::Free(_)));
        let Some(number) = free else { return Ok(None) };
        let slot = &mut self.slots[number];
        let SlotState::Free(memory) = std::mem::replace(&mut slot.memory, SlotState::InFlight) else {
            return Ok(None);
        };
        let (lent, fill) = Lent::lend(number, memory, &slot.state);
        slot.memory = SlotState::Filling(lent);
        Ok(Some(fill))
    }

    fn cancel(&mut self, cancelled: Cancelled) {
        let slot = &mut self.slots[cancelled.slot()];
        if let SlotState::Filling(lent) = std::mem::replace(&mut slot.memory, SlotState::InFlight) {
            slot.memory = SlotState::Free(lent.cancelled(&cancelled));
        }
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
        let delay = self.faults.delay();
        let tensor = output.clone();
        if delay.is_zero() {
            self.execute(Submission { id, slot, memory, samples, tensor, due: Instant::now() });
        } else {
            tensor.expect();
            self.queue.push_back(Submission { id, slot, memory, samples, tensor, due: Instant::now() + delay });
        }
        Ok(Submitted { id, tensor: output })
    }

    fn reap(&mut self, wait: Wait, finished: &mut Vec<SubmissionId>) -> Result<(), DeviceError> {
        let health = self.faults.check();
        match &health {
            Ok(()) => self.run_due(wait),
            Err(error) => self.fail_all(error),
        }
        finished.append(&mut self.finished);
        health
    }

    fn in_flight(&self) -> usize {
        self.queue.len() + self.finished.len()
    }

    fn memory(&self) -> MemoryUse {
        self.memory
    }
}

impl Drop for HostLane {
    fn drop(&mut self) {
        let mut finished = Vec::new();
        // An error means that nothing is in flight any more.
        let _ = self.reap(Wait::All, &mut finished);
    }
}
