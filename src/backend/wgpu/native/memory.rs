//! Memory that an API made for gpufeed, whichever API it was.

#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use super::KeepAlive;

/// A buffer made by an API, for copies that wgpu does not know of. Clones are the same buffer, and keep it.
#[derive(Clone)]
pub(in crate::backend::wgpu) struct RawBuffer {
    owned: KeepAlive,
    size: u64,
}

impl fmt::Debug for RawBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawBuffer").field("size", &self.size).finish_non_exhaustive()
    }
}

impl RawBuffer {
    /// A buffer of so many bytes, which the API frees when nobody holds it.
    pub fn new(owned: KeepAlive, size: u64) -> Self {
        Self { owned, size }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// As the API has it; `None` where it is another API's.
    pub fn of<T: 'static>(&self) -> Option<&T> {
        self.owned.downcast_ref()
    }

    /// Keeps the memory while the device uses it.
    pub fn keep(&self) -> KeepAlive {
        Arc::clone(&self.owned)
    }
}

/// The right to write a buffer's memory. There is one for each buffer.
pub(in crate::backend::wgpu) struct Writable {
    base: NonNull<u8>,
    len: usize,
    raw: RawBuffer,
}

// SAFETY: the pointer is to a mapping that has no thread affinity and lives as long as `raw`, which is Send: see `new`.
unsafe impl Send for Writable {}

impl Writable {
    /// The memory of `raw` from its first byte on.
    ///
    /// # Safety
    /// `base` is valid for writes of `len` bytes on any thread, for as long as `raw` is held, and nobody else writes there.
    pub unsafe fn new(base: NonNull<u8>, len: usize, raw: RawBuffer) -> Self {
        Self { base, len, raw }
    }

    /// Keeps the memory while the device reads it.
    pub fn keep(&self) -> KeepAlive {
        self.raw.keep()
    }

    /// The buffer, to be copied from.
    pub fn raw(&self) -> RawBuffer {
        self.raw.clone()
    }

    /// The first byte: valid for writes of [`len`](Self::len) bytes for as long as this value lives.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes into the memory. What does not fit is left out.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let room = self.len.saturating_sub(at);
        let count = bytes.len().min(room);
        if count > 0 {
            // SAFETY: at < len, so the pointer is within the mapping.
            let to = unsafe { self.base.add(at) };
            // SAFETY: at + count <= len, the mapping is no Rust allocation that `bytes` could be a part of, and nobody else
            // writes it: this is the only Writable.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), count) };
        }
    }
}

/// Memory of the program's own, as a buffer of the device.
pub(in crate::backend::wgpu) struct Import {
    /// For bind groups. Its handle is not wgpu's to destroy.
    pub buffer: wgpu::Buffer,
    raw: RawBuffer,
}

impl Import {
    pub fn new(buffer: wgpu::Buffer, raw: RawBuffer) -> Self {
        Self { buffer, raw }
    }

    /// Keeps the memory while the device reads it.
    pub fn keep(&self) -> KeepAlive {
        self.raw.keep()
    }

    /// The buffer, to be copied from.
    pub fn raw(&self) -> &RawBuffer {
        &self.raw
    }
}
