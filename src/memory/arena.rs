//! Memory to load a data set into.

#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;

use super::{HostMemory, StableHostMemory};
use crate::error::DeviceError;

/// Host memory aligned to 64 KiB that is filled once and then read, by devices too: see [`StableHostMemory`].
///
/// ```
/// use gpufeed::HostArena;
///
/// let arena = HostArena::new(3 * 4, |bytes| bytes.fill(7))?;
/// assert_eq!(arena.bytes(), [7; 12]);
/// # Ok::<(), gpufeed::DeviceError>(())
/// ```
pub struct HostArena {
    memory: HostMemory,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the allocation is owned, and nobody writes it once the arena is made.
unsafe impl Send for HostArena {}
// SAFETY: as above: shared access only reads.
unsafe impl Sync for HostArena {}

impl HostArena {
    /// What the memory begins at and ends at a multiple of: as coarse as any API or page size asks of memory that a device imports
    /// (64 KiB: Windows, Vulkan drivers with large pages; 16 KiB: Apple; 4 KiB elsewhere).
    const GRANULE: usize = 64 << 10;

    /// Allocates `bytes` bytes, zeroed, and lets `fill` write them.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] where the host has no such memory.
    pub fn new(bytes: usize, fill: impl FnOnce(&mut [u8])) -> Result<Self, DeviceError> {
        let refused = || DeviceError::OutOfMemory { what: "host memory of a data set".into(), bytes: bytes as u64 };
        // Whole granules, so that what a device locks or reads with it is nobody else's.
        let whole = bytes.max(1).checked_next_multiple_of(Self::GRANULE).ok_or_else(refused)?;
        let memory = HostMemory::aligned(whole, Self::GRANULE).map_err(|_| refused())?;
        let base = memory.address();
        // SAFETY: the allocation is zeroed, at least this long, and used by nobody else until `fill` returns.
        fill(unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), bytes) });
        Ok(Self { memory, base, len: bytes })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl AsRef<[u8]> for HostArena {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl fmt::Debug for HostArena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostArena").field("bytes", &self.len).finish_non_exhaustive()
    }
}

// SAFETY: the allocation stays where it is until the arena is dropped, and is only read.
unsafe impl StableHostMemory for HostArena {
    fn address(&self) -> NonNull<u8> {
        self.base
    }

    fn granule(&self) -> usize {
        Self::GRANULE
    }

    fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_is_aligned_as_devices_want_it_and_holds_what_was_filled_in() {
        let arena = HostArena::new(5000, |bytes| bytes[255] = 255).expect("5000 bytes");
        assert_eq!(arena.address().addr().get() % HostArena::GRANULE, 0);
        assert_eq!((StableHostMemory::len(&arena), arena.bytes()[255], arena.bytes()[4999]), (5000, 255, 0));
        assert!(HostArena::new(usize::MAX, |_| ()).is_err());
    }
}
