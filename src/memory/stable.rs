//! Host memory that a device may read by itself.

#![allow(unsafe_code)]

use std::ptr::NonNull;

/// Memory of a source that devices read without the CPU: the whole dataset, sample after sample.
///
/// A loader keeps the `Arc` it was given until the device has finished its last read; a borrow would not do, since a leaked
/// loader ends it.
///
/// # Safety
/// [`address`](Self::address) and [`len`](Self::len) are the same for as long as the value lives, the memory is valid for reads all
/// that time, and nobody writes it.
pub unsafe trait StableHostMemory: Send + Sync {
    /// The first byte.
    fn address(&self) -> NonNull<u8>;

    /// Bytes of memory.
    fn len(&self) -> usize;

    /// Whether there is no memory at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A power of two: whatever shares a block of so many bytes, from one multiple of it to the next, with the memory is mapped for as
    /// long as the memory is, and may be imported with it. The smallest page of any system unless the memory knows better; some drivers
    /// import in blocks of 64 KiB only.
    fn granule(&self) -> usize {
        4096
    }

    /// Whether the pages are mapped read-only, as those of a file may be. Such a mapping must be shared: page-locking a
    /// private read-only mapping has been seen to hang a driver. Software devices do not take it: they read with the CPU, and
    /// where a file was cut short that ends the process.
    fn is_mapped_read_only(&self) -> bool {
        false
    }
}
