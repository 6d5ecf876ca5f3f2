//! Lanes whose kernels run on a queue beside wgpu's, and so beside what the application computes there.
//!
//! ```text
//! submit ──▶ copies and kernel on a queue of a second device over the same memory ──▶ tensor, a buffer of both devices
//!                                                                     │
//!                         delivered when they have ended ◀────────────┘
//! ```
//!
//! Nothing orders the two queues but the host, in two places:
//!
//! - **A batch is delivered when its work has ended** ([`Lane::has_arrived`](crate::backend::Lane::has_arrived)). What it wrote is made
//!   visible to wgpu's queue before that, by a wait for a semaphore that has its value already: it holds up nothing.
//! - **A tensor is submitted to again when all has ended that was submitted to wgpu's queue when its batch was given back**
//!   ([`Tensor::is_idle`](crate::backend::Tensor::is_idle)), which the loader waits for
//!   ([`Tensor::must_be_idle`](crate::backend::Tensor::must_be_idle)).

use std::collections::VecDeque;
use std::time::Duration;

use super::device::WgpuBackend;
use super::tensor::WgpuTensor;
use super::work::Work;
use crate::backend::SubmissionId;
use crate::error::DeviceError;

#[cfg(test)]
mod tests;

/// How often work without a ticket is looked for.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// What a lane knows of the application's device.
pub(super) struct Beside {
    user: WgpuBackend,
    /// Oldest first.
    arriving: VecDeque<(SubmissionId, Work)>,
    /// What will never arrive, until it is asked for.
    failed: Vec<(SubmissionId, DeviceError)>,
}

impl Beside {
    /// For so many submissions at once.
    pub(super) fn new(user: &WgpuBackend, submissions: usize) -> Self {
        Self { user: user.clone(), arriving: VecDeque::with_capacity(submissions), failed: Vec::new() }
    }

    /// The application's device.
    pub(super) fn user(&self) -> &WgpuBackend {
        &self.user
    }

    /// Whether a batch can be used on wgpu's queue.
    ///
    /// # Errors
    /// Why it never will, once.
    pub(super) fn has_arrived(&mut self, id: SubmissionId) -> Result<bool, DeviceError> {
        if let Some(at) = self.failed.iter().position(|(failed, _)| *failed == id) {
            return Err(self.failed.swap_remove(at).1);
        }
        Ok(self.arriving.iter().all(|(arriving, _)| *arriving != id))
    }

    /// Notes a batch that was submitted.
    pub(super) fn sent(&mut self, id: SubmissionId, output: &WgpuTensor) {
        self.arriving.extend(output.work().map(|work| (id, work)));
    }

    /// Makes what has ended on the queue of `backend` visible to wgpu's queue, where it has arrived then.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(super) fn show_arrived(&mut self, backend: &WgpuBackend) -> Result<(), DeviceError> {
        while let Some((_, work)) = self.arriving.front().filter(|(_, work)| work.has_ended()) {
            // What is lost ends too.
            backend.check()?;
            backend.show(work.ticket())?;
            self.arriving.pop_front();
        }
        Ok(())
    }

    /// Waits for the batch that was sent first, at most for this long.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(super) fn wait(&self, backend: &WgpuBackend, at_most: Duration) -> Result<(), DeviceError> {
        let Some((_, work)) = self.arriving.front() else { return Ok(()) };
        if backend.sleep_until_signal(work.ticket(), at_most)?.is_none() {
            std::thread::sleep(at_most.min(POLL_INTERVAL));
        }
        Ok(())
    }

    /// The device is gone.
    pub(super) fn give_up(&mut self) {
        let reason = "it was lost before the batch had arrived".to_owned();
        let lost = |(id, _)| (id, DeviceError::Lost { reason: reason.clone() });
        self.failed.extend(self.arriving.drain(..).map(lost));
    }
}
