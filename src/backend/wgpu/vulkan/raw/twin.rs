//! A second wgpu device over the same `VkDevice`, whose queue is another one: what is recorded for it runs beside wgpu's first.
//!
//! wgpu knows one queue a device. Buffers that both are to use are made here and wrapped for each; neither knows of what the other does
//! with them, and whoever uses both orders it.

use std::sync::Arc;

use wgpu::hal::api::Vulkan;
use wgpu::hal::vulkan;

use super::barriers::without_graphics;
use super::{Owned, create_on_device, refused_by};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::RawBuffer;
use crate::error::DeviceError;

/// Opens a second device. `device` was opened with this queue of this family, and nobody else uses it.
///
/// # Errors
/// What wgpu or the driver says.
pub(in crate::backend::wgpu) fn twin(
    device: &wgpu::Device,
    desc: &wgpu::DeviceDescriptor<'_>,
    (family, queue): (u32, u32),
) -> Result<(wgpu::Device, wgpu::Queue), DeviceError> {
    let refused = |message: String| DeviceError::Refused { message };
    // SAFETY: the handles are used to reach a queue and to make children of the device, which is kept as long as they are.
    let guard = unsafe { device.as_hal::<Vulkan>() }.ok_or_else(|| refused_by("this is no Vulkan device"))?;
    let instance = again(device, guard.shared_instance())?;
    let exposed = instance.expose_adapter(guard.raw_physical_device());
    let exposed = exposed.ok_or_else(|| refused_by("the adapter is gone"))?;
    let shared = guard.shared_instance();
    let raw = without_graphics(guard.raw_device(), shared.entry(), shared.raw_instance());
    let raw = raw.ok_or_else(|| refused_by("the loader has no function for barriers"))?;
    // The first device outlives the second.
    let keep = device.clone();
    // SAFETY: the raw device was made for this physical device with these extensions and features, and is not destroyed before `keep`
    // is dropped, which wgpu does last. The caller says that the queue is there.
    let opened = unsafe {
        exposed.adapter.device_from_raw(
            raw,
            Some(Box::new(move || drop(keep))),
            guard.enabled_device_extensions(),
            desc.required_features,
            &desc.required_limits,
            &desc.memory_hints,
            family,
            queue,
        )
    };
    let opened = opened.map_err(|error| refused(error.to_string()))?;
    drop(guard);
    // SAFETY: the instance was made above.
    let instance = unsafe { wgpu::Instance::from_hal::<Vulkan>(instance) };
    // SAFETY: the adapter is of this instance.
    let adapter = unsafe { instance.create_adapter_from_hal(exposed) };
    // SAFETY: the device is of this adapter and was opened with the descriptor's own features.
    unsafe { adapter.create_device_from_hal(opened, desc) }.map_err(|error| refused(error.to_string()))
}

/// The instance of a device once more, for an adapter of its own.
fn again(device: &wgpu::Device, shared: &vulkan::InstanceShared) -> Result<vulkan::Instance, DeviceError> {
    let keep = device.clone();
    // SAFETY: the handles are those of an instance with this version and these extensions. It is not destroyed before `keep` is dropped,
    // which wgpu does last. Messages go to the first one's messenger.
    let instance = unsafe {
        vulkan::Instance::from_raw(
            shared.entry().clone(),
            shared.raw_instance().clone(),
            shared.instance_api_version(),
            0,
            None,
            shared.extensions().to_vec(),
            wgpu::InstanceFlags::empty(),
            wgpu::MemoryBudgetThresholds::default(),
            false,
            Some(Box::new(move || drop(keep))),
        )
    };
    instance.map_err(|error| DeviceError::Refused { message: error.to_string() })
}

/// Memory of the device as a buffer of two wgpu devices over the same `VkDevice`. It is freed when both have let go of it.
pub(in crate::backend::wgpu) struct SharedBuffer {
    /// The application's.
    pub main: wgpu::Buffer,
    /// The second device's.
    pub twin: wgpu::Buffer,
    pub raw: RawBuffer,
}

impl SharedBuffer {
    /// `bytes` bytes, which are undefined until they are cleared: the caller does that.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing stays allocated.
    pub fn new(main: &WgpuBackend, twin: &WgpuBackend, label: &str, bytes: u64) -> Result<Self, DeviceError> {
        main.check()?;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let owned = Arc::new(create_on_device(main, label, bytes, usage)?);
        let [main, twin] = [main, twin].map(|backend| wrap_kept(backend, label, bytes, usage, &owned));
        Ok(Self { main: main?, twin: twin?, raw: RawBuffer::new(owned, bytes) })
    }
}

/// Lends a buffer to wgpu, which keeps it as long as it uses it.
fn wrap_kept(
    backend: &WgpuBackend,
    label: &str,
    size: u64,
    usage: wgpu::BufferUsages,
    owned: &Arc<Owned>,
) -> Result<wgpu::Buffer, DeviceError> {
    let desc = wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
    let keep = Arc::clone(owned);
    // SAFETY: the handle exists until `keep` is dropped, which wgpu does when nothing of its own uses the buffer any more.
    let buffer = unsafe { vulkan::Buffer::from_raw_externally_owned(owned.buffer, Box::new(move || drop(keep))) };
    // SAFETY: the buffer is of this device, of this size and usage, and the caller clears it.
    backend.scope(|| unsafe { backend.device().create_buffer_from_hal::<Vulkan>(buffer, &desc) })
}
