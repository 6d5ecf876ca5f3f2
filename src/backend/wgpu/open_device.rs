//! Opening devices with what gpufeed can use beyond wgpu.

use super::vulkan;
use crate::error::DeviceError;

/// The smallest block wgpu's allocator takes. See [`device_descriptor`].
const BLOCK: u64 = 4 << 20;

/// As [`wgpu::Adapter::request_device`], with the extensions of [`requirements`](super::requirements) where the adapter has them.
///
/// # Errors
/// What wgpu or the driver says.
pub fn open_device(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), DeviceError> {
    // wgpu checks what it opens itself, and not what it is handed: anything unusual is left to it, errors included.
    let usual = adapter.features().contains(desc.required_features)
        && !desc.required_features.intersects(wgpu::Features::all_experimental_mask())
        && desc.required_limits.check_limits(&adapter.limits());
    if usual && vulkan::adapter_imports(adapter) {
        return vulkan::open_device(adapter, desc);
    }
    let opened = pollster::block_on(adapter.request_device(desc));
    opened.map_err(|error| DeviceError::Refused { message: error.to_string() })
}

/// Everything but features and limits.
///
/// The memory hint is about exact sizes: Vulkan and DX12 devices allocate from blocks (by default of 128 MiB on the device and
/// 64 MiB on the host, growing), and what is larger than a block gets memory of exactly its size. With the smallest block that
/// is every buffer worth counting, and a budget means what it says. It also means that a strategy which allocates per batch
/// asks the driver each time, where blocks would hide it.
pub(super) fn device_descriptor() -> wgpu::DeviceDescriptor<'static> {
    wgpu::DeviceDescriptor {
        label: Some("gpufeed"),
        memory_hints: wgpu::MemoryHints::Manual { suballocated_device_memory_block_size: BLOCK..BLOCK },
        ..Default::default()
    }
}
