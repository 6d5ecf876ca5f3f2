//! What the process costs the host: CPU time spent, and memory there is.

#![allow(unsafe_code)] // getrusage is a C function

use std::fs;
use std::path::{Component, Path};
use std::time::Duration;

/// User and system time that all threads of this process have used so far; `None` where the platform does not say.
#[cfg(unix)]
#[must_use]
pub fn process_cpu() -> Option<Duration> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is valid for writing one `rusage`, which is all that getrusage does with it.
    let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    // SAFETY: getrusage reported success, so it has filled the struct.
    let usage = unsafe { usage.assume_init() };
    duration(&usage.ru_utime)?.checked_add(duration(&usage.ru_stime)?)
}

/// User and system time that all threads of this process have used so far; `None` where the platform does not say.
#[cfg(not(unix))]
#[must_use]
pub fn process_cpu() -> Option<Duration> {
    None
}

#[cfg(unix)]
fn duration(time: &libc::timeval) -> Option<Duration> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let micros = u64::try_from(time.tv_usec).ok()?;
    Duration::from_secs(seconds).checked_add(Duration::from_micros(micros))
}

/// Bytes of memory that this process may use at most: the machine's, or its control group's limit where that is lower.
///
/// Reads Linux's `/proc/meminfo` and version 2 control groups; `None` elsewhere.
#[must_use]
pub fn physical_memory() -> Option<u64> {
    memory(&["MemTotal"])
}

/// Bytes of memory that can be had without swapping, by the kernel's own estimate; no more than the control group's
/// limit. Reads Linux's `/proc/meminfo` and version 2 control groups; `None` elsewhere.
#[must_use]
pub fn available_memory() -> Option<u64> {
    memory(&["MemAvailable", "MemTotal"])
}

fn memory(fields: &[&str]) -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = fields.iter().find_map(|field| meminfo_bytes(&meminfo, field))?;
    Some(cgroup_limit().map_or(machine, |limit| limit.min(machine)))
}

/// A field of `/proc/meminfo` in bytes.
fn meminfo_bytes(meminfo: &str, field: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let mut words = line.split_whitespace();
    let value: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB") => value.checked_mul(1024),
        _ => Some(value),
    }
}

/// The lowest memory limit of this process's control group and its ancestors.
fn cgroup_limit() -> Option<u64> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = cgroup_path(&membership)?;
    let limits = group.ancestors().filter_map(|level| {
        let file = Path::new("/sys/fs/cgroup").join(level).join("memory.max");
        // "max" stands for no limit, and is no number.
        fs::read_to_string(file).ok()?.trim().parse().ok()
    });
    limits.min()
}

/// The version 2 control group in `/proc/self/cgroup`, relative to the hierarchy's root. A group that lies outside of
/// what a container sees is taken as the root.
fn cgroup_path(membership: &str) -> Option<&Path> {
    let path = membership.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = Path::new(path);
    let visible = path.components().all(|part| matches!(part, Component::Normal(_)));
    Some(if visible { path } else { Path::new("") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       24684084 kB\nMemFree:         1 kB\nMemAvailable:   24214072 kB\nHuge: 7\n";

    #[test]
    #[cfg(unix)]
    fn cpu_time_only_ever_grows() {
        let before = process_cpu();
        let sum = (0..1_000_000u64).fold(0u64, |sum, n| std::hint::black_box(sum.wrapping_add(n)));
        std::hint::black_box(sum);
        assert!(before.is_some() && process_cpu() >= before);
    }

    #[test]
    fn meminfo_fields_are_found_by_their_whole_name() {
        assert_eq!(meminfo_bytes(MEMINFO, "MemTotal"), Some(24_684_084 * 1024));
        assert_eq!(meminfo_bytes(MEMINFO, "MemAvailable"), Some(24_214_072 * 1024));
        assert_eq!(meminfo_bytes(MEMINFO, "Huge"), Some(7));
        assert_eq!(meminfo_bytes(MEMINFO, "Mem"), None);
        assert_eq!(meminfo_bytes("MemTotal: much kB", "MemTotal"), None);
    }

    #[test]
    fn only_version_2_groups_are_read_and_hidden_ones_are_the_root() {
        assert_eq!(cgroup_path("0::/a/b\n"), Some(Path::new("a/b")));
        assert_eq!(cgroup_path("0::/\n"), Some(Path::new("")));
        assert_eq!(cgroup_path("0::/../../x\n"), Some(Path::new("")));
        assert_eq!(cgroup_path("9:memory:/a\n1:cpu:/b\n"), None);
        assert_eq!(cgroup_path(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn there_is_memory_and_no_more_of_it_is_available_than_exists() {
        let (all, available) = (physical_memory(), available_memory());
        assert!(all > Some(0) && available <= all);
    }
}
