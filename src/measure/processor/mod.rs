//! The processor's name and its largest cache, as each system tells them.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(windows)]
use windows as system;

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod system {
    pub fn largest_cache() -> Option<u64> {
        None
    }

    pub fn name() -> Option<String> {
        None
    }
}

/// Bytes of the largest cache, where the system reports it.
#[must_use]
pub fn largest_cache() -> Option<u64> {
    system::largest_cache()
}

/// The processor's name, where the system tells it.
pub(super) fn name() -> Option<String> {
    system::name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(windows, target_os = "macos", all(target_os = "linux", target_arch = "x86_64")))]
    fn the_processor_has_a_name_and_no_cache_is_a_few_bytes() {
        assert!(name().is_some_and(|name| !name.is_empty()));
        assert!(largest_cache().is_none_or(|bytes| bytes >= 32 << 10), "{:?}", largest_cache());
    }
}
