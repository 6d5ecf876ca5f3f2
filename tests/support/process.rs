//! What the system says about this process; nothing, where it is not Linux.

#![allow(dead_code)] // Not every test asks for everything.

use std::fmt::Write;
use std::fs;

/// The name, state and kernel function of each thread.
pub fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let tell = |path: std::path::PathBuf| {
        let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
        let name = read("comm").trim().to_owned();
        let state = read("stat").rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?');
        let mut line = name;
        let _ = write!(line, " ({state}, {})", read("wchan").trim());
        line
    };
    tasks.map(|task| tell(task.path())).collect()
}

/// How many threads of gpufeed's there are.
pub fn own_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let own = |name: String| name.starts_with("gpufeed-");
    tasks.filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(own)).count()
}

/// How many threads there are in all.
pub fn thread_count() -> usize {
    fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// Bytes of resident memory, or zero where nobody tells.
pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
