//! Memory that wgpu lends for writing, as slot memory.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::native::Writable;
use crate::staging::{HostMemory, SlotMemory};

/// What a slot of this backend is made of while it is filled.
pub(super) enum Memory {
    /// Pageable memory of ours.
    Host(HostMemory),
    /// A mapped buffer. Dropping it ends the writing.
    View(wgpu::BufferViewMut),
    /// wgpu's own staging buffer. Dropping it queues the copy to its destination.
    Queue(wgpu::QueueWriteBufferView),
    /// Memory that an API made for us, mapped for as long as it lives.
    Raw(Writable),
}

// SAFETY: HostMemory promises it itself. The two views own a mapping of this length that stays where it is when the view moves; wgpu
// keeps the mapping until the view is dropped: `unmap` panics while a view exists, and a buffer that is destroyed (with its
// device, or alone) while it is mapped keeps its memory until it is unmapped. Each view is the only one of its range, and
// the types are Send, so that any thread may write through them. A Writable is the only right to write its mapping, and keeps it.
unsafe impl SlotMemory for Memory {
    fn base(&mut self) -> NonNull<u8> {
        match self {
            Self::Host(memory) => memory.base(),
            Self::View(view) => view.slice(..).as_raw_element_ptr(),
            Self::Queue(view) => view.slice(..).as_raw_element_ptr(),
            Self::Raw(memory) => memory.base(),
        }
    }

    fn byte_len(&self) -> usize {
        match self {
            Self::Host(memory) => memory.byte_len(),
            Self::View(view) => view.len(),
            Self::Queue(view) => view.len(),
            Self::Raw(memory) => memory.len(),
        }
    }

    /// `write_buffer` reads host memory with the CPU. wgpu's own mappings may be ordinary memory of a software driver; on a
    /// card they are write-combined, and streaming makes no difference there.
    fn is_streamed(&self) -> bool {
        matches!(self, Self::Raw(_))
    }
}
