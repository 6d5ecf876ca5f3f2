//! Shared buffers that stay mapped, and buffers over memory of the program's own.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBuffer, MTLDevice, MTLResourceOptions};
use wgpu::hal::api::Metal;

use super::{PAGE, raw_device, refused_by};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Import, ImportError, Place, RawBuffer, Writable, whole_pages};
use crate::backend::wgpu::vulkan::HostCache;
use crate::error::DeviceError;
use crate::memory::StableHostMemory;

/// A buffer and what keeps its memory. Metal counts it, so that it outlives whatever wgpu still holds of it.
pub(super) struct Owned {
    pub buffer: Retained<ProtocolObject<dyn MTLBuffer>>,
    /// Keeps memory of the program's own.
    _owner: Option<Arc<dyn StableHostMemory>>,
    /// Keeps the device.
    _device: wgpu::Device,
}

// SAFETY: Metal's buffers may be used on any thread, and counting references is atomic.
unsafe impl Send for Owned {}
// SAFETY: as above. Their memory is written through `Writable` alone, of which there is one.
unsafe impl Sync for Owned {}

/// See [`Native::host_buffer`](crate::backend::wgpu::native::Native::host_buffer).
pub(super) fn host_buffer(
    backend: &WgpuBackend,
    label: &str,
    bytes: u64,
    usage: wgpu::BufferUsages,
    place: Place,
) -> Result<(wgpu::Buffer, Writable), DeviceError> {
    let around = match place {
        Place::System(HostCache::Cached) => MTLResourceOptions::empty(),
        Place::System(HostCache::Uncached) | Place::NearDevice => MTLResourceOptions::CPUCacheModeWriteCombined,
    };
    let owned = create(backend, label, bytes, MTLResourceOptions::StorageModeShared | around)?;
    let base = owned.buffer.contents().cast::<u8>();
    let len = usize::try_from(bytes).map_err(|_| refused_by("a buffer exceeds the address space"))?;
    // SAFETY: shared buffers are mapped for as long as they live, and nothing uses this one yet.
    unsafe { std::ptr::write_bytes(base.as_ptr(), 0, len) };
    let buffer = wrap(backend, label, bytes, usage, &owned)?;
    // SAFETY: the mapping lives as long as the buffer, which `raw` holds, and this is the only pointer to it.
    Ok((buffer, unsafe { Writable::new(base, len, RawBuffer::new(Arc::new(owned), bytes)) }))
}

/// See [`Native::device_buffer`](crate::backend::wgpu::native::Native::device_buffer).
pub(super) fn device_buffer(
    backend: &WgpuBackend,
    label: &str,
    bytes: u64,
) -> Result<(wgpu::Buffer, RawBuffer), DeviceError> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let owned = create(backend, label, bytes, MTLResourceOptions::StorageModePrivate)?;
    let buffer = wrap(backend, label, bytes, usage, &owned)?;
    Ok((buffer, RawBuffer::new(Arc::new(owned), bytes)))
}

/// See [`Native::import`](crate::backend::wgpu::native::Native::import).
pub(super) fn import(
    backend: &WgpuBackend,
    memory: &Arc<dyn StableHostMemory>,
    range: &Range<usize>,
) -> Result<Import, ImportError> {
    const LABEL: &str = "gpufeed imported memory";
    backend.check()?;
    let no = |reason: &str| ImportError::Refused(reason.to_owned());
    let (first, bytes) = whole_pages(memory.as_ref(), range, PAGE)?;
    let first = NonNull::new(first).ok_or_else(|| no("it begins at null"))?;
    let length = usize::try_from(bytes).map_err(|_| no("it exceeds the address space"))?;
    let device = raw_device(backend.device())?;
    // SAFETY: the pages are mapped as long as their owner lives, which is as long as the buffer, and Metal is given nothing to free.
    let buffer = unsafe {
        device.newBufferWithBytesNoCopy_length_options_deallocator(
            first,
            length,
            MTLResourceOptions::StorageModeShared,
            None,
        )
    };
    let buffer =
        buffer.ok_or_else(|| no("Metal makes no buffer over this memory: load the data into a `HostArena`"))?;
    let owned = Owned { buffer, _owner: Some(Arc::clone(memory)), _device: backend.device().clone() };
    let buffer = wrap(backend, LABEL, bytes, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC, &owned)?;
    Ok(Import::new(buffer, RawBuffer::new(Arc::new(owned), bytes)))
}

fn create(backend: &WgpuBackend, label: &str, bytes: u64, options: MTLResourceOptions) -> Result<Owned, DeviceError> {
    backend.check()?;
    let full = || DeviceError::OutOfMemory { what: label.to_owned(), bytes };
    let length = usize::try_from(bytes).map_err(|_| full())?;
    let buffer = raw_device(backend.device())?.newBufferWithLength_options(length, options).ok_or_else(full)?;
    Ok(Owned { buffer, _owner: None, _device: backend.device().clone() })
}

/// Lends the buffer to wgpu.
fn wrap(
    backend: &WgpuBackend,
    label: &str,
    size: u64,
    usage: wgpu::BufferUsages,
    owned: &Owned,
) -> Result<wgpu::Buffer, DeviceError> {
    let desc = wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
    // SAFETY: it is a buffer of this size; wgpu counts its own reference.
    let buffer = unsafe { wgpu::hal::metal::Device::buffer_from_raw(owned.buffer.clone(), size) };
    // SAFETY: the buffer is of this device, of this size and usage, and its memory is initialised, or the caller clears it.
    backend.scope(|| unsafe { backend.device().create_buffer_from_hal::<Metal>(buffer, &desc) })
}
