//! What the device has yet to do. Whoever waits for it does the work: there is no device thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::faults::FaultState;
use super::kernel::Kernel;
use super::tensor::HostTensor;
use crate::backend::times::SpanLog;
use crate::backend::{GpuSpan, GpuTimes, SubmissionId, Wait};
use crate::error::DeviceError;
use crate::layout::BatchLayout;
use crate::staging::HostMemory;

/// The longest that a wait does not look.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A slot that the device has yet to read. It starts at `start`, and has not read it before `due`.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) id: SubmissionId,
    pub(super) slot: usize,
    pub(super) memory: HostMemory,
    pub(super) samples: usize,
    pub(super) tensor: HostTensor,
    pub(super) start: Instant,
    pub(super) due: Instant,
}

pub(super) struct Queue {
    kernel: Kernel,
    layout: BatchLayout,
    faults: Arc<FaultState>,
    /// The zero of the device's clock.
    zero: Instant,
    state: Mutex<State>,
}

struct State {
    waiting: VecDeque<Submission>,
    finished: Vec<(SubmissionId, usize, HostMemory)>,
    /// When the device is done with everything that waits, as far as it is slowed down.
    busy_until: Instant,
    /// When it last ended something.
    idle_since: Instant,
    times: Option<SpanLog>,
}

impl Queue {
    pub(super) fn new(kernel: Kernel, layout: BatchLayout, faults: Arc<FaultState>, slots: usize) -> Self {
        let zero = Instant::now();
        let state = State {
            waiting: VecDeque::with_capacity(slots),
            finished: Vec::with_capacity(slots),
            busy_until: zero,
            idle_since: zero,
            times: None,
        };
        Self { kernel, layout, faults, zero, state: Mutex::new(state) }
    }

    /// The same, which measures; so many batches' times are kept.
    pub(super) fn timed(self, batches: usize) -> Self {
        self.lock().times = Some(SpanLog::new(batches));
        self
    }

    /// Queues a submission, behind what slows the device down.
    pub(super) fn push(&self, mut submission: Submission) {
        submission.tensor.expect();
        let (copy, kernel) = self.faults.slowness();
        let mut state = self.lock();
        submission.start = submission.due.max(state.busy_until);
        submission.due = submission.start + copy + kernel;
        state.busy_until = submission.due;
        state.waiting.push_back(submission);
    }

    /// How long copies and kernels took, if the lane was opened for it.
    pub(super) fn times(&self) -> Option<GpuTimes> {
        self.lock().times.as_ref().and_then(SpanLog::sum)
    }

    /// When they ran.
    pub(super) fn spans(&self, spans: &mut Vec<GpuSpan>) {
        if let Some(times) = &mut self.lock().times {
            times.take(spans);
        }
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
            std::thread::sleep(due.saturating_duration_since(now).min(POLL_INTERVAL));
        }
    }

    /// Hands over what has finished since the last call.
    pub(super) fn finished(&self, mut each: impl FnMut(SubmissionId, usize, HostMemory)) {
        self.lock().finished.drain(..).for_each(|(id, slot, memory)| each(id, slot, memory));
    }

    /// The device reads one slot.
    fn execute(&self, state: &mut State, submission: Submission) {
        let Submission { id, slot, memory, samples, tensor, start, .. } = submission;
        let payload = &memory[..self.layout.payload(samples)];
        let begun = state.times.is_some().then(Instant::now);
        tensor.write(&self.kernel, payload, self.layout.sample().byte_len());
        if let Some(begun) = begun {
            self.note(state, id, start, begun);
        }
        state.finished.push((id, slot, memory));
    }

    /// Notes when a submission was copied and computed, which has just ended: what slows the device down, and the CPU's own work, which
    /// is a copy where nothing is computed. Executed late, in a row with others, it has taken less: there was no more time.
    fn note(&self, state: &mut State, id: SubmissionId, start: Instant, begun: Instant) {
        let (end, work) = (Instant::now(), begun.elapsed());
        let (copy, kernel) = self.faults.slowness();
        let (copy, kernel) = if self.kernel.computes() { (copy, kernel + work) } else { (copy + work, kernel) };
        let there_was = end.saturating_duration_since(start.max(state.idle_since)).as_secs_f64();
        let scale = (there_was / (copy + kernel).as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0);
        let end_s = (end - self.zero).as_secs_f64();
        let middle = end_s - kernel.as_secs_f64() * scale;
        state.idle_since = end;
        if let Some(times) = &mut state.times {
            times.add(GpuSpan { id, copy: middle - copy.as_secs_f64() * scale..middle, kernel: middle..end_s });
        }
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
