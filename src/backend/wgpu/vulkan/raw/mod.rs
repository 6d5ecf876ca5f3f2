//! The calls into Vulkan, and the memory they make.

#![allow(unsafe_code)]

mod barriers;
mod import;
mod offered;
mod query;
mod queues;
mod stream;
mod transfer;
mod twin;
mod wakeup;

use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;
use wgpu::hal::api::Vulkan;

use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Place, RawBuffer, Writable};
use crate::error::DeviceError;
use crate::memory::StableHostMemory;

pub(in crate::backend::wgpu) use offered::native;
pub(in crate::backend::wgpu) use query::{adapter_imports, adapter_memory, device_handle, device_memory, open_device};
pub(in crate::backend::wgpu) use queues::{adapter_families, device_families};
pub(in crate::backend::wgpu) use twin::{SharedBuffer, twin};
pub(in crate::backend::wgpu) use wakeup::Wakeup;

/// A buffer and its memory. Freed when the last reference goes: see [`native`](crate::backend::wgpu::native).
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

/// Of a buffer that this API made.
fn handle(raw: &RawBuffer) -> Option<vk::Buffer> {
    raw.of::<Owned>().map(|owned| owned.buffer)
}

/// See [`Native::host_buffer`](crate::backend::wgpu::native::Native::host_buffer).
fn host_buffer(
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
    // SAFETY: the mapping lives as long as `owned`, which `raw` holds, and this is the only pointer to it.
    Ok((buffer, unsafe { Writable::new(base, len, RawBuffer::new(Arc::new(owned), bytes)) }))
}

/// See [`Native::device_buffer`](crate::backend::wgpu::native::Native::device_buffer).
fn device_buffer(backend: &WgpuBackend, label: &str, bytes: u64) -> Result<(wgpu::Buffer, RawBuffer), DeviceError> {
    backend.check()?;
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let owned = create_on_device(backend, label, bytes, usage)?;
    let buffer = wrap(backend, label, bytes, usage, &owned)?;
    Ok((buffer, RawBuffer::new(Arc::new(owned), bytes)))
}

/// A buffer in the device's memory, for wgpu to be lent.
fn create_on_device(
    backend: &WgpuBackend,
    label: &str,
    bytes: u64,
    usage: wgpu::BufferUsages,
) -> Result<Owned, DeviceError> {
    let fail = |result: vk::Result| failed(backend, label, bytes, result);
    let info = vk::BufferCreateInfo::default().size(bytes).usage(buffer_usage(usage));
    let mut owned = create(backend, &info).map_err(fail)?;
    let types = device_memory(backend.device()).ok_or_else(|| refused_by("this is no Vulkan device"))?;
    // SAFETY: the buffer was made by this device.
    let needs = unsafe { owned.raw.get_buffer_memory_requirements(owned.buffer) };
    let ty = types.device(needs.memory_type_bits).ok_or_else(|| refused_by("no memory type is the device's own"))?;
    let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(ty.index);
    allocate(&mut owned, &info).map_err(fail)?;
    Ok(owned)
}

/// A buffer without memory. On a device with queues of several families all of them may use it.
fn create(backend: &WgpuBackend, info: &vk::BufferCreateInfo<'_>) -> Result<Owned, vk::Result> {
    let device = backend.device().clone();
    // SAFETY: the handle is used to make children of the device, which `Owned` destroys before it lets the device go.
    let raw = unsafe { device.as_hal::<Vulkan>() }.ok_or(vk::Result::ERROR_DEVICE_LOST)?.raw_device().clone();
    let sharing = device_families(&device).map(|families| families.sharing()).unwrap_or_default();
    let info = match sharing.len() {
        0 | 1 => *info,
        _ => info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&sharing),
    };
    // SAFETY: the device exists, and the structure is complete; sizes are not zero, since no slot, list or range is. The families are
    // different ones, and the device was opened with them.
    let buffer = unsafe { raw.create_buffer(&info, None) }?;
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

fn buffer_usage(usage: wgpu::BufferUsages) -> vk::BufferUsageFlags {
    let all = [
        (wgpu::BufferUsages::COPY_SRC, vk::BufferUsageFlags::TRANSFER_SRC),
        (wgpu::BufferUsages::COPY_DST, vk::BufferUsageFlags::TRANSFER_DST),
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
