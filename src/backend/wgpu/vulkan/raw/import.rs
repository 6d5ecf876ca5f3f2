//! Memory of the program's own, as buffers.

use std::ops::Range;
use std::sync::Arc;

use ash::{ext, vk};
use wgpu::hal::api::Vulkan;

use super::super::{HostCache, ImportError, KeepAlive};
use super::query::{device_memory, import_limits};
use super::{Owned, RawBuffer, allocate, buffer_usage, create, failed, wrap};
use crate::backend::wgpu::WgpuBackend;
use crate::memory::StableHostMemory;

/// A region of a copy.
pub(in crate::backend::wgpu) type Region = vk::BufferCopy;

const HOST_POINTER: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

/// Memory of the program's own, as a buffer of the device.
pub(in crate::backend::wgpu) struct Import {
    /// For bind groups. Its handle is not wgpu's to destroy.
    pub buffer: wgpu::Buffer,
    owned: Arc<Owned>,
}

impl Import {
    /// Keeps the memory while the device reads it.
    pub fn keep(&self) -> KeepAlive {
        Arc::clone(&self.owned) as KeepAlive
    }

    /// The buffer, to be copied from.
    pub fn raw(&self) -> RawBuffer {
        RawBuffer { owned: Arc::clone(&self.owned), size: self.buffer.size() }
    }
}

/// A buffer over bytes of memory that the program has, and whatever else is on the same pages.
///
/// # Errors
/// [`ImportError`]; nothing stays imported.
pub(in crate::backend::wgpu) fn import(
    backend: &WgpuBackend,
    memory: &Arc<dyn StableHostMemory>,
    range: Range<usize>,
) -> Result<Import, ImportError> {
    const LABEL: &str = "gpufeed imported memory";
    backend.check()?;
    let no = |reason: &str| ImportError::Refused(reason.to_owned());
    let limits = import_limits(backend.device()).ok_or_else(|| no("the device imports no memory"))?;
    let (first, bytes) = pages(memory.as_ref(), &range, limits.align)?;
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
    Ok(Import { buffer, owned: Arc::new(owned) })
}

/// The whole pages that hold a range: their address and bytes.
fn pages(
    memory: &dyn StableHostMemory,
    range: &Range<usize>,
    align: usize,
) -> Result<(*mut std::ffi::c_void, u64), ImportError> {
    let no = |reason: &str| ImportError::Refused(reason.to_owned());
    if range.start >= range.end || range.end > memory.len() {
        return Err(no("there are no such bytes"));
    }
    let base = memory.address().as_ptr();
    let [first, end] = [range.start, range.end].map(|offset| base.addr().checked_add(offset));
    let bytes = first.zip(end).map(|(first, end)| first..end).ok_or_else(|| no("it ends beyond the address space"))?;
    let whole = super::super::pages::around(&bytes, align, memory.granule()).ok_or_else(|| {
        no("its address or size is not aligned as the driver needs it: load the data into a `HostArena`")
    })?;
    Ok((base.with_addr(whole.start).cast(), (whole.end - whole.start) as u64))
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

/// Records one copy of many regions, into an encoder that records nothing else. The caller orders it: wgpu does not know of it.
///
/// False where a buffer is gone or a region is outside of it; nothing is recorded then.
pub(in crate::backend::wgpu) fn record_copy(
    encoder: &mut wgpu::CommandEncoder,
    from: &Import,
    to: &wgpu::Buffer,
    regions: &[Region],
) -> bool {
    // SAFETY: the guard is held until the copy is recorded, and nothing is destroyed through it.
    let Some(target) = (unsafe { to.as_hal::<Vulkan>() }) else { return false };
    let within = |start: u64, size: u64, end: u64| size > 0 && start.checked_add(size).is_some_and(|last| last <= end);
    let (source_end, target_end) = (from.buffer.size(), to.size());
    let fits = |region: &Region| {
        within(region.src_offset, region.size, source_end) && within(region.dst_offset, region.size, target_end)
    };
    if regions.is_empty() || !regions.iter().all(fits) {
        return false;
    }
    let record = |encoder: Option<&mut wgpu::hal::vulkan::CommandEncoder>| {
        let Some(encoder) = encoder else { return false };
        // SAFETY: the encoder is recording, which `as_hal_mut` began, and its handle is only recorded into.
        let commands = unsafe { encoder.raw_handle() };
        // SAFETY: the handle is not destroyed.
        let target = unsafe { target.raw_handle() };
        // SAFETY: both buffers exist, and the regions lie within them, as was checked above.
        unsafe { from.owned.raw.cmd_copy_buffer(commands, from.owned.buffer, target, regions) };
        true
    };
    // SAFETY: the command buffer is not ended, and wgpu's encoder is not used meanwhile.
    unsafe { encoder.as_hal_mut::<Vulkan, _, _>(record) }
}
