//! Memory as Linux tells it: `/proc/meminfo` and version 2 control groups.

use std::fs;
use std::path::{Component, Path};

pub(super) fn physical() -> Option<u64> {
    memory(&["MemTotal"])
}

pub(super) fn available() -> Option<u64> {
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
}
