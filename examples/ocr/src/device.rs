//! One wgpu device for both. Either side can open it.

use anyhow::{Context, Result};
use burn::backend::wgpu::WgpuSetup;
use burn::tensor::Device;
use gpufeed::backend::wgpu::{WgpuBackend, open_device, requirements};
use gpufeed::wgpu;

/// Who opens the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// With everything that the adapter has, and the extensions that wgpu does not enable by itself: every strategy runs.
    Gpufeed,
    /// burn leaves out `MAPPABLE_PRIMARY_BUFFERS` and knows no import of host memory: `direct-map` and `imported` do not run, and
    /// [`info`](WgpuBackend::info) says why. With burn's feature `vulkan`, which compiles to SPIR-V, it has to be burn.
    Burn,
}

impl Opener {
    /// The same device, as gpufeed and as burn know it.
    pub fn open(self) -> Result<(WgpuBackend, Device)> {
        match self {
            Self::Gpufeed => opened_by_gpufeed(),
            Self::Burn => opened_by_burn(),
        }
    }
}

fn opened_by_gpufeed() -> Result<(WgpuBackend, Device)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..wgpu::RequestAdapterOptions::default()
    };
    let adapter = pollster::block_on(instance.request_adapter(&options)).context("no GPU driver here")?;
    // cubecl looks at what the adapter has, and uses it.
    let needs = requirements(&adapter, None)?.with_all_of(&adapter);
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("shared"),
        required_features: needs.features,
        required_limits: needs.limits,
        // burn has pools of its own.
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..wgpu::DeviceDescriptor::default()
    };
    let (device, queue) = open_device(&adapter, &descriptor)?;
    let feeding = WgpuBackend::from_parts(&instance, &adapter, device.clone(), queue.clone())?;
    let backend = adapter.get_info().backend;
    let setup = WgpuSetup { instance, adapter, device, queue, backend };
    Ok((feeding, Device::wgpu_options().setup(setup).init()?))
}

fn opened_by_burn() -> Result<(WgpuBackend, Device)> {
    let (burn, setup) = Device::wgpu_options().init_with_setup()?;
    Ok((WgpuBackend::from_parts(&setup.instance, &setup.adapter, setup.device, setup.queue)?, burn))
}
