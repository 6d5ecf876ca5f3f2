//! Buffers in heaps of a chosen kind.
//!
//! wgpu's own mapped buffers are in custom heaps too: system memory that the CPU writes around its caches (`WRITE_COMBINE`), on every
//! card. What is made here stays mapped, is written through the caches where that is wanted (`WRITE_BACK`), and is known to the queue for copies.

use std::ptr::NonNull;
use std::sync::Arc;

use wgpu::hal::api::Dx12;
use windows::Win32::Graphics::Direct3D12::{
    D3D12_CPU_PAGE_PROPERTY_WRITE_BACK, D3D12_CPU_PAGE_PROPERTY_WRITE_COMBINE, D3D12_HEAP_FLAG_NONE,
    D3D12_HEAP_PROPERTIES, D3D12_HEAP_TYPE_CUSTOM, D3D12_HEAP_TYPE_DEFAULT, D3D12_MEMORY_POOL_L0, D3D12_RANGE,
    D3D12_RESOURCE_DESC, D3D12_RESOURCE_DIMENSION_BUFFER, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS,
    D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_FLAGS, D3D12_RESOURCE_STATE_COMMON, D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
    ID3D12Heap, ID3D12Resource,
};
use windows::Win32::Graphics::Dxgi::Common::DXGI_SAMPLE_DESC;

use super::{failed, raw_device, refused_by};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Place, RawBuffer, Writable};
use crate::backend::wgpu::vulkan::HostCache;
use crate::error::DeviceError;
use crate::memory::StableHostMemory;

/// A buffer and what its memory is made of. Freed in this order when the last reference goes, whatever wgpu still holds of the buffer.
pub(super) struct Owned {
    pub resource: ID3D12Resource,
    /// Of a buffer in memory of the program's own.
    pub _heap: Option<ID3D12Heap>,
    /// Keeps that memory.
    pub _owner: Option<Arc<dyn StableHostMemory>>,
    /// Keeps the device.
    pub _device: wgpu::Device,
}

/// See [`Native::host_buffer`](crate::backend::wgpu::native::Native::host_buffer).
pub(super) fn host_buffer(
    backend: &WgpuBackend,
    label: &str,
    bytes: u64,
    usage: wgpu::BufferUsages,
    place: Place,
) -> Result<(wgpu::Buffer, Writable), DeviceError> {
    let page = match place {
        Place::System(HostCache::Cached) => D3D12_CPU_PAGE_PROPERTY_WRITE_BACK,
        // The CPU reaches no memory of a card's own.
        Place::System(HostCache::Uncached) | Place::NearDevice => D3D12_CPU_PAGE_PROPERTY_WRITE_COMBINE,
    };
    let heap = D3D12_HEAP_PROPERTIES {
        Type: D3D12_HEAP_TYPE_CUSTOM,
        CPUPageProperty: page,
        MemoryPoolPreference: D3D12_MEMORY_POOL_L0,
        ..Default::default()
    };
    let owned = create(backend, label, bytes, usage, &heap)?;
    let mut base = std::ptr::null_mut();
    let nothing_is_read = D3D12_RANGE { Begin: 0, End: 0 };
    // SAFETY: the heap's kind lets the CPU write it, and the buffer is mapped once. It is unmapped when it is freed, which no pointer
    // outlives: `Writable` holds a reference.
    let mapped = unsafe { owned.resource.Map(0, Some(&raw const nothing_is_read), Some(&raw mut base)) };
    mapped.map_err(|error| failed(backend, label, bytes, &error))?;
    let base = NonNull::new(base.cast::<u8>()).ok_or_else(|| refused_by("memory was mapped at null"))?;
    let len = usize::try_from(bytes).map_err(|_| refused_by("a buffer exceeds the address space"))?;
    // SAFETY: the mapping covers the buffer, and nothing uses it yet.
    unsafe { std::ptr::write_bytes(base.as_ptr(), 0, len) };
    let buffer = wrap(backend, label, bytes, usage, &owned)?;
    // SAFETY: the mapping lives as long as the resource, which `raw` holds, and this is the only pointer to it.
    Ok((buffer, unsafe { Writable::new(base, len, RawBuffer::new(Arc::new(owned), bytes)) }))
}

/// See [`Native::device_buffer`](crate::backend::wgpu::native::Native::device_buffer).
pub(super) fn device_buffer(
    backend: &WgpuBackend,
    label: &str,
    bytes: u64,
) -> Result<(wgpu::Buffer, RawBuffer), DeviceError> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let heap = D3D12_HEAP_PROPERTIES { Type: D3D12_HEAP_TYPE_DEFAULT, ..Default::default() };
    let owned = create(backend, label, bytes, usage, &heap)?;
    let buffer = wrap(backend, label, bytes, usage, &owned)?;
    Ok((buffer, RawBuffer::new(Arc::new(owned), bytes)))
}

fn create(
    backend: &WgpuBackend,
    label: &str,
    bytes: u64,
    usage: wgpu::BufferUsages,
    heap: &D3D12_HEAP_PROPERTIES,
) -> Result<Owned, DeviceError> {
    backend.check()?;
    let device = raw_device(backend.device())?;
    let flags = if usage.contains(wgpu::BufferUsages::STORAGE) {
        D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS
    } else {
        D3D12_RESOURCE_FLAG_NONE
    };
    let (desc, mut resource) = (buffer_desc(bytes, flags), None);
    // SAFETY: both descriptions are complete, and the size is not zero, since no slot or list is.
    let created = unsafe {
        device.CreateCommittedResource(
            heap,
            D3D12_HEAP_FLAG_NONE,
            &raw const desc,
            D3D12_RESOURCE_STATE_COMMON,
            None,
            &raw mut resource,
        )
    };
    created.map_err(|error| failed(backend, label, bytes, &error))?;
    let resource = resource.ok_or_else(|| refused_by("the driver made no buffer"))?;
    Ok(Owned { resource, _heap: None, _owner: None, _device: backend.device().clone() })
}

pub(super) fn buffer_desc(bytes: u64, flags: D3D12_RESOURCE_FLAGS) -> D3D12_RESOURCE_DESC {
    D3D12_RESOURCE_DESC {
        Dimension: D3D12_RESOURCE_DIMENSION_BUFFER,
        Width: bytes,
        Height: 1,
        DepthOrArraySize: 1,
        MipLevels: 1,
        SampleDesc: DXGI_SAMPLE_DESC { Count: 1, Quality: 0 },
        Layout: D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
        Flags: flags,
        ..Default::default()
    }
}

/// Lends the buffer to wgpu. Buffers decay to the common state after each submission, so nothing has to be told of what other queues do.
pub(super) fn wrap(
    backend: &WgpuBackend,
    label: &str,
    size: u64,
    usage: wgpu::BufferUsages,
    owned: &Owned,
) -> Result<wgpu::Buffer, DeviceError> {
    let desc = wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
    // SAFETY: the resource is a buffer of this size; wgpu counts its own reference.
    let buffer = unsafe { wgpu::hal::dx12::Device::buffer_from_raw(owned.resource.clone(), size) };
    // SAFETY: the buffer is of this device, of this size and usage, and its memory is initialised, or the caller clears it.
    backend.scope(|| unsafe { backend.device().create_buffer_from_hal::<Dx12>(buffer, &desc) })
}
