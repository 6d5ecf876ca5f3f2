//! Where host memory comes from: the allocator, and on Windows the system for what is aligned to a whole region.
//!
//! DX12 opens heaps only over regions of `VirtualAlloc`, from their first byte on, and the allocator's blocks begin somewhere within one.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Zeroed memory.
///
/// # Safety
/// The layout's size is not zero.
pub(super) unsafe fn zeroed(layout: Layout) -> Option<NonNull<u8>> {
    #[cfg(windows)]
    if layout.align() == regions::ALIGN {
        return regions::reserve(layout.size());
    }
    // SAFETY: the caller says so.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// Frees it.
///
/// # Safety
/// It came from [`zeroed`] with this layout, and nobody uses it.
pub(super) unsafe fn free(base: NonNull<u8>, layout: Layout) {
    #[cfg(windows)]
    if layout.align() == regions::ALIGN {
        // SAFETY: the caller says so, and the layout says which of the two it came from.
        return unsafe { regions::release(base) };
    }
    // SAFETY: the caller says so.
    unsafe { dealloc(base.as_ptr(), layout) };
}

#[cfg(windows)]
mod regions {
    use std::ptr::{NonNull, null};

    use windows_sys::Win32::System::Memory::{
        MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_READWRITE, VirtualAlloc, VirtualFree,
    };

    /// Regions begin at multiples of this.
    pub(super) const ALIGN: usize = 64 << 10;

    /// A region of whole pages, zeroed.
    pub(super) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: no address is asked for, so it is nobody else's memory; a size of zero is refused.
        let base = unsafe { VirtualAlloc(null(), bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
        NonNull::new(base.cast())
    }

    /// Gives it back.
    ///
    /// # Safety
    /// It came from [`reserve`], and nobody uses it.
    pub(super) unsafe fn release(base: NonNull<u8>) {
        // SAFETY: it is the first byte of a region, which is released as a whole.
        let freed = unsafe { VirtualFree(base.as_ptr().cast(), 0, MEM_RELEASE) };
        debug_assert_ne!(freed, 0, "a region is freed once");
    }
}
