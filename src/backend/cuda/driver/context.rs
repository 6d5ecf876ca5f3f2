//! An application's context, and streams of gpufeed's own in it.
//!
//! cudarc's `bind_to_thread`, and all that calls it, begins by returning and clearing whatever error a drop anywhere in the process has
//! recorded in the context. That error is the application's: it would fail a batch that is well and be lost to whoever waits for it.
//! So nothing of the kind is used in this backend, and nothing records an error there either.

use std::ops::Deref;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError, result};

use super::Event;
use crate::backend::cuda::KernelPriority;

/// Makes a context current on the calling thread.
pub(in super::super) fn bind(context: &CudaContext) -> Result<(), DriverError> {
    if result::ctx::get_current()? == Some(context.cu_ctx()) {
        return Ok(());
    }
    // SAFETY: the context lives as long as its owner, which is borrowed; whoever makes another one current does so for itself.
    unsafe { result::ctx::set_current(context.cu_ctx()) }
}

/// Waits for everything in a context.
pub(super) fn wait_for_all(context: &CudaContext) -> Result<(), DriverError> {
    bind(context)?;
    result::ctx::synchronize()
}

/// Waits for all that was queued on a stream.
pub(in super::super) fn wait_for(stream: &CudaStream) -> Result<(), DriverError> {
    bind(stream.context())?;
    // SAFETY: the stream lives as long as its owner, which is borrowed.
    unsafe { result::stream::synchronize(stream.cu_stream()) }
}

/// Asks a context whether it still serves at all, by a call that waits for nothing and touches nobody's work: after a sticky error
/// every call fails, and after any other this one does not.
pub(in super::super) fn probe(context: &Arc<CudaContext>) -> Result<(), DriverError> {
    Event::new(context).map(drop)
}

/// A stream of gpufeed's own, which no other stream waits for. What was queued on it when it is dropped still ends.
#[derive(Debug)]
pub(in super::super) struct Stream {
    /// One that cudarc counts as borrowed, so that its drop leaves the stream to ours.
    borrowed: Arc<CudaStream>,
}

impl Stream {
    pub(in super::super) fn new(context: &Arc<CudaContext>) -> Result<Arc<Self>, DriverError> {
        Self::with_priority(context, KernelPriority::Least)
    }

    /// A stream whose kernels go before those of others, or after them.
    pub(in super::super) fn with_priority(
        context: &Arc<CudaContext>,
        priority: KernelPriority,
    ) -> Result<Arc<Self>, DriverError> {
        bind(context)?;
        let (least, greatest) = result::stream::get_priority_range()?;
        let priority = match priority {
            KernelPriority::Least => least,
            KernelPriority::Greatest => greatest,
        };
        let raw = result::stream::create_with_priority(result::stream::StreamKind::NonBlocking, priority)?;
        // SAFETY: the stream was made above, in this context. Nobody else holds the wrapper, which ends with `Self`, and that destroys
        // the stream.
        let borrowed = unsafe { context.wrap_borrowed_stream(raw) };
        Ok(Arc::new(Self { borrowed }))
    }
}

impl Deref for Stream {
    type Target = CudaStream;

    fn deref(&self) -> &CudaStream {
        &self.borrowed
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let bound = bind(self.borrowed.context());
        // SAFETY: made in `new`, destroyed once, and nothing is queued on it any more.
        let destroyed = unsafe { result::stream::destroy(self.borrowed.cu_stream()) };
        if let Err(error) = bound.and(destroyed) {
            log::debug!("a stream could not be destroyed: {}", super::explain(error));
        }
    }
}
