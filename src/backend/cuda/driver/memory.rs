//! Device memory, and the host memory that slots are made of.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, result, sys};

use super::context::{bind, wait_for_all};
use crate::staging::{HostMemory, SlotMemory};

/// Device memory of an exact size.
#[derive(Debug)]
pub(in super::super) struct DeviceMemory {
    pub(super) address: sys::CUdeviceptr,
    bytes: usize,
    context: Arc<CudaContext>,
}

impl DeviceMemory {
    pub(in super::super) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
        bind(context)?;
        // SAFETY: allocates; what the memory holds is undefined, and nothing on the CPU reads it as anything but bytes.
        let address = unsafe { result::malloc_sync(bytes.max(1)) }?;
        Ok(Self { address, bytes, context: Arc::clone(context) })
    }

    /// Bytes of memory.
    pub(in super::super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its address on the device, of no use to the CPU.
    pub(in super::super) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // Kernels and copies on any stream, the user's included, may still use it. After a sticky error nothing runs any more.
        let idle = wait_for_all(&self.context);
        // SAFETY: allocated in `new`, freed once, and the context has nothing left to do.
        let freed = unsafe { result::free_sync(self.address) };
        if let Err(error) = idle.and(freed) {
            log::debug!("device memory could not be freed: {}", super::explain(error));
        }
    }
}

/// How host memory is page-locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum PinKind {
    /// Ordinary caching.
    Cached,
    /// Write-combined: not cached, so that the CPU's caches need not be asked when the device reads.
    WriteCombined,
}

/// Page-locked host memory of an exact size, which every device can read.
#[derive(Debug)]
pub(in super::super) struct Pinned {
    base: NonNull<u8>,
    bytes: usize,
    context: Arc<CudaContext>,
}

// SAFETY: the allocation is owned and has no thread affinity: the context is bound wherever it is freed.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(context: &Arc<CudaContext>, bytes: usize, kind: PinKind) -> Result<Self, DriverError> {
        const PORTABLE: u32 = 1;
        const WRITE_COMBINED: u32 = 4;
        let flags = PORTABLE | if kind == PinKind::WriteCombined { WRITE_COMBINED } else { 0 };
        bind(context)?;
        // SAFETY: allocates; the memory is only written through raw pointers, never read by the CPU.
        let base = unsafe { result::malloc_host(bytes.max(1), flags) }?;
        let base = NonNull::new(base.cast()).ok_or(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY))?;
        Ok(Self { base, bytes, context: Arc::clone(context) })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let bound = bind(&self.context);
        // SAFETY: allocated in `new` and freed once. Whoever lets the device read it owns it until that has ended.
        let freed = unsafe { result::free_host(self.base.as_ptr().cast::<c_void>()) };
        if let Err(error) = bound.and(freed) {
            log::debug!("page-locked memory could not be freed: {}", super::explain(error));
        }
    }
}

/// What a slot is made of.
#[derive(Debug)]
pub(in super::super) enum Memory {
    /// Ordinary memory.
    Pageable(HostMemory),
    /// Page-locked memory.
    Pinned(Pinned),
}

impl Memory {
    /// Page-locks new memory.
    pub(in super::super) fn pinned(
        context: &Arc<CudaContext>,
        bytes: usize,
        kind: PinKind,
    ) -> Result<Self, DriverError> {
        Pinned::new(context, bytes, kind).map(Self::Pinned)
    }

    /// The memory itself. Never a reference: it may never have been written.
    pub(super) fn bytes(&self) -> (*const u8, usize) {
        match self {
            Self::Pageable(memory) => (memory.as_ptr(), memory.len()),
            Self::Pinned(memory) => (memory.base.as_ptr(), memory.bytes),
        }
    }
}

// SAFETY: either kind of memory is owned, stays where it is when the value moves, and lives until it is dropped.
unsafe impl SlotMemory for Memory {
    fn base(&mut self) -> NonNull<u8> {
        match self {
            Self::Pageable(memory) => memory.base(),
            Self::Pinned(memory) => memory.base,
        }
    }

    fn byte_len(&self) -> usize {
        match self {
            Self::Pageable(memory) => memory.byte_len(),
            Self::Pinned(memory) => memory.bytes,
        }
    }

    /// The driver's own staging reads pageable memory with the CPU.
    fn is_streamed(&self) -> bool {
        matches!(self, Self::Pinned(_))
    }
}
