//! How much memory an adapter has, where that is cheaply known.

use super::vulkan;
use crate::backend::DeviceType;

/// The device's own memory, or the host's for software devices.
pub(super) fn total(adapter: &wgpu::Adapter, device_type: DeviceType) -> Option<u64> {
    if device_type == DeviceType::Software {
        return host_total();
    }
    vulkan::adapter_memory(adapter)?.device_bytes()
}

/// The host's memory.
pub(super) fn host_total() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    parse_meminfo(&text)
}

fn parse_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_total_is_read_and_nonsense_is_not() {
        let text = "MemTotal:       16316412 kB\nMemFree:         1000 kB\n";
        assert_eq!(super::parse_meminfo(text), Some(16_316_412 * 1024));
        assert_eq!(super::parse_meminfo("MemFree: 1 kB\n"), None);
        assert_eq!(super::parse_meminfo("MemTotal: many kB\n"), None);
    }
}
