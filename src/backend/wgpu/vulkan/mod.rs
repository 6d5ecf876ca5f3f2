//! What wgpu does not offer on Vulkan: memory of a chosen type, memory of the program's own, copies of many regions, and queues of other
//! families. Who owns what is told [where it is the same for all APIs](super::native).

#[cfg_attr(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")), allow(dead_code))]
mod families;
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
pub(super) use families::{APART, Families, FamilyQueues};
pub(super) use raw::{
    SharedBuffer, Wakeup, adapter_families, adapter_imports, adapter_memory, device_families, device_handle,
    device_memory, native, open_device, twin,
};
pub use types::HostCache;
pub(super) use types::{MemoryType, MemoryTypes};

/// The extension that `imported` needs.
pub(super) const EXTERNAL_MEMORY_HOST: &std::ffi::CStr = c"VK_EXT_external_memory_host";
