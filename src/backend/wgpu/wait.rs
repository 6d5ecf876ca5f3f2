//! Waiting for the device, without holding what other threads need.
//!
//! wgpu's own wait keeps a lock of its device for as long as it lasts: `destroy()` on any other thread stands still until it ends,
//! and then every submission behind that. So gpufeed never waits inside wgpu. On Vulkan devices that it opened, each of its submissions
//! signals a semaphore of gpufeed's, and a wait is `vkWaitSemaphores`, which holds nothing; everywhere else it looks, and sleeps between
//! looks for 20 us at first and a millisecond at most. (On Windows too: since Rust 1.75 `std::thread::sleep` uses the system's high-resolution
//! timers.) The semaphore only wakes: whether work has ended is for wgpu's own record to say, through its callbacks.

use std::time::{Duration, Instant};

use super::device::WgpuBackend;
use super::work::{Ticket, Work};
use crate::error::DeviceError;

/// How long work may go unreported after the device has finished everything: its callbacks may be running on another thread.
const GRACE: Duration = Duration::from_secs(5);
const SHORTEST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// How long one wait for a semaphore is at most: a submission that the driver refused never signals.
const SLICE: Duration = Duration::from_millis(20);

impl WgpuBackend {
    /// As [`look`](Self::look), and asks whether the device is still there.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(crate) fn poll(&self) -> Result<bool, DeviceError> {
        let finished = self.look();
        self.check()?;
        finished
    }

    /// Returns when all that was submitted so far has ended.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub(super) fn wait_for_all(&self) -> Result<(), DeviceError> {
        let work = self.scope(|| self.send([], None, || ()))??;
        self.wait_for(&work)
    }

    /// Returns when the work has ended, and meanwhile runs callbacks of finished work.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub(super) fn wait_for(&self, work: &Work) -> Result<(), DeviceError> {
        self.wait_until(work.ticket(), || work.has_ended())
    }

    /// Returns when `done` does, and meanwhile runs callbacks of finished work. `ticket` is of the work that brings it about.
    ///
    /// # Errors
    /// [`DeviceError::Lost`]; [`DeviceError::Refused`] where the device has nothing left to do and `done` still does not hold.
    pub(super) fn wait_until(&self, ticket: Ticket, mut done: impl FnMut() -> bool) -> Result<(), DeviceError> {
        let mut nap = SHORTEST_NAP;
        let mut finished_at = None;
        while !done() {
            let signalled = self.sleep_until_signal(ticket, SLICE)?;
            let finished = self.poll()?;
            if done() {
                break;
            }
            if !finished {
                finished_at = None;
            } else if finished_at.get_or_insert_with(Instant::now).elapsed() > GRACE {
                let message = "it has finished all work, and what was waited for has not happened".to_owned();
                return Err(DeviceError::Refused { message });
            }
            // A semaphore that has its value already says nothing more: another thread's submission may have taken the signal.
            if signalled.is_none_or(|signalled| signalled) {
                std::thread::sleep(nap);
                nap = nap.saturating_mul(2).min(LONGEST_NAP);
            }
        }
        Ok(())
    }
}
