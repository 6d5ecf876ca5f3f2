//! What there is, without opening it.

use super::abilities::Abilities;
use super::kinds::{backends, device_type};
use super::memory;
use crate::backend::{AdapterInfo, Api};

/// GL comes last: looking at it starts an EGL display.
const APIS: [Api; 4] = [Api::Vulkan, Api::Metal, Api::Dx12, Api::Gl];

/// How much of the device's own memory the CPU can write, where Vulkan lists it.
const WINDOW: &str = "host_visible_device_memory_size";

/// An adapter that can be opened, and what is known of it.
pub(super) struct FoundAdapter {
    pub adapter: wgpu::Adapter,
    pub info: AdapterInfo,
}

/// All adapters of all APIs. Opens none; empty where there is no driver.
#[must_use]
pub fn adapters() -> Vec<AdapterInfo> {
    find(None).into_iter().map(|found| found.info).collect()
}

/// The adapters of one API. The drivers of the others are not loaded.
#[must_use]
pub fn adapters_of(api: Api) -> Vec<AdapterInfo> {
    find(Some(api)).into_iter().map(|found| found.info).collect()
}

/// Adapters of one API, or of all. They are numbered within their API, so an id means the same either way.
pub(super) fn find(only: Option<Api>) -> Vec<FoundAdapter> {
    APIS.into_iter().filter(|&api| only.is_none_or(|only| only == api)).flat_map(find_in).collect()
}

fn find_in(api: Api) -> Vec<FoundAdapter> {
    let backends = backends(api) & wgpu::Instance::enabled_backend_features();
    if backends.is_empty() {
        return Vec::new();
    }
    let adapters = pollster::block_on(instance(backends).enumerate_adapters(backends));
    let found = adapters.into_iter().enumerate().map(|(place, adapter)| {
        let info = describe(api, format!("{}:{place}", api.key()), &adapter);
        FoundAdapter { adapter, info }
    });
    found.collect()
}

/// An instance of these backends only: an instance of all loads every driver, and they do not always get on in one process.
/// Its flags are wgpu's usual ones (`WGPU_VALIDATION`, `WGPU_DEBUG`); `WGPU_BACKEND` has no say, since the id does.
fn instance(backends: wgpu::Backends) -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        flags: wgpu::InstanceFlags::from_env_or_default(),
        backend_options: wgpu::BackendOptions::from_env_or_default(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
}

fn describe(api: Api, id: String, adapter: &wgpu::Adapter) -> AdapterInfo {
    let raw = adapter.get_info();
    let limits = adapter.limits();
    let strategies = Abilities::of_adapter(adapter).support();
    let mut known = known(api, id, &raw, &limits);
    let window = super::vulkan::adapter_memory(adapter).and_then(|types| types.window_bytes());
    known.limits.extend(window.map(|bytes| (WINDOW.to_owned(), bytes)));
    AdapterInfo { memory: memory_of(adapter), strategies, ..known }
}

/// Bytes of an adapter's memory, where known.
pub(super) fn memory_of(adapter: &wgpu::Adapter) -> Option<u64> {
    memory::total(adapter, device_type(&adapter.get_info()))
}

/// The id of an adapter of an application's instance, where that lists it.
pub(super) fn id_of(instance: &wgpu::Instance, api: Api, adapter: &wgpu::Adapter) -> Option<String> {
    let (all, own) = (pollster::block_on(instance.enumerate_adapters(backends(api))), adapter.get_info());
    // Cards of one make tell themselves apart by their PCI address.
    let number = all.iter().position(|other| other.get_info() == own)?;
    Some(format!("{}:{number}", api.key()))
}

/// What adapters and devices tell alike; without memory and strategies.
pub(super) fn known(api: Api, id: String, raw: &wgpu::AdapterInfo, limits: &wgpu::Limits) -> AdapterInfo {
    AdapterInfo {
        id,
        api,
        name: raw.name.clone(),
        driver: raw.driver.clone(),
        driver_info: raw.driver_info.clone(),
        device_type: device_type(raw),
        vendor: raw.vendor,
        device: raw.device,
        pci: Some(raw.device_pci_bus_id.clone()).filter(|pci| !pci.is_empty()),
        memory: None,
        limits: limits_that_matter(limits),
        strategies: Vec::new(),
    }
}

fn limits_that_matter(limits: &wgpu::Limits) -> Vec<(String, u64)> {
    let all: [(&str, u64); 6] = [
        ("max_buffer_size", limits.max_buffer_size),
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
        ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into()),
        ("min_storage_buffer_offset_alignment", limits.min_storage_buffer_offset_alignment.into()),
        ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into()),
        ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into()),
    ];
    all.map(|(name, value)| (name.to_owned(), value)).into()
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // A test that skips itself says so.
mod tests {
    use super::*;

    #[test]
    fn enumeration_numbers_within_an_api_and_finds_the_same_again() {
        let all = adapters();
        if all.is_empty() {
            eprintln!("skipped: no adapter here");
        }
        for api in APIS {
            let of_api: Vec<&AdapterInfo> = all.iter().filter(|info| info.api == api).collect();
            for (place, info) in of_api.iter().enumerate() {
                assert_eq!(info.id, format!("{}:{place}", api.key()));
                assert!(!info.name.is_empty() && info.strategies.len() == 8 && info.limits.len() >= 6, "{info:?}");
                assert!(!info.is_software() || info.memory.is_some() || !cfg!(target_os = "linux"), "{info:?}");
            }
            assert_eq!(of_api, adapters_of(api).iter().collect::<Vec<_>>());
        }
        assert!(adapters_of(Api::Host).is_empty());
    }
}
