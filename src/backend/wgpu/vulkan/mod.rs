//! What wgpu does not offer on Vulkan: memory of a chosen type, memory of the program's own, and copies of many regions.
//!
//! # Who owns what
//!
//! Buffers and memory made here are gpufeed's, and wgpu only borrows the handles. wgpu never destroys the `VkDevice` while a
//! [`wgpu::Device`] exists: `Device::destroy` marks it invalid and, once the queue is empty, drops *wgpu's* resources, and the
//! handle goes with the last reference. So each allocation holds a clone of the device. What holds an allocation is:
//!
//! - the lane, for as long as it may submit;
//! - whoever may write it ([`Writable`]), which a lane lends to a fill;
//! - each submission that reads it, through the closure that wgpu runs, or drops, when the device has finished it ([`KeepAlive`]).
//!
//! The last of them frees it, whichever way the lane, the device or the application end.

#[cfg_attr(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")), allow(dead_code))]
mod families;
#[cfg_attr(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")), allow(dead_code))]
mod pages;
#[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
mod transfer_split;
#[cfg_attr(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")), allow(dead_code))]
mod types;

#[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
mod raw;
#[cfg(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")))]
#[path = "absent.rs"]
mod raw;

#[cfg(test)]
pub(super) use families::KernelQueues;
pub use families::NoSecondQueue;
#[cfg(test)]
pub(super) use families::WGPU_FAMILY;
pub(super) use families::{Families, FamilyQueues};
pub(super) use raw::{
    Copy, RawBuffer, SharedBuffer, SharedQueues, TransferQueue, TransferTicket, adapter_families, device_buffer,
    device_families, device_handle, twin,
};
pub(super) use raw::{
    Import, Region, Wakeup, Writable, adapter_imports, adapter_memory, device_imports, device_memory, host_buffer,
    import, import_limits, open_device, record_copy,
};
pub use types::HostCache;
pub(super) use types::{MemoryType, MemoryTypes};

use std::any::Any;
use std::sync::Arc;

/// Holds an allocation for as long as the device may read it.
pub(super) type KeepAlive = Arc<dyn Any + Send + Sync>;

/// The extension that `imported` needs.
pub(super) const EXTERNAL_MEMORY_HOST: &std::ffi::CStr = c"VK_EXT_external_memory_host";

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
    Device(#[from] crate::error::DeviceError),
}
