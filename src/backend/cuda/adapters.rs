//! What there is, without opening it.

use super::driver::{self, Device, Nvml};
use crate::backend::{AdapterInfo, Api, DeviceType, Strategy, StrategySupport};

const NVIDIA: u32 = 0x10de;
const STRATEGIES: [Strategy; 5] = [
    Strategy::Pageable,
    Strategy::PinPerBatch,
    Strategy::PinnedRing,
    Strategy::PinnedWriteCombined,
    Strategy::Registered,
];

/// All CUDA devices. Opens none; empty where there is no driver.
#[must_use]
pub fn adapters() -> Vec<AdapterInfo> {
    find().unwrap_or_default()
}

/// All CUDA devices, or in one line why there are none.
pub(super) fn find() -> Result<Vec<AdapterInfo>, String> {
    let version = driver::start()?;
    let devices =
        driver::devices().map_err(|error| format!("the driver lists no device: {}", driver::explain(error)))?;
    if devices.is_empty() {
        return Err("the NVIDIA driver has no device here".to_owned());
    }
    let nvml = Nvml::load();
    let describe =
        |(place, device): (usize, &Device)| describe(format!("cuda:{place}"), device, version, nvml.as_ref());
    Ok(devices.iter().enumerate().map(describe).collect())
}

/// What is known of one device. `version` is what [`driver::start`] returned.
pub(super) fn describe(id: String, device: &Device, version: i32, nvml: Option<&Nvml>) -> AdapterInfo {
    let speaks = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
    let driver_info = match nvml.and_then(Nvml::driver) {
        Some(driver) => format!("{driver}, {speaks}"),
        None => speaks,
    };
    let (major, minor) = device.capability;
    let mut limits = vec![("compute_capability".to_owned(), u64::from(major * 10 + minor))];
    // Without NVML they are unknown, and unknown is left out.
    if let Some((generation, width)) = nvml.zip(device.pci.as_ref()).and_then(|(nvml, pci)| nvml.link(pci)) {
        limits.push(("pcie_generation".to_owned(), u64::from(generation)));
        limits.push(("pcie_width".to_owned(), u64::from(width)));
    }
    limits.push(("reads_registered_memory".to_owned(), u64::from(device.registers)));
    limits.push(("reads_read_only_mappings".to_owned(), u64::from(device.registers_read_only)));
    AdapterInfo {
        id,
        api: Api::Cuda,
        name: device.name.clone(),
        driver: "NVIDIA".to_owned(),
        driver_info,
        device_type: if device.integrated { DeviceType::Integrated } else { DeviceType::Discrete },
        vendor: NVIDIA,
        device: device.pci.as_deref().and_then(pci_device).unwrap_or(0),
        pci: device.pci.clone(),
        memory: Some(device.memory),
        limits,
        strategies: STRATEGIES.map(|strategy| support(strategy, device)).into(),
    }
}

fn support(strategy: Strategy, device: &Device) -> StrategySupport {
    let lacks = strategy == Strategy::Registered && !device.registers;
    let missing = lacks.then(|| "the device cannot read memory that is page-locked in place".to_owned());
    StrategySupport { strategy, missing, memory: None, queues: None }
}

/// The PCI device number, which CUDA does not tell and Linux does.
fn pci_device(pci: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/bus/pci/devices/{pci}/device")).ok()?;
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // A test that skips itself says so.
mod tests {
    use super::super::CudaBackend;
    use super::*;
    use crate::error::OpenError;

    #[test]
    fn without_a_driver_nothing_is_listed_and_opening_says_why_in_one_line() {
        let Err(reason) = find() else { return eprintln!("skipped: there is a driver") };
        assert!(adapters().is_empty());
        let error = CudaBackend::open("cuda:0").expect_err("no device");
        assert!(matches!(error, OpenError::NoDevice { .. }), "{error}");
        assert!(matches!(crate::AnyBackend::open("cuda"), Err(OpenError::NoDevice { .. })));
        let text = error.to_string();
        assert!(text.contains("cuda:0") && text.contains(&reason) && !text.contains('\n'), "{text}");
    }

    #[test]
    fn a_device_is_described_with_what_is_known_of_it() {
        let device = Device {
            name: "NVIDIA H200".to_owned(),
            capability: (9, 0),
            memory: 1 << 37,
            integrated: false,
            pci: None,
            registers: false,
            registers_read_only: false,
        };
        let info = describe("cuda:3".to_owned(), &device, 12_080, None);
        assert_eq!((info.id.as_str(), info.driver_info.as_str(), info.memory), ("cuda:3", "CUDA 12.8", Some(1 << 37)));
        assert!(info.limits.contains(&("compute_capability".to_owned(), 90)));
        assert!(!info.limits.iter().any(|(name, _)| name.starts_with("pcie")), "unknown is left out");
        let missing: Vec<_> = info.strategies.iter().filter(|support| support.missing.is_some()).collect();
        assert!(matches!(missing[..], [StrategySupport { strategy: Strategy::Registered, .. }]), "{missing:?}");
    }
}
