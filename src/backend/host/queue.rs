//! What the device has yet to do. Whoever waits for it does the work: there is no device thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::faults::FaultState;
use super::kernel::Kernel;
use super::tensor::HostTensor;
use crate::backend::{SubmissionId, Wait};
use crate::error::DeviceError;
use crate::layout::BatchLayout;
use crate::staging::HostMemory;

/// A slot that the device has yet to read, and may not before `due`.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) id: SubmissionId,
    pub(super) slot: usize,
    pub(super) memory: HostMemory,
    pub(super) samples: usize,
    pub(super) tensor: HostTensor,
    pub(super) due: Instant,
}

pub(super) struct Queue {
    kernel: Kernel,
    layout: BatchLayout,
    faults: Arc<FaultState>,
    state: Mutex<State>,
}

struct State {
    waiting: VecDeque<Submission>,
    finished: Vec<(SubmissionId, usize, HostMemory)>,
}

impl Queue {
    pub(super) fn new(kernel: Kernel, layout: BatchLayout, faults: Arc<FaultState>, slots: usize) -> Self {
        let state = State { waiting: VecDeque::with_capacity(slots), finished: Vec::with_capacity(slots) };
        Self { kernel, layout, faults, state: Mutex::new(state) }
    }

    /// Queues a submission.
    pub(super) fn push(&self, submission: Submission) {
        submission.tensor.expect();
        self.lock().waiting.push_back(submission);
    }

    /// Does what is due, waiting for the first submissions as told.
    ///
    /// # Errors
    /// [`DeviceError::Lost`]; then nothing is waiting any more.
    pub(super) fn run(&self, wait: Wait) -> Result<(), DeviceError> {
        let mut state = self.lock();
        if let Err(error) = self.faults.check() {
            while let Some(submission) = state.waiting.pop_front() {
                submission.tensor.fail(error.clone());
                state.finished.push((submission.id, submission.slot, submission.memory));
            }
            return Err(error);
        }
        let mut must_wait = match wait {
            Wait::Poll => 0,
            Wait::One => usize::from(state.finished.is_empty()),
            Wait::AtMost(count) => state.waiting.len().saturating_sub(count),
            Wait::All => state.waiting.len(),
        };
        while let Some(submission) = state.waiting.pop_front() {
            let left = submission.due.saturating_duration_since(Instant::now());
            if left > Duration::ZERO {
                if must_wait == 0 {
                    state.waiting.push_front(submission);
                    break;
                }
                std::thread::sleep(left);
            }
            must_wait = must_wait.saturating_sub(1);
            self.execute(&mut state, submission);
        }
        Ok(())
    }

    /// Hands over what has finished since the last call.
    pub(super) fn finished(&self, mut each: impl FnMut(SubmissionId, usize, HostMemory)) {
        self.lock().finished.drain(..).for_each(|(id, slot, memory)| each(id, slot, memory));
    }

    /// The device reads one slot.
    fn execute(&self, state: &mut State, submission: Submission) {
        let Submission { id, slot, memory, samples, tensor, .. } = submission;
        let payload = &memory[..self.layout.payload(samples)];
        tensor.write(&self.kernel, payload, self.layout.sample().byte_len());
        state.finished.push((id, slot, memory));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("layout", &self.layout).finish_non_exhaustive()
    }
}
