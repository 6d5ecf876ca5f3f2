//! What has to be said in plain sight when `auto` finds no GPU.

use anyhow::Result;
use gpufeed::backend::select;
use gpufeed::{AdapterInfo, AnyBackend, Api, devices};

use crate::output;

/// Opens a device chosen by text. If that is left to `auto` and there is no GPU, standard error says so.
pub fn open(wanted: &str) -> Result<AnyBackend> {
    if !wanted.trim().eq_ignore_ascii_case("auto") {
        return Ok(AnyBackend::open(wanted)?);
    }
    let found = devices();
    let chosen = select::select(&found, wanted)?;
    if let Some(text) = notice(&found) {
        output::note(text);
    }
    Ok(AnyBackend::open(&chosen.id)?)
}

/// What to tell someone who left the choice of a device to `auto`; `None` if it chose a GPU.
pub fn notice(found: &[AdapterInfo]) -> Option<String> {
    let chosen = select::select(found, "auto").ok()?;
    if chosen.api == Api::Host {
        return Some(format!(
            "note: no GPU driver was found. The `host` backend runs instead: it copies within host memory, and its numbers\n\
             say nothing about any GPU. {}",
            remedy()
        ));
    }
    chosen.is_software().then(|| {
        format!(
            "note: no GPU was found, only {}, the software driver `{}`.\n\
             It computes on the CPU: results are right, and the numbers say nothing about any GPU. {}",
            chosen.id, chosen.name, GPU_DRIVER
        )
    })
}

const GPU_DRIVER: &str = if cfg!(target_os = "macos") {
    "Metal comes with macOS; virtual machines often have none."
} else if cfg!(windows) {
    "For a GPU, install its vendor's driver."
} else {
    "For a GPU,\n\
     install its vendor's driver (Debian: `nvidia-driver` for NVIDIA, `mesa-vulkan-drivers` for AMD and Intel)\n\
     and see that `vulkaninfo` lists it."
};

fn remedy() -> String {
    if cfg!(target_os = "linux") {
        format!("{GPU_DRIVER} For software Vulkan without a GPU, install `mesa-vulkan-drivers`.")
    } else {
        GPU_DRIVER.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use gpufeed::DeviceType;
    use gpufeed::backend::host::host_info;

    use super::*;

    fn vulkan(device_type: DeviceType) -> AdapterInfo {
        crate::testing::adapter(|adapter| {
            (adapter.id, adapter.api) = ("vulkan:0".to_owned(), Api::Vulkan);
            (adapter.name, adapter.device_type) = ("Some Card".to_owned(), device_type);
        })
    }

    #[test]
    fn a_machine_without_a_driver_is_told_what_runs_and_what_to_install() {
        let text = notice(&[host_info()]).expect("a notice");
        assert!(text.contains("no GPU driver was found") && text.contains("`host` backend"), "{text}");
        assert!(text.contains("mesa-vulkan-drivers") || !cfg!(target_os = "linux"), "{text}");
    }

    #[test]
    fn a_software_driver_is_named_and_a_gpu_needs_no_notice() {
        let text = notice(&[vulkan(DeviceType::Software), host_info()]).expect("a notice");
        assert!(text.contains("only vulkan:0, the software driver `Some Card`"), "{text}");
        assert_eq!(notice(&[vulkan(DeviceType::Integrated), host_info()]), None);
        assert_eq!(notice(&[]), None);
    }
}
