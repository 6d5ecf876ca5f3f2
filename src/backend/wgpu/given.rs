//! Devices that an application opened.

use super::abilities::Abilities;
use super::adapters;
use super::device::WgpuBackend;
use super::kinds;
use super::memory;
use crate::backend::AdapterInfo;
use crate::error::OpenError;

impl WgpuBackend {
    /// Takes an application's device and that device's queue. Its callbacks stay the application's. Create it with
    /// [`requirements`](super::requirements()): what it can do is settled then.
    ///
    /// The id of its [`info`](Self::info) chooses nothing, since a device does not know its adapter's number, and its memory is unknown:
    /// [`from_parts`](Self::from_parts) knows both.
    ///
    /// # Errors
    /// [`OpenError::Option`] for a device that is none of Vulkan, Metal, DX12 and GL, [`OpenError::Device`] for a lost one.
    #[cfg_attr(
        target_arch = "wasm32",
        deprecated(note = "type-checks only: a page has no threads, and no way to wait for the device")
    )]
    pub fn from_device(device: wgpu::Device, queue: wgpu::Queue) -> Result<Self, OpenError> {
        let info = Self::given(&device)?;
        Self::of_application(device, queue, info)
    }

    /// As [`from_device`](Self::from_device), of an application that still has the instance and the adapter which the device came from:
    /// its [`info`](Self::info) has the id that [`open`](Self::open) takes, and the adapter's memory.
    ///
    /// # Errors
    /// As [`from_device`](Self::from_device), and [`OpenError::Option`] where the device is of another adapter.
    pub fn from_parts(
        instance: &wgpu::Instance,
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Result<Self, OpenError> {
        let given = Self::given(&device)?;
        if device.adapter_info() != adapter.get_info() {
            let reason = format!("{} is not what the device was opened on, {}", adapter.get_info().name, given.name);
            return Err(OpenError::Option { option: "adapter", reason });
        }
        let id = adapters::id_of(instance, given.api, adapter).unwrap_or(given.id);
        Self::of_application(device, queue, AdapterInfo { id, memory: adapters::memory_of(adapter), ..given })
    }

    /// What a device knows of its adapter.
    fn given(device: &wgpu::Device) -> Result<AdapterInfo, OpenError> {
        let raw = device.adapter_info();
        let api = kinds::api_of(raw.backend).ok_or_else(|| OpenError::Option {
            option: "device",
            reason: format!("{:?} is not supported", raw.backend),
        })?;
        let limits = device.limits();
        let mut info = adapters::known(api, format!("{}:given", api.key()), &raw, &limits);
        info.strategies = Abilities::of_device(device).support();
        info.memory = if info.is_software() { memory::host_total() } else { None };
        Ok(info)
    }
}
