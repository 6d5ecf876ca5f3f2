//! What adapters and devices can do, and opening one that can more.

use ash::vk;
use ash::vk::Handle;
use wgpu::hal::api::Vulkan;
use wgpu::hal::vulkan::CreateDeviceCallbackArgs;

use super::super::families::{Families, NoSecondQueue};
use super::super::{EXTERNAL_MEMORY_HOST, MemoryType, MemoryTypes};
use super::queues::{SYNCHRONIZATION2, adapter_families, create_infos, mark};
use crate::backend::wgpu::native::ImportLimits;
use crate::error::DeviceError;

/// The kinds of memory of an adapter.
pub(in crate::backend::wgpu) fn adapter_memory(adapter: &wgpu::Adapter) -> Option<MemoryTypes> {
    // SAFETY: the handle is only read from.
    let guard = unsafe { adapter.as_hal::<Vulkan>() }?;
    Some(memory_types(guard.shared_instance().raw_instance(), guard.raw_physical_device()))
}

/// The kinds of memory of a device.
pub(in crate::backend::wgpu) fn device_memory(device: &wgpu::Device) -> Option<MemoryTypes> {
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

/// What tells one `VkDevice` from another as long as it exists.
pub(in crate::backend::wgpu) fn device_handle(device: &wgpu::Device) -> Option<u64> {
    // SAFETY: the handle is only read from.
    unsafe { device.as_hal::<Vulkan>() }.map(|guard| guard.raw_device().handle().as_raw())
}

/// Whether a device of this adapter can import memory.
pub(in crate::backend::wgpu) fn adapter_imports(adapter: &wgpu::Adapter) -> bool {
    // SAFETY: the handle is only read from.
    unsafe { adapter.as_hal::<Vulkan>() }.is_some_and(|adapter| {
        let capabilities = adapter.physical_device_capabilities();
        capabilities.properties().api_version >= vk::API_VERSION_1_1
            && adapter.shared_instance().instance_api_version() >= vk::API_VERSION_1_1
            && capabilities.supports_extension(EXTERNAL_MEMORY_HOST)
    })
}

/// Whether this device can: the extension was enabled when it was created.
fn device_imports(device: &wgpu::Device) -> bool {
    // SAFETY: the handle is only read from.
    unsafe { device.as_hal::<Vulkan>() }.is_some_and(|device| {
        device.shared_instance().instance_api_version() >= vk::API_VERSION_1_1
            && device.enabled_device_extensions().contains(&EXTERNAL_MEMORY_HOST)
    })
}

/// What limits imports on a device that can.
pub(super) fn import_limits(device: &wgpu::Device) -> Option<ImportLimits> {
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

/// As [`wgpu::Adapter::request_device`], with the extension for imports enabled, and with queues apart from wgpu's where the adapter has
/// such families.
pub(in crate::backend::wgpu) fn open_device(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), DeviceError> {
    let refused = |message: String| DeviceError::Refused { message };
    // SAFETY: the handle is only used to open a device.
    let guard = unsafe { adapter.as_hal::<Vulkan>() }.ok_or_else(|| refused("this is no Vulkan adapter".to_owned()))?;
    let families = adapter_families(adapter);
    let mut barriers = vk::PhysicalDeviceSynchronization2Features::default().synchronization2(true);
    let barriers = &mut barriers;
    // SAFETY: the callback adds extensions, which the caller and `adapter_families` found supported, the feature of one of them, and queues
    // of other families than wgpu's, no more of each than the adapter lists. It changes nothing else.
    let opened = unsafe {
        guard.open_with_callback(
            desc.required_features,
            &desc.required_limits,
            &desc.memory_hints,
            Some(Box::new(|mut args| enable(&mut args, &families, barriers))),
        )
    };
    let opened = opened.map_err(|error| refused(error.to_string()))?;
    drop(guard);
    // SAFETY: the device is of this adapter and was opened with the descriptor's own features.
    unsafe { adapter.create_device_from_hal(opened, desc) }.map_err(|error| refused(error.to_string()))
}

/// Adds what gpufeed uses to what wgpu opens a device with.
fn enable<'pnext, 'this: 'pnext>(
    args: &mut CreateDeviceCallbackArgs<'_, 'pnext, 'this>,
    families: &Result<Families, NoSecondQueue>,
    barriers: &'this mut vk::PhysicalDeviceSynchronization2Features<'_>,
) {
    if args.extensions.contains(&EXTERNAL_MEMORY_HOST) {
        return;
    }
    match families {
        Ok(families) => {
            // Buffers that several families use are named in wgpu's barriers with a family, which Vulkan allows with this feature only.
            args.extensions.extend([mark(), SYNCHRONIZATION2]);
            *args.create_info = args.create_info.push_next(barriers);
            create_infos(families).for_each(|info| args.queue_create_infos.push(info));
        }
        Err(_) => args.extensions.push(EXTERNAL_MEMORY_HOST),
    }
}
