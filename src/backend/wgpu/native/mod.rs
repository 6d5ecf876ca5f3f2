//! What wgpu does not offer, and the APIs below it do: host memory that stays mapped, memory of the program's own, and copies on queues
//! that wgpu does not know of.
//!
//! Each API has a folder beside this one and is reached through [`Native`]; what it hands out is the same for all.
//!
//! # Who owns what
//!
//! Buffers and memory made here are gpufeed's, and wgpu only borrows the handles. wgpu never destroys the device of the API while a
//! [`wgpu::Device`] exists: `Device::destroy` marks it invalid and, once the queue is empty, drops *wgpu's* resources, and the
//! handle goes with the last reference. So each allocation holds a clone of the device. What holds an allocation is:
//!
//! - the lane, for as long as it may submit;
//! - whoever may write it ([`Writable`]), which a lane lends to a fill;
//! - each submission that reads it, through the closure that wgpu runs, or drops, when the device has finished it ([`KeepAlive`]).
//!
//! The last of them frees it, whichever way the lane, the device or the application end.

mod copies;
mod memory;
mod pages;

pub(super) use copies::{Copies, Copy, CopyQueue, MAX_QUEUES, Region, TransferTicket, are_within};
pub(super) use memory::{Import, RawBuffer, Writable};
pub(super) use pages::whole_pages;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use super::vulkan::{FamilyQueues, HostCache};
use crate::backend::wgpu::WgpuBackend;
use crate::error::DeviceError;
use crate::memory::StableHostMemory;

/// Holds an allocation for as long as the device may read it.
pub(super) type KeepAlive = Arc<dyn Any + Send + Sync>;

/// What one API offers. The device of every call is of that API.
pub(super) trait Native: Sync {
    /// A buffer of `bytes` zeroed bytes in host memory, and the right to write it.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing stays allocated.
    fn host_buffer(
        &self,
        backend: &WgpuBackend,
        label: &str,
        bytes: u64,
        usage: wgpu::BufferUsages,
        place: Place,
    ) -> Result<(wgpu::Buffer, Writable), DeviceError>;

    /// A buffer of `bytes` bytes in the device's memory that copies on other queues write and wgpu's kernels read. Its bytes are undefined
    /// until it is cleared, which the caller does.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing stays allocated.
    fn device_buffer(
        &self,
        backend: &WgpuBackend,
        label: &str,
        bytes: u64,
    ) -> Result<(wgpu::Buffer, RawBuffer), DeviceError>;

    /// What limits imports, or why there are none.
    ///
    /// # Errors
    /// The reason.
    fn import_limits(&self, device: &wgpu::Device) -> Result<ImportLimits, String>;

    /// A buffer over bytes of memory that the program has, and whatever else is on the same pages.
    ///
    /// # Errors
    /// [`ImportError`]; nothing stays imported.
    fn import(
        &self,
        backend: &WgpuBackend,
        memory: &Arc<dyn StableHostMemory>,
        range: Range<usize>,
    ) -> Result<Import, ImportError>;

    /// Records copies from imported memory, into an encoder that records nothing else. The caller orders it: wgpu may not know of it.
    ///
    /// False where a buffer is gone or a region is outside of it; nothing is recorded then.
    ///
    /// Where the API offers nothing better, one copy of wgpu's own for each region.
    fn record_copy(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        from: &Import,
        to: &wgpu::Buffer,
        regions: &[Region],
    ) -> bool {
        let within = are_within(regions, from.buffer.size(), to.size());
        for region in regions.iter().filter(|_| within) {
            encoder.copy_buffer_to_buffer(&from.buffer, region.src_offset, to, region.dst_offset, region.size);
        }
        within
    }

    /// Where one thread submits copies beside wgpu's queue, with room for so many at once. The device has these queues.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing stays allocated.
    fn copy_queue(
        &self,
        backend: &WgpuBackend,
        queues: FamilyQueues,
        room: usize,
    ) -> Result<Box<dyn CopyQueue>, DeviceError>;
}

/// What a buffer of host memory is for, and so where it should lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Memory of the host, page-locked: what the device's copy engine reads at the speed of the bus.
    System(HostCache),
    /// A few bytes that the CPU writes and a kernel reads at once: the device's own memory where the CPU can reach it.
    NearDevice,
}

/// What limits an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImportLimits {
    /// What addresses and sizes are multiples of; a power of two.
    pub align: usize,
    /// The most bytes of one import.
    pub most: u64,
}

/// Why memory was not imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImportError {
    /// Never for this memory on this device.
    #[error("{0}")]
    Refused(String),
    /// The device's own error.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
