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

/// The longest that a wait does not look.
const NAP: Duration = Duration::from_millis(1);

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
        loop {
            let mut state = self.lock();
            if let Err(error) = self.faults.check() {
                while let Some(submission) = state.waiting.pop_front() {
                    submission.tensor.fail(error.clone());
                    state.finished.push((submission.id, submission.slot, submission.memory));
                }
                return Err(error);
            }
            let now = Instant::now();
            while state.waiting.front().is_some_and(|first| first.due <= now)
                && let Some(submission) = state.waiting.pop_front()
            {
                self.execute(&mut state, submission);
            }
            let Some(due) = state.waiting.front().map(|first| first.due) else { return Ok(()) };
            let enough = match wait {
                Wait::Poll => true,
                Wait::One => !state.finished.is_empty(),
                Wait::AtMost(count) => state.waiting.len() <= count,
                Wait::All => false,
            };
            if enough {
                return Ok(());
            }
            // Others look and submit meanwhile, and the device may be lost.
            drop(state);
            std::thread::sleep(due.saturating_duration_since(now).min(NAP));
        }
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
