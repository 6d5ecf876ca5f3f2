//! Calls into a device that end in a value: never in a panic, never in silence.
//!
//! wgpu reports a lost device in three ways, none of which is an error of the call: a callback (one slot a device, which on an
//! application's device is the application's), a panic out of [`wgpu::Device::poll`], and nothing at all, since error scopes do
//! not catch it. [`WgpuBackend::check`] covers the last.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::device::WgpuBackend;
use crate::backend::Api;
use crate::error::DeviceError;

/// How long work may go unreported after the device has finished everything: its callbacks may be running on another thread.
const GRACE: Duration = Duration::from_secs(5);
const SHORTEST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// Why a device was lost, once it is. Clones are the same flag; the first reason stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostFlag(Arc<OnceLock<String>>);

impl LostFlag {
    pub(crate) fn set(&self, reason: impl Into<String>) {
        // The first reason is the cause, and later ones are its consequences.
        let _ = self.0.set(reason.into());
    }

    pub(crate) fn get(&self) -> Option<DeviceError> {
        self.0.get().map(|reason| DeviceError::Lost { reason: reason.clone() })
    }
}

impl WgpuBackend {
    /// Whether the device is still there. Takes a few microseconds and allocates nothing on the device.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        self.lost_flag().get().map_or(Ok(()), Err)?;
        // A lost device swallows every error, and a live one refuses a buffer without usages before it allocates: so
        // silence means lost. Asking is the only way to know of a device whose callback is not ours to set.
        let scope = self.device().push_error_scope(wgpu::ErrorFilter::Validation);
        let usage = wgpu::BufferUsages::empty();
        let probe = wgpu::BufferDescriptor { label: Some("gpufeed probe"), size: 4, usage, mapped_at_creation: false };
        drop(self.device().create_buffer(&probe));
        if pollster::block_on(scope.pop()).is_none() {
            return Err(self.lose("it was destroyed, or the driver gave it up"));
        }
        Ok(())
    }

    /// Runs callbacks of finished work, and returns whether the queue is empty. Never waits.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(crate) fn poll(&self) -> Result<bool, DeviceError> {
        self.poll_as(wgpu::PollType::Poll)
    }

    /// Returns when `done` does, and meanwhile runs callbacks of finished work. `submission` is what to wait for, or `None` for
    /// all submitted so far.
    ///
    /// # Errors
    /// [`DeviceError::Lost`]; [`DeviceError::Refused`] where the device has nothing left to do and `done` still does not hold.
    pub(crate) fn wait_until(
        &self,
        submission: Option<&wgpu::SubmissionIndex>,
        mut done: impl FnMut() -> bool,
    ) -> Result<(), DeviceError> {
        let mut nap = SHORTEST_NAP;
        let mut finished_at = None;
        while !done() {
            let finished = self.step(submission)?;
            if done() {
                break;
            }
            if !finished {
                finished_at = None;
            } else if finished_at.get_or_insert_with(Instant::now).elapsed() > GRACE {
                let message = "it has finished all work, and what was waited for has not happened".to_owned();
                return Err(DeviceError::Refused { message });
            }
            std::thread::sleep(nap);
            nap = nap.saturating_mul(2).min(LONGEST_NAP);
        }
        Ok(())
    }

    /// One step towards `submission`: returns whether it has finished.
    fn step(&self, submission: Option<&wgpu::SubmissionIndex>) -> Result<bool, DeviceError> {
        if self.api() == Api::Gl || !self.owned() {
            // A wait on GL holds the only context for up to four seconds, and a thread that wants it panics after six. A wait on an
            // application's device holds a lock that its other threads need to destroy anything.
            return self.poll();
        }
        // Never with a timeout: when one expires while another thread submits, wgpu 30.0.2 fails an assertion.
        let wait = wgpu::PollType::Wait { submission_index: submission.cloned(), timeout: None };
        self.poll_unchecked(wait).map(|_| true)
    }

    /// As [`poll`](Self::poll), for the hot path: a device that is lost in silence shows at the next submission or wait.
    pub(crate) fn look(&self) -> Result<bool, DeviceError> {
        self.poll_unchecked(wgpu::PollType::Poll)
    }

    fn poll_as(&self, poll: wgpu::PollType) -> Result<bool, DeviceError> {
        let finished = self.poll_unchecked(poll);
        self.check()?;
        finished
    }

    fn poll_unchecked(&self, poll: wgpu::PollType) -> Result<bool, DeviceError> {
        self.lost_flag().get().map_or(Ok(()), Err)?;
        // wgpu panics here when the device is lost. Whatever else it might panic for, its state is unknown then.
        let polled = catch_unwind(AssertUnwindSafe(|| self.device().poll(poll)))
            .map_err(|payload| self.lose(panic_message(payload.as_ref())))?;
        match polled {
            Ok(status) => Ok(status.is_queue_empty()),
            // No timeout was given, so this is one the driver has of its own: not finished yet.
            Err(wgpu::PollError::Timeout) => Ok(false),
            Err(error) => Err(DeviceError::Refused { message: error.to_string() }),
        }
    }

    /// Runs `f` and returns its value, unless something in it failed: what it made is invalid then.
    ///
    /// Scopes are of one thread: what `f` does on others goes uncaught.
    ///
    /// # Errors
    /// The first error of each kind, memory before the errors that follow from it.
    pub(crate) fn scope<T>(&self, f: impl FnOnce() -> T) -> Result<T, DeviceError> {
        self.allocate("device memory", 0, f)
    }

    /// As [`scope`](Self::scope), for something that allocates `bytes` bytes for `what`.
    ///
    /// # Errors
    /// As [`scope`](Self::scope).
    pub(crate) fn allocate<T>(&self, what: &str, bytes: u64, f: impl FnOnce() -> T) -> Result<T, DeviceError> {
        self.lost_flag().get().map_or(Ok(()), Err)?;
        let filters = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory];
        let [validation, internal, memory] = filters.map(|filter| self.device().push_error_scope(filter));
        let value = f();
        let errors = [memory, internal, validation].map(|scope| pollster::block_on(scope.pop()));
        self.check()?;
        match errors.into_iter().flatten().next() {
            None => Ok(value),
            Some(wgpu::Error::OutOfMemory { .. }) => Err(DeviceError::OutOfMemory { what: what.to_owned(), bytes }),
            Some(error) => Err(DeviceError::Refused { message: one_line(&error.to_string()) }),
        }
    }

    /// An operation failed outside of a scope: the device refused it, unless it is lost, which explains everything.
    pub(crate) fn refused(&self, message: String) -> DeviceError {
        self.check().err().unwrap_or(DeviceError::Refused { message })
    }

    pub(crate) fn lose(&self, reason: impl Into<String>) -> DeviceError {
        let reason = reason.into();
        self.lost_flag().set(reason.clone());
        self.lost_flag().get().unwrap_or(DeviceError::Lost { reason })
    }
}

/// wgpu's message without its title and line breaks: the cause, and what that was caused by.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let causes = lines.filter(|line| !line.is_empty() && !matches!(*line, "Validation Error" | "Caused by:"));
    causes.collect::<Vec<_>>().join(": ")
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
    one_line(text.unwrap_or("wgpu panicked"))
}
