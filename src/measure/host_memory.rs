//! Memory that this machine has.

/// Bytes of memory that this process may use at most: the machine's, or its control group's limit where that is lower.
///
/// `None` where the system does not say.
#[must_use]
pub fn physical_memory() -> Option<u64> {
    system::physical()
}

/// Bytes of memory that can be had without swapping, by the kernel's own estimate; no more than the control group's
/// limit. `None` where the system does not say.
#[must_use]
pub fn available_memory() -> Option<u64> {
    system::available()
}

#[cfg(target_os = "linux")]
use super::linux_memory as system;

#[cfg(windows)]
use super::windows_memory as system;

#[cfg(target_os = "macos")]
mod system {
    use sysinfo::{MemoryRefreshKind, System};

    pub fn physical() -> Option<u64> {
        of(System::total_memory)
    }

    pub fn available() -> Option<u64> {
        of(System::available_memory)
    }

    fn of(bytes: fn(&System) -> u64) -> Option<u64> {
        let mut system = System::new();
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        Some(bytes(&system)).filter(|&bytes| bytes > 0)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod system {
    pub fn physical() -> Option<u64> {
        None
    }

    pub fn available() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    fn there_is_memory_and_no_more_of_it_is_available_than_exists() {
        let (all, available) = (physical_memory(), available_memory());
        assert!(all > Some(0) && available <= all);
    }
}
