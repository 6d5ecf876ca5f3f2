//! Whether the CPU reaches the device's own memory: resizable BAR, unified memory.

use gpufeed::{AdapterInfo, DeviceType};

use super::finding::{Finding, State};
use super::sysfs::PciDevice;
use crate::units;

pub const BAR: &str = "resizable-bar";
pub const UNIFIED: &str = "unified-memory";

/// Pure; `None` where the device is neither.
pub fn judge(adapter: &AdapterInfo, card: Option<&PciDevice>) -> Option<Finding> {
    match adapter.device_type {
        DeviceType::Integrated => Some(
            Finding::new(
                UNIFIED,
                State::Ok,
                "the device shares the CPU's memory: no link has to be crossed, and `direct-map` saves the copy",
            )
            .on(&adapter.id),
        ),
        DeviceType::Discrete => Some(window(adapter, card)),
        _ => None,
    }
}

fn window(adapter: &AdapterInfo, card: Option<&PciDevice>) -> Finding {
    let (Some(window), Some(memory)) = (card.and_then(|card| card.window), adapter.memory) else {
        return Finding::new(BAR, State::Unknown, "how much of the card's memory the CPU sees is not shown here")
            .on(&adapter.id);
    };
    let seen = format!("the CPU sees {} of the card's {}", units::bytes(window), units::bytes(memory));
    let finding = if window >= memory / 2 {
        Finding::new(BAR, State::Ok, format!("{seen}: resizable BAR is on"))
    } else {
        Finding::new(BAR, State::Note, format!("{seen}: resizable BAR is off"))
            .cost("`direct-map` and wgpu's mapped memory have to share that window; other strategies lose nothing")
            .mend("turn on \"Above 4G decoding\" and \"Resizable BAR\" in the firmware's setup; a virtual machine gets it from its host")
    };
    finding.figure("window_bytes", window as f64).figure("memory_bytes", memory as f64).on(&adapter.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::adapter;

    fn card(device_type: DeviceType, window: Option<u64>) -> Option<Finding> {
        let adapter = adapter(|card| (card.device_type, card.memory) = (device_type, Some(24 << 30)));
        judge(&adapter, Some(&PciDevice { window, ..PciDevice::default() }))
    }

    #[test]
    fn a_small_window_is_a_note_and_a_large_one_is_well() {
        let small = card(DeviceType::Discrete, Some(256 << 20)).expect("a card");
        assert_eq!(small.state, State::Note);
        assert!(small.what.contains("256 MiB of the card's 24.0 GiB"), "{small:?}");
        assert_eq!(card(DeviceType::Discrete, Some(32 << 30)).map(|found| found.state), Some(State::Ok));
        assert_eq!(card(DeviceType::Discrete, None).map(|found| found.state), Some(State::Unknown));
    }

    #[test]
    fn a_device_in_the_cpus_memory_has_no_window() {
        assert_eq!(card(DeviceType::Integrated, Some(1)).map(|found| found.check), Some(UNIFIED.to_owned()));
        assert_eq!(card(DeviceType::Software, None), None);
    }
}
