//! Many copies in one call: `cuMemcpyBatchAsync`.

use std::ffi::{c_int, c_uint};

use cudarc::driver::{CudaStream, DriverError, sys};

use super::context::bind;
use super::{DeviceMemory, Registration};

/// `CUmemcpyAttributes` of CUDA 12.8.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    /// 1: the sources are read in the order of the stream.
    order: c_uint,
    /// Hints for managed memory; zeros say nothing.
    hints: [(c_uint, c_int); 2],
    flags: c_uint,
}

/// `cuMemcpyBatchAsync` as CUDA 12.8 has it. CUDA 13 gave a newer one the same name in its headers; the driver keeps both.
type Call = unsafe extern "C" fn(
    *mut sys::CUdeviceptr,
    *mut sys::CUdeviceptr,
    *mut usize,
    usize,
    *mut Attributes,
    *mut usize,
    usize,
    *mut usize,
    sys::CUstream,
) -> sys::CUresult;

/// The driver's call that queues many copies at once.
#[derive(Clone, Copy)]
pub(in super::super) struct BatchCopy(Call);

/// The lists that one call takes; used again.
#[derive(Debug, Default)]
pub(in super::super) struct Lists {
    to: Vec<sys::CUdeviceptr>,
    from: Vec<sys::CUdeviceptr>,
    sizes: Vec<usize>,
}

impl Lists {
    /// Room for `copies` copies.
    pub(in super::super) fn with_capacity(copies: usize) -> Self {
        Self { to: Vec::with_capacity(copies), from: Vec::with_capacity(copies), sizes: Vec::with_capacity(copies) }
    }

    fn clear(&mut self) {
        self.to.clear();
        self.from.clear();
        self.sizes.clear();
    }

    /// Adds a copy. One that goes on where the last one ended makes that longer: in order, a batch is a single copy.
    fn push(&mut self, to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize) {
        if let (Some(last), Some(size)) = (self.from.last(), self.sizes.last_mut())
            && last + *size as u64 == from
        {
            *size += bytes;
            return;
        }
        self.to.push(to);
        self.from.push(from);
        self.sizes.push(bytes);
    }
}

impl BatchCopy {
    const SINCE: c_int = 12_080;

    /// The call, where the driver has it.
    pub(in super::super) fn load(driver: i32) -> Option<Self> {
        if driver < Self::SINCE {
            return None;
        }
        let mut address = std::ptr::null_mut();
        let mut status = sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        let name = c"cuMemcpyBatchAsync";
        // SAFETY: the driver writes one address and one status, and the name ends with a zero.
        let found =
            unsafe { sys::cuGetProcAddress_v2(name.as_ptr(), &raw mut address, Self::SINCE, 0, &raw mut status) };
        if found.result().is_err() || address.is_null() {
            return None;
        }
        // SAFETY: asked for by version, so this is the function with the signature of CUDA 12.8.
        Some(Self(unsafe { std::mem::transmute::<*mut std::ffi::c_void, Call>(address) }))
    }

    /// Queues one copy a sample, from `offsets` of the registered memory one after the other into `to`.
    pub(super) fn gather(
        self,
        stream: &CudaStream,
        memory: &Registration,
        offsets: &[u64],
        sample_bytes: usize,
        to: &DeviceMemory,
        lists: &mut Lists,
    ) -> Result<(), DriverError> {
        if !memory.covers(offsets, sample_bytes) || offsets.len() * sample_bytes > to.bytes() {
            return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
        }
        lists.clear();
        for (index, offset) in offsets.iter().enumerate() {
            lists.push(to.address + (index * sample_bytes) as u64, memory.address() + offset, sample_bytes);
        }
        let mut attributes = Attributes { order: 1, hints: [(0, 0); 2], flags: 0 };
        let (mut first, mut failed) = (0, 0);
        bind(stream.context())?;
        // SAFETY: the lists are of equal length, and every range was checked to lie inside its memory. The registration and
        // the device memory outlive the copies: whoever owns them waits for the stream. The call keeps none of the lists.
        let queued = unsafe {
            self.0(
                lists.to.as_mut_ptr(),
                lists.from.as_mut_ptr(),
                lists.sizes.as_mut_ptr(),
                lists.sizes.len(),
                &raw mut attributes,
                &raw mut first,
                1,
                &raw mut failed,
                stream.cu_stream(),
            )
        };
        queued.result()
    }
}

impl std::fmt::Debug for BatchCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BatchCopy")
    }
}
