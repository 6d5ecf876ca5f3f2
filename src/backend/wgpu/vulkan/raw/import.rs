//! Memory of the program's own, as buffers.

use std::ops::Range;
use std::sync::Arc;

use ash::{ext, vk};
use wgpu::hal::api::Vulkan;

use super::super::HostCache;
use super::query::{device_memory, import_limits};
use super::{Owned, allocate, buffer_usage, create, failed, wrap};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Import, ImportError, RawBuffer, Region, are_within, whole_pages};
use crate::memory::StableHostMemory;

const HOST_POINTER: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

/// See [`Native::import`](crate::backend::wgpu::native::Native::import).
pub(super) fn import(
    backend: &WgpuBackend,
    memory: &Arc<dyn StableHostMemory>,
    range: Range<usize>,
) -> Result<Import, ImportError> {
    const LABEL: &str = "gpufeed imported memory";
    backend.check()?;
    let no = |reason: &str| ImportError::Refused(reason.to_owned());
    let limits = import_limits(backend.device()).ok_or_else(|| no("the device imports no memory"))?;
    let (first, bytes) = whole_pages(memory.as_ref(), &range, limits.align)?;
    let fail = |result: vk::Result| match result {
        vk::Result::ERROR_INVALID_EXTERNAL_HANDLE => {
            no("the driver does not import this memory (mapped files are refused by some)")
        }
        // Drivers that cannot map the pages of a file say so in many ways.
        _ if memory.is_mapped_read_only() => {
            no("the driver does not import mapped files; load the file into a `HostArena`, or use `system-ring`")
        }
        result => failed(backend, LABEL, bytes, result).into(),
    };
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HOST_POINTER);
    let info = vk::BufferCreateInfo::default().size(bytes).usage(buffer_usage(usage)).push_next(&mut external);
    let mut owned = create(backend, &info).map_err(fail)?;
    owned._owner = Some(Arc::clone(memory));
    // SAFETY: the buffer was made by this device.
    let needs = unsafe { owned.raw.get_buffer_memory_requirements(owned.buffer) };
    let bits = needs.memory_type_bits & pointer_types(backend, &owned.raw, first).map_err(fail)?;
    let types = device_memory(backend.device()).ok_or_else(|| no("this is no Vulkan device"))?;
    let ty =
        types.system(HostCache::Cached, bits).ok_or_else(|| no("the driver has no coherent memory type for it"))?;
    if needs.size > bytes {
        return Err(no("the driver pads buffers beyond the memory"));
    }
    let mut pointer = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(HOST_POINTER).host_pointer(first);
    let info =
        vk::MemoryAllocateInfo::default().allocation_size(bytes).memory_type_index(ty.index).push_next(&mut pointer);
    allocate(&mut owned, &info).map_err(fail)?;
    let buffer = wrap(backend, LABEL, bytes, usage, &owned)?;
    Ok(Import::new(buffer, RawBuffer::new(Arc::new(owned), bytes)))
}

/// The memory types that a pointer can be imported as.
fn pointer_types(
    backend: &WgpuBackend,
    raw: &ash::Device,
    pointer: *const std::ffi::c_void,
) -> Result<u32, vk::Result> {
    // SAFETY: the handle is only read from.
    let guard = unsafe { backend.device().as_hal::<Vulkan>() }.ok_or(vk::Result::ERROR_DEVICE_LOST)?;
    let functions = ext::external_memory_host::Device::new(guard.shared_instance().raw_instance(), raw);
    let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
    let query = functions.fp().get_memory_host_pointer_properties_ext;
    // SAFETY: the device has the extension (`import_limits` saw to it), so the function is loaded; the pointer is aligned as it must
    // be, and to memory that its owner keeps.
    unsafe { query(raw.handle(), HOST_POINTER, pointer, &raw mut properties) }.result()?;
    Ok(properties.memory_type_bits)
}

/// See [`Native::record_copy`](crate::backend::wgpu::native::Native::record_copy): one copy of all regions.
pub(super) fn record_copy(
    encoder: &mut wgpu::CommandEncoder,
    from: &Import,
    to: &wgpu::Buffer,
    regions: &[Region],
) -> bool {
    // SAFETY: the guard is held until the copy is recorded, and nothing is destroyed through it.
    let Some(target) = (unsafe { to.as_hal::<Vulkan>() }) else { return false };
    let Some(source) = from.raw().of::<Owned>() else { return false };
    if regions.is_empty() || !are_within(regions, from.raw().size(), to.size()) {
        return false;
    }
    let record = |encoder: Option<&mut wgpu::hal::vulkan::CommandEncoder>| {
        let Some(encoder) = encoder else { return false };
        // SAFETY: the encoder is recording, which `as_hal_mut` began, and its handle is only recorded into.
        let commands = unsafe { encoder.raw_handle() };
        // SAFETY: the handle is not destroyed.
        let target = unsafe { target.raw_handle() };
        // SAFETY: both buffers exist, and the regions lie within them, as was checked above.
        unsafe { source.raw.cmd_copy_buffer(commands, source.buffer, target, regions) };
        true
    };
    // SAFETY: the command buffer is not ended, and wgpu's encoder is not used meanwhile.
    unsafe { encoder.as_hal_mut::<Vulkan, _, _>(record) }
}
