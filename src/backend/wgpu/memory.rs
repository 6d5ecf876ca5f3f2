//! How much memory an adapter has, where that is cheaply known.

#![allow(unsafe_code)]

use crate::backend::DeviceType;

/// The device's own memory, or the host's for software devices.
pub(super) fn total(adapter: &wgpu::Adapter, device_type: DeviceType) -> Option<u64> {
    if device_type == DeviceType::Software { host_total() } else { device_total(adapter) }
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

/// The largest device-local heap: where a card's memory is seen through a small window too, that is a heap of its own.
#[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
#[allow(clippy::multiple_unsafe_ops_per_block)] // One query, of a handle that only the guard keeps alive.
fn device_total(adapter: &wgpu::Adapter) -> Option<u64> {
    /// `VK_MEMORY_HEAP_DEVICE_LOCAL_BIT`.
    const DEVICE_LOCAL: u32 = 1;
    // SAFETY: The guard is only read from, and lives until the query has returned; the physical device is one of the very
    // instance that is asked, and the query takes no other handle.
    let properties = unsafe {
        let guard = adapter.as_hal::<wgpu::hal::api::Vulkan>()?;
        guard.shared_instance().raw_instance().get_physical_device_memory_properties(guard.raw_physical_device())
    };
    let heaps = properties.memory_heaps_as_slice().iter();
    heaps.filter(|heap| heap.flags.as_raw() & DEVICE_LOCAL != 0).map(|heap| heap.size).max()
}

#[cfg(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn device_total(_: &wgpu::Adapter) -> Option<u64> {
    None
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
