//! The calls into Vulkan, and the memory they make.

#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use ash::{ext, vk};
use wgpu::hal::api::Vulkan;

use super::{EXTERNAL_MEMORY_HOST, ImportError, ImportLimits, Keep, MemoryType, MemoryTypes, Place};
use crate::backend::StableHostMemory;
use crate::backend::wgpu::WgpuBackend;
use crate::error::DeviceError;

/// A region of a copy.
pub(in super::super) type Region = vk::BufferCopy;

const HOST_POINTER: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
/// The smallest page of any system here. What shares a page with a living byte is mapped.
const PAGE: usize = 4096;

/// A buffer and its memory. Freed when the last reference goes: see the [module](super).
struct Owned {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    raw: ash::Device,
    /// Keeps the `VkDevice`. Declared after the handles, and dropped after `drop` has freed them.
    _device: wgpu::Device,
    /// Keeps what was imported.
    _owner: Option<Arc<dyn StableHostMemory>>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: whoever submits work that uses the buffer holds a reference until the device has finished it, and recorded work
        // is submitted while its lane holds one; so nothing uses it any more. It is destroyed once, here. The device exists:
        // `_device` keeps it.
        unsafe { self.raw.destroy_buffer(self.buffer, None) };
        // SAFETY: as above; nothing else is bound to the memory, and freeing unmaps it, which no pointer outlives: `Writable` holds
        // a reference. Null, where nothing was allocated yet, is ignored.
        unsafe { self.raw.free_memory(self.memory, None) };
    }
}

/// The right to write a buffer's memory. There is one for each buffer.
pub(in super::super) struct Writable {
    base: NonNull<u8>,
    len: usize,
    owned: Arc<Owned>,
}

// SAFETY: the pointer is to a mapping that has no thread affinity and lives as long as `owned`, whose parts are Send and Sync.
unsafe impl Send for Writable {}

impl Writable {
    /// Keeps the memory while the device reads it.
    pub fn keep(&self) -> Keep {
        Arc::clone(&self.owned) as Keep
    }

    /// The first byte: valid for writes of [`len`](Self::len) bytes for as long as this value lives.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes into the memory. What does not fit is left out.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let room = self.len.saturating_sub(at);
        let count = bytes.len().min(room);
        if count > 0 {
            // SAFETY: at < len, so the pointer is within the mapping.
            let to = unsafe { self.base.add(at) };
            // SAFETY: at + count <= len, the mapping is no Rust allocation that `bytes` could be a part of, and nobody else
            // writes it: this is the only Writable.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), count) };
        }
    }
}

/// Memory of the program's own, as a buffer of the device.
pub(in super::super) struct Import {
    /// For bind groups. Its handle is not wgpu's to destroy.
    pub buffer: wgpu::Buffer,
    owned: Arc<Owned>,
}

impl Import {
    /// Keeps the memory while the device reads it.
    pub fn keep(&self) -> Keep {
        Arc::clone(&self.owned) as Keep
    }
}

/// The kinds of memory of an adapter.
pub(in super::super) fn adapter_memory(adapter: &wgpu::Adapter) -> Option<MemoryTypes> {
    // SAFETY: the handle is only read from.
    let guard = unsafe { adapter.as_hal::<Vulkan>() }?;
    Some(memory_types(guard.shared_instance().raw_instance(), guard.raw_physical_device()))
}

/// The kinds of memory of a device.
pub(in super::super) fn device_memory(device: &wgpu::Device) -> Option<MemoryTypes> {
    // SAFETY: the handle is only read from.
    let guard = unsafe { device.as_hal::<Vulkan>() }?;
    Some(memory_types(guard.shared_instance().raw_instance(), guard.raw_physical_device()))
}

fn memory_types(instance: &ash::Instance, physical: vk::PhysicalDevice) -> MemoryTypes {
    // SAFETY: both callers hold a guard that keeps the instance, of which the physical device is.
    let properties = unsafe { instance.get_physical_device_memory_properties(physical) };
    let heaps = properties.memory_heaps_as_slice();
    let describe = |(index, ty): (u32, &vk::MemoryType)| {
        let heap = heaps.get(ty.heap_index as usize).copied().unwrap_or_default();
        MemoryType {
            index,
            flags: ty.property_flags.as_raw(),
            heap: ty.heap_index,
            heap_is_local: heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL),
            heap_bytes: heap.size,
        }
    };
    MemoryTypes((0..).zip(properties.memory_types_as_slice()).map(describe).collect())
}

/// Whether a device of this adapter can import memory.
pub(in super::super) fn adapter_imports(adapter: &wgpu::Adapter) -> bool {
    // SAFETY: the handle is only read from.
    unsafe { adapter.as_hal::<Vulkan>() }.is_some_and(|adapter| {
        let capabilities = adapter.physical_device_capabilities();
        capabilities.properties().api_version >= vk::API_VERSION_1_1
            && adapter.shared_instance().instance_api_version() >= vk::API_VERSION_1_1
            && capabilities.supports_extension(EXTERNAL_MEMORY_HOST)
    })
}

/// Whether this device can: the extension was enabled when it was created.
pub(in super::super) fn device_imports(device: &wgpu::Device) -> bool {
    // SAFETY: the handle is only read from.
    unsafe { device.as_hal::<Vulkan>() }.is_some_and(|device| {
        device.shared_instance().instance_api_version() >= vk::API_VERSION_1_1
            && device.enabled_device_extensions().contains(&EXTERNAL_MEMORY_HOST)
    })
}

/// What limits imports on a device that can.
pub(in super::super) fn import_limits(device: &wgpu::Device) -> Option<ImportLimits> {
    if !device_imports(device) {
        return None;
    }
    // SAFETY: the handle is only read from.
    let guard = unsafe { device.as_hal::<Vulkan>() }?;
    let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
    let mut maintenance = vk::PhysicalDeviceMaintenance3Properties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut host).push_next(&mut maintenance);
    let instance = guard.shared_instance().raw_instance();
    // SAFETY: the guard keeps the instance, of which the physical device is; both are of Vulkan 1.1, which has the call and
    // the second structure, and the device has the extension of the first.
    unsafe { instance.get_physical_device_properties2(guard.raw_physical_device(), &mut properties) };
    let align =
        usize::try_from(host.min_imported_host_pointer_alignment).ok().filter(|align| align.is_power_of_two())?;
    Some(ImportLimits { align, most: maintenance.max_memory_allocation_size })
}

/// As [`wgpu::Adapter::request_device`], with the extension for imports enabled.
pub(in super::super) fn open_device(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), DeviceError> {
    let refused = |message: String| DeviceError::Refused { message };
    // SAFETY: the handle is only used to open a device.
    let guard = unsafe { adapter.as_hal::<Vulkan>() }.ok_or_else(|| refused("this is no Vulkan adapter".to_owned()))?;
    let enable = |args: wgpu::hal::vulkan::CreateDeviceCallbackArgs<'_, '_, '_>| {
        if !args.extensions.contains(&EXTERNAL_MEMORY_HOST) {
            args.extensions.push(EXTERNAL_MEMORY_HOST);
        }
    };
    // SAFETY: the callback adds one extension, which the caller found supported, and changes nothing else.
    let opened = unsafe {
        guard.open_with_callback(
            desc.required_features,
            &desc.required_limits,
            &desc.memory_hints,
            Some(Box::new(enable)),
        )
    };
    let opened = opened.map_err(|error| refused(error.to_string()))?;
    drop(guard);
    // SAFETY: the device is of this adapter and was opened with the descriptor's own features.
    unsafe { adapter.create_device_from_hal(opened, desc) }.map_err(|error| refused(error.to_string()))
}

/// A buffer of `bytes` zeroed bytes in host memory, and the right to write it.
///
/// # Errors
/// [`DeviceError`]; nothing stays allocated.
pub(in super::super) fn host_buffer(
    backend: &WgpuBackend,
    label: &str,
    bytes: u64,
    usage: wgpu::BufferUsages,
    place: Place,
) -> Result<(wgpu::Buffer, Writable), DeviceError> {
    backend.check()?;
    let fail = |result: vk::Result| failed(backend, label, bytes, result);
    let mut owned =
        create(backend, &vk::BufferCreateInfo::default().size(bytes).usage(buffer_usage(usage))).map_err(fail)?;
    let types = device_memory(backend.device()).ok_or_else(|| refused_by("this is no Vulkan device"))?;
    // SAFETY: the buffer was made by this device.
    let needs = unsafe { owned.raw.get_buffer_memory_requirements(owned.buffer) };
    let ty = match place {
        Place::System(cache) => types.system(cache, needs.memory_type_bits),
        Place::NearDevice => types.near_device(needs.memory_type_bits),
    };
    let ty = ty.ok_or_else(|| refused_by("no memory type suits a buffer that the CPU writes"))?;
    let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(ty.index);
    allocate(&mut owned, &info).map_err(fail)?;
    // SAFETY: the memory is host-visible by its type, and is mapped once.
    let mapped = unsafe { owned.raw.map_memory(owned.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) };
    let base =
        NonNull::new(mapped.map_err(fail)?.cast::<u8>()).ok_or_else(|| refused_by("memory was mapped at null"))?;
    let len = usize::try_from(bytes).map_err(|_| refused_by("a buffer exceeds the address space"))?;
    // SAFETY: the mapping covers the allocation, which is at least as large as the buffer, and nothing uses it yet.
    unsafe { std::ptr::write_bytes(base.as_ptr(), 0, len) };
    let buffer = wrap(backend, label, bytes, usage, &owned)?;
    Ok((buffer, Writable { base, len, owned: Arc::new(owned) }))
}

/// A buffer over bytes of memory that the program has, and whatever else is on the same pages.
///
/// # Errors
/// [`ImportError`]; nothing stays imported.
pub(in super::super) fn import(
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
    let ty = types
        .system(super::HostCache::Cached, bits)
        .ok_or_else(|| no("the driver has no coherent memory type for it"))?;
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
    let (first, end) = (base.addr() + range.start, base.addr() + range.end);
    let start = first & !(align - 1);
    let padded = end.checked_next_multiple_of(align).ok_or_else(|| no("it ends beyond the address space"))?;
    // Within a page there is nothing unmapped; beyond it there may be.
    if align > PAGE && (start, padded) != (first, end) {
        return Err(no("its address or size is not aligned as the driver needs it"));
    }
    Ok((base.with_addr(start).cast(), (padded - start) as u64))
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

/// A buffer without memory.
fn create(backend: &WgpuBackend, info: &vk::BufferCreateInfo<'_>) -> Result<Owned, vk::Result> {
    let device = backend.device().clone();
    // SAFETY: the handle is used to make children of the device, which `Owned` destroys before it lets the device go.
    let raw = unsafe { device.as_hal::<Vulkan>() }.ok_or(vk::Result::ERROR_DEVICE_LOST)?.raw_device().clone();
    // SAFETY: the device exists, and the structure is complete; sizes are not zero, since no slot, list or range is.
    let buffer = unsafe { raw.create_buffer(info, None) }?;
    Ok(Owned { buffer, memory: vk::DeviceMemory::null(), raw, _device: device, _owner: None })
}

/// Allocates or imports, and binds.
fn allocate(owned: &mut Owned, info: &vk::MemoryAllocateInfo<'_>) -> Result<(), vk::Result> {
    // SAFETY: the type is one of the device's, and what is imported is valid memory of that size which `_owner` keeps.
    owned.memory = unsafe { owned.raw.allocate_memory(info, None) }?;
    // SAFETY: the buffer has no memory yet, and its requirements were asked for this one.
    unsafe { owned.raw.bind_buffer_memory(owned.buffer, owned.memory, 0) }
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
    // Not `from_raw`, with which wgpu destroys the handle on `Device::destroy`, maybe while a copy from it is being recorded.
    // SAFETY: wgpu uses the handle in submissions only, and those hold a reference to `owned`.
    let buffer = unsafe { wgpu::hal::vulkan::Buffer::from_raw_externally_owned(owned.buffer, Box::new(|| ())) };
    // SAFETY: the buffer is of this device, of this size and usage, and its memory is initialised.
    backend.scope(|| unsafe { backend.device().create_buffer_from_hal::<Vulkan>(buffer, &desc) })
}

/// Records one copy of many regions, into an encoder that records nothing else. The caller orders it: wgpu does not know of it.
///
/// False where a buffer is gone or a region is outside of it; nothing is recorded then.
pub(in super::super) fn record_copy(
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

fn buffer_usage(usage: wgpu::BufferUsages) -> vk::BufferUsageFlags {
    let all = [
        (wgpu::BufferUsages::COPY_SRC, vk::BufferUsageFlags::TRANSFER_SRC),
        (wgpu::BufferUsages::STORAGE, vk::BufferUsageFlags::STORAGE_BUFFER),
    ];
    all.into_iter()
        .filter(|(flag, _)| usage.contains(*flag))
        .fold(vk::BufferUsageFlags::empty(), |all, (_, flag)| all | flag)
}

fn refused_by(message: &str) -> DeviceError {
    DeviceError::Refused { message: message.to_owned() }
}

fn failed(backend: &WgpuBackend, what: &str, bytes: u64, result: vk::Result) -> DeviceError {
    match result {
        vk::Result::ERROR_DEVICE_LOST => backend.lose("the driver gave it up"),
        vk::Result::ERROR_OUT_OF_HOST_MEMORY
        | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
        | vk::Result::ERROR_TOO_MANY_OBJECTS => DeviceError::OutOfMemory { what: what.to_owned(), bytes },
        result => DeviceError::Refused { message: format!("{what}: {result}") },
    }
}
