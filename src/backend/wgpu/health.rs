//! Calls into a device that end in a value: never in a panic, never in silence.
//!
//! wgpu reports a lost device in three ways, none of which is an error of the call: a callback (one slot a device, which on an
//! application's device is the application's), a panic out of [`wgpu::Device::poll`] (see [`callbacks`](super::callbacks)), and nothing at all, since error scopes do
//! not catch it. [`WgpuBackend::check`] covers the last.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::device::WgpuBackend;
use crate::error::DeviceError;

/// Why a device was lost, once it is. Clones are the same flag; the first reason stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostFlag(Arc<Health>);

#[derive(Debug, Default)]
struct Health {
    reason: OnceLock<String>,
    /// Calls in a row that ended in a panic.
    panics: AtomicU32,
}

impl LostFlag {
    pub(crate) fn set(&self, reason: impl Into<String>) {
        // The first reason is the cause, and later ones are its consequences.
        let _ = self.0.reason.set(reason.into());
    }

    pub(crate) fn get(&self) -> Option<DeviceError> {
        self.0.reason.get().map(|reason| DeviceError::Lost { reason: reason.clone() })
    }
}

impl LostFlag {
    /// A call has panicked: how many did in a row.
    pub(super) fn note_panic(&self) -> u32 {
        self.0.panics.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A call has not panicked.
    pub(super) fn note_calm(&self) {
        self.0.panics.store(0, Ordering::Relaxed);
    }
}

impl WgpuBackend {
    /// Whether the device is still there. Takes a few microseconds and allocates nothing on the device.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        self.lost_flag().get().map_or(Ok(()), Err)?;
        if self.is_alive() { Ok(()) } else { Err(self.lose("it was destroyed, or the driver gave it up")) }
    }

    /// Asks the device itself.
    pub(super) fn is_alive(&self) -> bool {
        self.devices().all(answers)
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

/// Whether a device is not lost.
fn answers(device: &wgpu::Device) -> bool {
    // A lost device swallows every error, and a live one refuses a buffer without usages before it allocates: so
    // silence means lost. Asking is the only way to know of a device whose callback is not ours to set.
    let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let usage = wgpu::BufferUsages::empty();
    let probe = wgpu::BufferDescriptor { label: Some("gpufeed probe"), size: 4, usage, mapped_at_creation: false };
    drop(device.create_buffer(&probe));
    pollster::block_on(scope.pop()).is_some()
}

/// wgpu's message without its title and line breaks: the cause, and what that was caused by.
pub(super) fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let causes = lines.filter(|line| !line.is_empty() && !matches!(*line, "Validation Error" | "Caused by:"));
    causes.collect::<Vec<_>>().join(": ")
}
