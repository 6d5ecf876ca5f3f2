//! wgpu's backends and kinds of devices as gpufeed names them.

use crate::backend::{Api, DeviceType};

/// wgpu's type, except for software drivers that it takes for something else: GL has only a name to go by.
pub(super) fn device_type(raw: &wgpu::AdapterInfo) -> DeviceType {
    let name = raw.name.to_lowercase();
    if ["llvmpipe", "softpipe", "swiftshader"].iter().any(|software| name.contains(software)) {
        return DeviceType::Software;
    }
    match raw.device_type {
        wgpu::DeviceType::DiscreteGpu => DeviceType::Discrete,
        wgpu::DeviceType::IntegratedGpu => DeviceType::Integrated,
        wgpu::DeviceType::VirtualGpu => DeviceType::Virtual,
        wgpu::DeviceType::Cpu => DeviceType::Software,
        wgpu::DeviceType::Other => DeviceType::Other,
    }
}

/// The API of a wgpu backend, where gpufeed serves it.
pub(super) fn api_of(backend: wgpu::Backend) -> Option<Api> {
    match backend {
        wgpu::Backend::Vulkan => Some(Api::Vulkan),
        wgpu::Backend::Metal => Some(Api::Metal),
        wgpu::Backend::Dx12 => Some(Api::Dx12),
        wgpu::Backend::Gl => Some(Api::Gl),
        wgpu::Backend::Noop | wgpu::Backend::BrowserWebGpu => None,
    }
}

pub(super) fn backends(api: Api) -> wgpu::Backends {
    match api {
        Api::Vulkan => wgpu::Backends::VULKAN,
        Api::Metal => wgpu::Backends::METAL,
        Api::Dx12 => wgpu::Backends::DX12,
        Api::Gl => wgpu::Backends::GL,
        Api::Host | Api::Cuda => wgpu::Backends::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_software_driver_is_known_by_its_name_too() {
        let raw = |name: &str, kind| wgpu::AdapterInfo {
            name: name.to_owned(),
            ..wgpu::AdapterInfo::new(kind, wgpu::Backend::Gl)
        };
        assert_eq!(device_type(&raw("softpipe", wgpu::DeviceType::Other)), DeviceType::Software);
        assert_eq!(device_type(&raw("WARP", wgpu::DeviceType::Cpu)), DeviceType::Software);
        assert_eq!(device_type(&raw("Radeon", wgpu::DeviceType::DiscreteGpu)), DeviceType::Discrete);
    }
}
