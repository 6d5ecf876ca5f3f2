//! What the device has yet to do. Whoever waits for it does the work: there is no device thread.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::faults::FaultState;
use super::kernel::Kernel;
use super::moments::Ends;
use super::tensor::HostTensor;
use super::timing::Timing;
use crate::backend::completions::{Completions, DeviceProgress};
use crate::backend::{GpuSpan, GpuTimes, SubmissionId, Wait};
use crate::error::DeviceError;
use crate::layout::BatchLayout;
use crate::preprocess::OutputLayout;
use crate::staging::HostMemory;

/// The longest that a wait does not look.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// How often it looks at what is overdue, which something other than the clock ends.
const OVERDUE_INTERVAL: Duration = Duration::from_micros(50);

/// A filled slot that the device has yet to read.
#[derive(Debug)]
pub(super) struct StagedSlot {
    pub(super) number: usize,
    pub(super) memory: HostMemory,
    pub(super) samples: usize,
}

/// What a submission does with it.
#[derive(Debug)]
struct Work {
    tensor: HostTensor,
    start: Instant,
    ends: Ends,
    /// What the CPU needed for the batch.
    took: Duration,
}

pub(super) struct Queue {
    kernel: Kernel,
    layout: BatchLayout,
    tensors: OutputLayout,
    faults: Arc<FaultState>,
    state: Mutex<State>,
}

struct State {
    completions: Completions<StagedSlot, Work>,
    /// Slots on their way back to the lane, which takes them together with the submissions that they belong to.
    freed: Vec<(usize, HostMemory)>,
    /// When the device is done with everything that waits, as far as it is slowed down.
    busy_until: Instant,
    timing: Option<Timing>,
}

impl Queue {
    /// A device for `submissions` submissions at once, which measures them where `timed`.
    pub(super) fn new(
        kernel: Kernel,
        layout: BatchLayout,
        tensors: OutputLayout,
        faults: Arc<FaultState>,
        submissions: usize,
        timed: bool,
    ) -> Self {
        let state = State {
            completions: Completions::with_capacity(submissions),
            freed: Vec::with_capacity(submissions),
            busy_until: Instant::now(),
            timing: timed.then(|| Timing::new(submissions)),
        };
        Self { kernel, layout, tensors, faults, state: Mutex::new(state) }
    }

    /// Queues a submission, behind what slows the device down. `number` is the device's own count of them.
    pub(super) fn push(&self, number: u64, slot: StagedSlot, tensor: HostTensor) -> SubmissionId {
        tensor.expect();
        let (copy, kernel) = self.faults.slowness();
        let mut state = self.lock();
        let start = state.busy_until.max(Instant::now() + self.faults.delay());
        let ends = Ends::new(number, start + copy, start + copy + kernel);
        state.busy_until = ends.due;
        let id = state.completions.next_id();
        state.completions.push(id, Some(slot), Work { tensor, start, ends, took: Duration::ZERO });
        id
    }

    /// Submissions that have not been reported.
    pub(super) fn outstanding(&self) -> usize {
        self.lock().completions.outstanding()
    }

    /// Whether the device had not finished reading the submission's slot at the last look.
    pub(super) fn is_copying(&self, id: SubmissionId) -> bool {
        self.lock().completions.holds_slot(id)
    }

    /// Whether anything of a submission has not ended.
    pub(super) fn is_under_way(&self, id: SubmissionId) -> bool {
        self.lock().completions.is_under_way(id)
    }

    /// Whether tensors are written beside the application's work.
    pub(super) fn kernels_beside(&self) -> bool {
        self.faults.kernels_beside()
    }

    /// How long copies and kernels took, if the lane was opened for it.
    pub(super) fn times(&self) -> Option<GpuTimes> {
        self.lock().timing.as_ref().and_then(Timing::times)
    }

    /// When they ran.
    pub(super) fn spans(&self, spans: &mut Vec<GpuSpan>) {
        if let Some(timing) = &mut self.lock().timing {
            timing.spans(spans);
        }
    }

    /// Does what is due, until the wait is over.
    ///
    /// # Errors
    /// [`DeviceError::Lost`]; then nothing is waiting any more.
    pub(super) fn run(&self, wait: Wait) -> Result<(), DeviceError> {
        loop {
            let mut guard = self.lock();
            let State { completions, freed, timing, .. } = &mut *guard;
            if let Err(error) = self.faults.check() {
                completions.abandon(|slot, work| {
                    work.tensor.fail(error.clone());
                    freed.extend(slot.map(|slot| (slot.number, slot.memory)));
                });
                return Err(error);
            }
            let now = Instant::now();
            let Ok(()) = completions.advance(&mut Device { queue: self, now, freed, timing });
            let Some(due) = completions.awaited(wait).next().map(|work| work.ends.due) else { return Ok(()) };
            // Others look and submit meanwhile, and the device may be lost.
            drop(guard);
            std::thread::sleep(if due > now { (due - now).min(POLL_INTERVAL) } else { OVERDUE_INTERVAL });
        }
    }

    /// Hands over the slots that were read and the submissions that have finished since the last call.
    pub(super) fn report(&self, finished: &mut Vec<SubmissionId>, mut free: impl FnMut(usize, HostMemory)) {
        let mut state = self.lock();
        state.freed.drain(..).for_each(|(slot, memory)| free(slot, memory));
        state.completions.report(finished);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The device at one look.
struct Device<'a> {
    queue: &'a Queue,
    now: Instant,
    freed: &'a mut Vec<(usize, HostMemory)>,
    timing: &'a mut Option<Timing>,
}

impl DeviceProgress<StagedSlot, Work> for Device<'_> {
    type Error = Infallible;

    fn has_copied(&mut self, _: &StagedSlot, work: &Work) -> Result<bool, Infallible> {
        Ok(self.queue.faults.moments().copy_has_ended(&work.ends, self.now))
    }

    /// Reads the slot. The tensor counts as written only when the submission has finished.
    fn copied(&mut self, slot: StagedSlot, work: &mut Work) {
        let start = self.timing.is_some().then(Instant::now);
        let layout = &self.queue.layout;
        work.tensor.write(&self.queue.kernel, &slot.memory, layout.payload(slot.samples), layout.payload(1));
        for (number, field) in self.queue.tensors.tail().iter().enumerate() {
            let (bytes, first) = (field.source_bytes(layout), (number + 1) * layout.batch_size());
            let samples = &slot.memory[field.slot_offset..][..bytes * slot.samples];
            let (kernel, offset) = (&self.queue.kernel, field.desc.offset);
            if field.is_made {
                let make = |out: &mut [u8]| kernel.run_mask(field.field, &slot.memory, samples, out);
                work.tensor.make(make, offset, (samples, bytes, first));
            } else {
                work.tensor.copy(offset, (samples, bytes, first));
            }
        }
        work.took = start.map_or(Duration::ZERO, |start| start.elapsed());
        self.freed.push((slot.number, slot.memory));
    }

    fn has_finished(&mut self, _: SubmissionId, work: &Work) -> Result<bool, Infallible> {
        Ok(self.queue.faults.moments().kernel_has_ended(&work.ends, self.now))
    }

    fn finished(&mut self, id: SubmissionId, work: Work) {
        work.tensor.finish();
        let Some(timing) = self.timing else { return };
        // The CPU's own work is a copy where nothing is computed.
        let (copy, kernel) = self.queue.faults.slowness();
        let took = work.took;
        let (copy, kernel) = if self.queue.kernel.computes() { (copy, kernel + took) } else { (copy + took, kernel) };
        timing.ended(id, work.start, copy, kernel);
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("layout", &self.layout).finish_non_exhaustive()
    }
}
