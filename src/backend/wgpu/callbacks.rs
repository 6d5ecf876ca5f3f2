//! Calls into wgpu that run callbacks: polling and submitting.
//!
//! wgpu runs the callbacks of finished work on whichever thread polls or submits next, the application's as well as gpufeed's. What an
//! application's callback does on gpufeed's thread is the application's: its panic is logged with its text and ends nothing, and an
//! error it causes is logged and fails no batch. A panic may also be wgpu's own, with which it answers a lost device; so the device itself
//! is asked.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::device::WgpuBackend;
use super::health::one_line;
use super::native::KeepAlive;
use super::work::{Ended, Ticket, Work};
use crate::error::{DeviceError, panic_text};

/// A device that answers so many calls in a row with a panic is not asked again: its callbacks are long used up.
const MAX_PANICS: u32 = 1000;

impl WgpuBackend {
    /// Runs callbacks of finished work, and returns whether the queue is empty. Never waits, and finds a device that is lost in silence
    /// only at the next submission or [`poll`](Self::poll).
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(crate) fn look(&self) -> Result<bool, DeviceError> {
        self.lost_flag().get().map_or(Ok(()), Err)?;
        match self.guarded(|| self.device().poll(wgpu::PollType::Poll))? {
            Some(Ok(status)) => Ok(status.is_queue_empty()),
            // The driver's own timeout, or a panic: not finished yet.
            Some(Err(wgpu::PollError::Timeout)) | None => Ok(false),
            Some(Err(error)) => Err(DeviceError::Refused { message: error.to_string() }),
        }
    }

    /// Submits commands. To be called within a scope, for what recording them did wrong.
    ///
    /// # Errors
    /// The device's error, and nothing was sent.
    pub(super) fn submit<I: IntoIterator<Item = wgpu::CommandBuffer>>(
        &self,
        commands: I,
    ) -> Result<Ticket, DeviceError> {
        // Callbacks run before this returns, and what they do wrong falls into scopes of this thread.
        let scopes = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory]
            .map(|filter| self.device().push_error_scope(filter));
        let sent = self.signalled(|| self.guarded(|| self.queue().submit(commands)).map(drop));
        let [validation, internal, memory] = scopes;
        // Innermost first.
        let errors = [memory, internal, validation].map(|scope| pollster::block_on(scope.pop()));
        let ticket = sent?;
        match errors.into_iter().flatten().find_map(|error| own_error(&error)) {
            Some(error) => Err(error),
            None => Ok(ticket),
        }
    }

    /// Sends what `write_buffer` has queued for a submission that was refused. wgpu keeps it for the next one, and counts buffers that refused
    /// commands name as if those had run: a second write there would follow without a barrier, and could be overtaken by the first. Not where a
    /// wait for a transfer is staged, which it would take.
    pub(super) fn send_queued_writes(&self) {
        if let Err(error) = self.guarded(|| self.queue().submit([])) {
            log::debug!("nothing is sent any more: {error}");
        }
    }

    /// As [`submit`](Self::submit), then runs `sent`, and says when the commands have ended; `keep` is held until then.
    ///
    /// What a command encoder is told to do on submission (`map_buffer_on_submit`, `on_submitted_work_done`) is done by wgpu after the
    /// callbacks, and so not at all where one of them panics: it is done here instead.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub(super) fn send<I: IntoIterator<Item = wgpu::CommandBuffer>>(
        &self,
        commands: I,
        keep: Option<KeepAlive>,
        sent: impl FnOnce(),
    ) -> Result<Work, DeviceError> {
        let ticket = self.submit(commands)?;
        sent();
        let ended = Ended::default();
        let done = ended.on_drop(keep);
        self.queue().on_submitted_work_done(move || drop(done));
        Ok(Work::new(ticket, ended))
    }

    /// Runs `call`, which may run callbacks. `None` if one of them panicked: the call did its own work before that.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the panic was wgpu's, over a lost device.
    fn guarded<T>(&self, call: impl FnOnce() -> T) -> Result<Option<T>, DeviceError> {
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(value) => {
                self.lost_flag().note_calm();
                Ok(Some(value))
            }
            Err(payload) => self.panicked(payload.as_ref()).map(|()| None),
        }
    }

    /// # Errors
    /// [`DeviceError::Lost`].
    fn panicked(&self, payload: &(dyn Any + Send)) -> Result<(), DeviceError> {
        let message = one_line(panic_text(payload).unwrap_or("without a message"));
        if !self.is_alive() {
            return Err(self.lose(message));
        }
        if self.lost_flag().note_panic() > MAX_PANICS {
            return Err(self.lose(format!("every call panics: {message}")));
        }
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("without a name");
        log::error!(
            "a callback of the application panicked on the thread `{thread}`, which polled the device: {message}"
        );
        Ok(())
    }
}

/// The error, if the submission itself is what failed. A submission that fails runs no callbacks.
fn own_error(error: &wgpu::Error) -> Option<DeviceError> {
    let (cause, message) = match error {
        wgpu::Error::OutOfMemory { source } => (source, source.to_string()),
        wgpu::Error::Validation { source, description } | wgpu::Error::Internal { source, description } => {
            (source, one_line(description))
        }
    };
    if !cause.to_string().starts_with("In Queue::submit") {
        log::error!("a callback of the application failed on the thread that submitted: {message}");
        return None;
    }
    Some(match error {
        wgpu::Error::OutOfMemory { .. } => DeviceError::OutOfMemory { what: "a submission".to_owned(), bytes: 0 },
        _ => DeviceError::Refused { message },
    })
}
