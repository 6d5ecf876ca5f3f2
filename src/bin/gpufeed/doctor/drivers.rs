//! Drivers that are missing, old, or compute on the CPU.

use gpufeed::{AdapterInfo, Api};

use super::finding::{Finding, State};
use super::sysfs::PciDevice;

pub const CHECK: &str = "drivers";
pub const SOFTWARE: &str = "software-adapters";

const NVIDIA: u32 = 0x10de;
const AMD: u32 = 0x1002;
const INTEL: u32 = 0x8086;
/// From here on one call copies a batch's scattered samples.
const CUDA_WITH_BATCHED_COPIES: (u32, u32) = (12, 8);
const OLDEST_CUDA: (u32, u32) = (12, 0);

/// Pure.
pub fn judge(adapters: &[AdapterInfo], on_the_bus: &[PciDevice]) -> Vec<Finding> {
    let mut found: Vec<Finding> = on_the_bus.iter().filter_map(|card| missing(card, adapters)).collect();
    found.extend(adapters.iter().filter(|adapter| adapter.api == Api::Cuda).filter_map(old));
    found.extend(adapters.iter().filter_map(no_strategy));
    if found.is_empty() {
        found.push(Finding::new(CHECK, State::Ok, "every GPU on the bus is reached, and no driver is too old"));
    }
    found
}

fn is_gpu(adapter: &AdapterInfo) -> bool {
    adapter.api != Api::Host && !adapter.is_software()
}

/// Whether an adapter is this card. Drivers that tell no address are known by their numbers.
fn is_card(adapter: &AdapterInfo, card: &PciDevice) -> bool {
    match &adapter.pci {
        Some(pci) => pci.eq_ignore_ascii_case(&card.address),
        None => {
            is_gpu(adapter) && adapter.vendor == card.vendor && (adapter.device == card.device || adapter.device == 0)
        }
    }
}

fn missing(card: &PciDevice, adapters: &[AdapterInfo]) -> Option<Finding> {
    let apis: Vec<Api> = adapters.iter().filter(|adapter| is_card(adapter, card)).map(|adapter| adapter.api).collect();
    let named = format!("{} {:04x}:{:04x} at {}", vendor(card.vendor), card.vendor, card.device, card.address);
    let kernel =
        card.driver.as_deref().map_or("no kernel driver".to_owned(), |driver| format!("the kernel's driver {driver}"));
    if apis.is_empty() {
        let what = format!("a GPU is on the bus ({named}, with {kernel}), and no API reaches it");
        return Some(Finding::new(CHECK, State::Wrong, what).cost("all of the GPU").mend(install(card.vendor)));
    }
    let lacks = |api| !apis.contains(&api);
    if card.vendor == NVIDIA && lacks(Api::Vulkan) {
        let what = format!("{named} is reached through CUDA alone, not through Vulkan");
        return Some(Finding::new(CHECK, State::Note, what).mend(
            "install the driver's Vulkan part (`libnvidia-gl`, /etc/vulkan/icd.d/nvidia_icd.json); containers need NVIDIA_DRIVER_CAPABILITIES=all",
        ));
    }
    if card.vendor == NVIDIA && lacks(Api::Cuda) {
        let what = format!("{named} is reached through Vulkan, not through CUDA");
        return Some(
            Finding::new(CHECK, State::Note, what)
                .mend("install the driver's libcuda; containers need NVIDIA_DRIVER_CAPABILITIES=all"),
        );
    }
    None
}

fn vendor(vendor: u32) -> &'static str {
    match vendor {
        NVIDIA => "NVIDIA",
        AMD => "AMD",
        INTEL => "Intel",
        _ => "vendor",
    }
}

fn install(vendor: u32) -> &'static str {
    match vendor {
        NVIDIA => {
            "install NVIDIA's driver (Debian: `nvidia-driver`); a container needs the NVIDIA container toolkit and `--gpus all`"
        }
        AMD | INTEL => {
            "install `mesa-vulkan-drivers`, and let the user into the groups `video` and `render`; a container needs `--device /dev/dri`"
        }
        _ => "install its vendor's Vulkan driver",
    }
}

/// `580.95.05, CUDA 13.0`.
fn cuda_version(info: &str) -> Option<(u32, u32)> {
    let (major, minor) = info.rsplit_once("CUDA ")?.1.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn old(adapter: &AdapterInfo) -> Option<Finding> {
    let version = cuda_version(&adapter.driver_info)?;
    let finding = if version < OLDEST_CUDA {
        Finding::new(CHECK, State::Wrong, format!("the driver ({}) is older than CUDA 12.0", adapter.driver_info))
            .cost("no CUDA strategy runs")
            .mend("install a driver from 525 on")
    } else if version < CUDA_WITH_BATCHED_COPIES {
        Finding::new(CHECK, State::Note, format!("the driver ({}) is older than CUDA 12.8", adapter.driver_info))
            .cost("`registered` copies samples one call each, or by a kernel, instead of a batch in one call")
            .mend("install a driver from 570 on")
    } else {
        return None;
    };
    Some(finding.on(&adapter.id))
}

/// An adapter on which nothing runs at all.
fn no_strategy(adapter: &AdapterInfo) -> Option<Finding> {
    let first = adapter.strategies.first()?.missing.as_deref()?;
    let none = adapter.strategies.iter().all(|support| support.missing.is_some());
    none.then(|| {
        Finding::new(CHECK, State::Note, format!("no strategy runs: {first}"))
            .mend("use the device through another API, or install a newer driver")
            .on(&adapter.id)
    })
}

/// Whether there is a GPU at all, or only drivers that compute on the CPU. Pure.
pub fn software(adapters: &[AdapterInfo]) -> Finding {
    let ids = |wanted: &dyn Fn(&AdapterInfo) -> bool| -> Vec<&str> {
        adapters.iter().filter(|adapter| wanted(adapter)).map(|adapter| adapter.id.as_str()).collect()
    };
    let gpus = ids(&is_gpu);
    let software = ids(&|adapter| adapter.is_software() && adapter.api != Api::Host);
    if gpus.is_empty() {
        let what = match software[..] {
            [] => "there is no GPU driver: only host memory".to_owned(),
            _ => format!(
                "there is no GPU: {} on the CPU",
                if software.len() == 1 {
                    format!("{} computes", software[0])
                } else {
                    format!("{} compute", software.join(", "))
                }
            ),
        };
        return Finding::new(SOFTWARE, State::Wrong, what)
            .cost("its numbers say nothing about any GPU")
            .mend("install the GPU's own driver and see that `gpufeed devices` lists it");
    }
    if software.is_empty() {
        return Finding::new(SOFTWARE, State::Ok, format!("{} is a GPU", gpus.join(", ")));
    }
    Finding::new(
        SOFTWARE,
        State::Ok,
        format!("{} beside {}, which are never chosen by themselves", gpus.join(", "), software.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use gpufeed::DeviceType;
    use gpufeed::backend::host::host_info;

    use super::*;

    fn adapter(id: &str, api: Api, device_type: DeviceType, info: &str) -> AdapterInfo {
        let pci = Some("0000:01:00.0".to_owned()).filter(|_| device_type == DeviceType::Discrete);
        crate::testing::adapter(|adapter| {
            (adapter.id, adapter.api, adapter.device_type) = (id.to_owned(), api, device_type);
            (adapter.pci, adapter.vendor, adapter.driver_info) = (pci, NVIDIA, info.to_owned());
        })
    }

    fn card() -> PciDevice {
        PciDevice { address: "0000:01:00.0".to_owned(), vendor: NVIDIA, device: 0x2335, ..PciDevice::default() }
    }

    #[test]
    fn a_card_that_nothing_reaches_is_wrong() {
        let found = judge(&[host_info(), adapter("vulkan:0", Api::Vulkan, DeviceType::Software, "")], &[card()]);
        assert_eq!(found[0].state, State::Wrong);
        assert!(found[0].what.contains("NVIDIA 10de:2335 at 0000:01:00.0, with no kernel driver"), "{found:?}");
    }

    #[test]
    fn a_card_that_one_api_misses_and_an_old_driver_are_notes() {
        let cuda = |info| adapter("cuda:0", Api::Cuda, DeviceType::Discrete, info);
        let vulkan = adapter("vulkan:0", Api::Vulkan, DeviceType::Discrete, "580.1");
        let states =
            |adapters: &[AdapterInfo]| judge(adapters, &[card()]).iter().map(|found| found.state).collect::<Vec<_>>();
        assert_eq!(states(&[cuda("580.1, CUDA 13.0"), vulkan.clone()]), [State::Ok]);
        assert_eq!(states(&[cuda("580.1, CUDA 13.0")]), [State::Note]);
        assert_eq!(states(&[cuda("535.1, CUDA 12.2"), vulkan.clone()]), [State::Note]);
        assert_eq!(states(&[cuda("470.1, CUDA 11.4"), vulkan]), [State::Wrong]);
    }

    #[test]
    fn drivers_on_the_cpu_are_no_gpu() {
        let lavapipe = adapter("vulkan:0", Api::Vulkan, DeviceType::Software, "");
        let only = software(&[lavapipe.clone(), host_info()]);
        assert!(only.state == State::Wrong && only.what.contains("vulkan:0 computes on the CPU"), "{only:?}");
        assert_eq!(software(&[lavapipe, adapter("cuda:0", Api::Cuda, DeviceType::Discrete, "")]).state, State::Ok);
        assert_eq!(software(&[host_info()]).what, "there is no GPU driver: only host memory");
    }
}
