//! How much host memory may be page-locked, and what to say where that is too little.
//!
//! The driver reports a failed page lock as being out of memory, which everybody reads as the GPU's. It is the host's.

use super::driver::memlock;
use crate::error::DeviceError;

/// What bounds page-locked memory here, in bytes, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LockBudget {
    /// `ulimit -l`.
    memlock: Option<u64>,
    /// The control group's memory limit.
    container: Option<u64>,
    /// The host's memory.
    host: Option<u64>,
}

impl LockBudget {
    pub(super) fn read() -> Self {
        // Version 2 of control groups, then version 1. A limit beyond any memory means none.
        let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let limit = |path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let meminfo = std::fs::read_to_string("/proc/meminfo").ok();
        Self {
            memlock: memlock(),
            container: limits.into_iter().find_map(limit).filter(|&bytes| bytes < 1 << 50),
            host: meminfo.as_deref().and_then(total),
        }
    }

    /// Refuses what cannot be: locked memory beyond the container's limit ends the process rather than the call.
    pub(super) fn allows(self, bytes: u64) -> Result<(), DeviceError> {
        match self.container.or(self.host) {
            Some(limit) if bytes > limit => Err(self.error(bytes, "it is more than this machine or container has")),
            _ => Ok(()),
        }
    }

    /// The error that `bytes` bytes could not be locked.
    pub(super) fn error(self, bytes: u64, cause: &str) -> DeviceError {
        let told = |what: &str, limit: Option<u64>| limit.map(|bytes| format!("{what} {bytes} bytes"));
        let limits: Vec<String> = [
            Some(
                self.memlock
                    .map_or("`ulimit -l` is unlimited".to_owned(), |bytes| format!("`ulimit -l` is {bytes} bytes")),
            ),
            told("the container's memory limit is", self.container),
            told("the host has", self.host),
        ]
        .into_iter()
        .flatten()
        .collect();
        let advice = "take fewer or smaller slots, or raise the limit (`ulimit -l unlimited`, `docker run --ulimit \
                      memlock=-1 --memory ...`, `memory=` in .wslconfig under WSL)";
        DeviceError::PageLock { bytes, reason: format!("{cause}. {}; {advice}", limits.join(", ")) }
    }
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_what_was_asked_the_limits_and_the_way_out() {
        let budget = LockBudget { memlock: Some(65_536), container: Some(1000), host: Some(2000) };
        assert_eq!(budget.allows(1000), Ok(()));
        let error = budget.allows(1001).expect_err("more than the container has").to_string();
        for part in ["1001 bytes", "host memory", "65536", "limit is 1000", "host has 2000", "ulimit -l unlimited"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!error.contains("GPU"), "{error}");
        assert_eq!(LockBudget::default().allows(u64::MAX), Ok(()));
        assert!(LockBudget::default().error(1, "no").to_string().contains("`ulimit -l` is unlimited"));
    }

    #[test]
    fn the_limits_of_this_machine_can_be_read() {
        let budget = LockBudget::read();
        assert!(budget.host.is_some() || !cfg!(target_os = "linux"), "{budget:?}");
    }
}
