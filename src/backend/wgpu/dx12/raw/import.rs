//! Memory of the program's own, as buffers: a heap over a whole region of `VirtualAlloc`, and buffers placed in it.

use std::ops::Range;
use std::sync::Arc;

use windows::Win32::Graphics::Direct3D12::{
    D3D12_DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT, D3D12_FEATURE_DATA_EXISTING_HEAPS, D3D12_FEATURE_EXISTING_HEAPS,
    D3D12_RESOURCE_FLAG_ALLOW_CROSS_ADAPTER, D3D12_RESOURCE_STATE_COMMON, ID3D12Device3, ID3D12Heap,
};
use windows::core::Interface;

use super::memory::{Owned, buffer_desc, wrap};
use super::{failed, raw_device, refused_by, told};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Import, ImportError, ImportLimits, RawBuffer, whole_pages};
use crate::memory::StableHostMemory;

const LABEL: &str = "gpufeed imported memory";

/// See [`Native::import_limits`](crate::backend::wgpu::native::Native::import_limits).
pub(super) fn limits(device: &wgpu::Device) -> Result<ImportLimits, String> {
    let raw = raw_device(device).map_err(|error| error.to_string())?;
    let mut data = D3D12_FEATURE_DATA_EXISTING_HEAPS::default();
    let bytes = size_of_val(&data) as u32;
    // SAFETY: the structure is the feature's own, and of this size.
    let asked = unsafe { raw.CheckFeatureSupport(D3D12_FEATURE_EXISTING_HEAPS, (&raw mut data).cast(), bytes) };
    if asked.is_err() || !data.Supported.as_bool() {
        return Err("the driver opens no heaps over memory that exists (D3D12_FEATURE_EXISTING_HEAPS)".to_owned());
    }
    let align = D3D12_DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT as usize;
    Ok(ImportLimits { align, most: device.limits().max_buffer_size })
}

/// See [`Native::import`](crate::backend::wgpu::native::Native::import).
pub(super) fn import(
    backend: &WgpuBackend,
    memory: &Arc<dyn StableHostMemory>,
    range: Range<usize>,
) -> Result<Import, ImportError> {
    backend.check()?;
    let no = |reason: String| ImportError::Refused(reason);
    let limits = limits(backend.device()).map_err(no)?;
    let (first, bytes) = whole_pages(memory.as_ref(), &range, limits.align)?;
    let base = memory.address().as_ptr();
    let raw = raw_device(backend.device())?;
    let device: ID3D12Device3 = raw.cast().map_err(|error| failed(backend, LABEL, bytes, &error))?;
    // SAFETY: the memory is mapped, and its owner is kept as long as the heap; the call takes the region that begins there, or refuses.
    let heap = unsafe { device.OpenExistingHeapFromAddress::<ID3D12Heap>(base.cast_const().cast()) };
    let heap = heap.map_err(|error| {
        no(format!("the driver opens no heap over this memory ({}): load the data into a `HostArena`", told(&error)))
    })?;
    // SAFETY: a plain question.
    let end = unsafe { heap.GetDesc() }.SizeInBytes;
    let offset =
        (first.addr() as u64).checked_sub(base.addr() as u64).ok_or_else(|| refused_by("no page begins it"))?;
    if offset.checked_add(bytes).is_none_or(|last| last > end) {
        return Err(no("its last block is not all mapped: load the data into a `HostArena`".to_owned()));
    }
    let (desc, mut resource) = (buffer_desc(bytes, D3D12_RESOURCE_FLAG_ALLOW_CROSS_ADAPTER), None);
    // SAFETY: the buffer lies within the heap, at a multiple of the alignment; heaps over existing memory want this flag.
    let placed = unsafe {
        raw.CreatePlacedResource(&heap, offset, &raw const desc, D3D12_RESOURCE_STATE_COMMON, None, &raw mut resource)
    };
    placed.map_err(|error| failed(backend, LABEL, bytes, &error))?;
    let resource = resource.ok_or_else(|| refused_by("the driver made no buffer"))?;
    let (heap, owner) = (Some(heap), Some(Arc::clone(memory)));
    let owned = Owned { resource, _heap: heap, _owner: owner, _device: backend.device().clone() };
    let buffer = wrap(backend, LABEL, bytes, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC, &owned)?;
    Ok(Import::new(buffer, RawBuffer::new(Arc::new(owned), bytes)))
}
