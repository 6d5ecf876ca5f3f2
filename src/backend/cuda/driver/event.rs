//! Points in a stream.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};

use super::context::bind;

/// A point in a stream: other streams wait for it on the device, the CPU asks for it or sleeps until it is reached. Recorded
/// anew for each use. Before the first it counts as reached.
#[derive(Debug)]
pub(in super::super) struct Event {
    raw: sys::CUevent,
    context: Arc<CudaContext>,
}

// SAFETY: the driver takes an event's handle from any thread, and from several at once.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub(in super::super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        // Waiting for it sleeps. cudarc's own event takes one flag only, and this is two.
        let flags =
            sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32 | sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        Self::with_flags(context, flags)
    }

    /// An event that the device notes the time of.
    pub(in super::super) fn timed(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        Self::with_flags(context, sys::CUevent_flags::CU_EVENT_DEFAULT as u32)
    }

    fn with_flags(context: &Arc<CudaContext>, flags: u32) -> Result<Self, DriverError> {
        bind(context)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes one handle to `raw`; a context is current.
        unsafe { sys::cuEventCreate(&raw mut raw, flags) }.result()?;
        Ok(Self { raw, context: Arc::clone(context) })
    }

    /// The event is reached when all that was queued on the stream so far has ended.
    pub(in super::super) fn record(&self, stream: &CudaStream) -> Result<(), DriverError> {
        bind(&self.context)?;
        // SAFETY: both handles live as long as their owners, which are borrowed; another context's stream is an error.
        unsafe { result::event::record(self.raw, stream.cu_stream()) }
    }

    /// Makes what is queued on the stream from now on wait for the event as it was recorded last.
    pub(in super::super) fn hold(&self, stream: &CudaStream) -> Result<(), DriverError> {
        bind(&self.context)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both handles live as long as their owners, which are borrowed.
        unsafe { result::stream::wait_event(stream.cu_stream(), self.raw, flags) }
    }

    /// Whether it has been reached.
    pub(in super::super) fn is_reached(&self) -> Result<bool, DriverError> {
        bind(&self.context)?;
        // SAFETY: the handle lives as long as `self`.
        match unsafe { result::event::query(self.raw) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Seconds from another event to this one, to half a microsecond. Both are [`timed`](Self::timed), recorded and reached;
    /// otherwise it is an error.
    pub(in super::super) fn seconds_since(&self, start: &Self) -> Result<f64, DriverError> {
        bind(&self.context)?;
        // SAFETY: both handles live as long as their owners, which are borrowed; the driver checks what they are.
        let milliseconds = unsafe { result::event::elapsed(start.raw, self.raw) }?;
        Ok(f64::from(milliseconds) / 1e3)
    }

    /// Sleeps until it is reached.
    pub(in super::super) fn wait(&self) -> Result<(), DriverError> {
        bind(&self.context)?;
        // SAFETY: the handle lives as long as `self`.
        unsafe { result::event::synchronize(self.raw) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let bound = bind(&self.context);
        // SAFETY: destroyed once, here. The driver keeps what is still pending on it.
        let destroyed = unsafe { result::event::destroy(self.raw) };
        if let Err(error) = bound.and(destroyed) {
            log::debug!("an event could not be destroyed: {}", super::explain(error));
        }
    }
}
