//! Memory as Linux tells it: `/proc/meminfo`, and control groups.

use std::fs;

use super::container::{ContainerMemory, container_memory};

pub(super) fn physical() -> Option<u64> {
    memory(&["MemTotal"], |container| container.limit)
}

pub(super) fn available() -> Option<u64> {
    memory(&["MemAvailable", "MemTotal"], ContainerMemory::left)
}

fn memory(fields: &[&str], of_container: impl Fn(&ContainerMemory) -> u64) -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = fields.iter().find_map(|field| meminfo_bytes(&meminfo, field))?;
    Some(container_memory().map_or(machine, |container| of_container(&container).min(machine)))
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
}
