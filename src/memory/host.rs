//! Host memory of a slot.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::allocation;
use crate::error::DeviceError;

/// Zeroed, page-aligned, pageable host memory of an exact size.
#[derive(Debug)]
pub(crate) struct HostMemory {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the allocation is owned and has no thread affinity.
unsafe impl Send for HostMemory {}
// SAFETY: shared access only reads.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    const PAGE: usize = 4096;

    /// Allocates `bytes` zeroed bytes.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(crate) fn new(bytes: usize) -> Result<Self, DeviceError> {
        Self::aligned(bytes, Self::PAGE)
    }

    /// The same at a multiple of `align` bytes, a power of two.
    pub(super) fn aligned(bytes: usize, align: usize) -> Result<Self, DeviceError> {
        let refused = || DeviceError::OutOfMemory { what: "host memory of a slot".into(), bytes: bytes as u64 };
        let layout = Layout::from_size_align(bytes.max(1), align).map_err(|_| refused())?;
        // SAFETY: the layout's size is not zero.
        let base = unsafe { allocation::zeroed(layout) }.ok_or_else(refused)?;
        Ok(Self { base, layout })
    }

    /// The first byte. Reading and writing through it follows the rules of the value itself.
    pub(crate) fn address(&self) -> NonNull<u8> {
        self.base
    }
}

impl Deref for HostMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the allocation is initialised, of this size, and nobody writes it: a `Loan` that gives out writers owns
        // the value, so that it cannot be borrowed.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the mutable borrow is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.layout.size()) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { allocation::free(self.base, self.layout) };
    }
}
