//! How much memory the control group of this process may use: what a container, a batch system or a service manager allows.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A limit beyond this is none: version 1 of control groups writes the largest number of pages that it can count.
const NO_LIMIT: u64 = 1 << 50;

/// The memory of a control group with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContainerMemory {
    /// The most bytes that it may use.
    pub limit: u64,
    /// The bytes that it uses and cannot give back; files that the system keeps in memory for it are not among them.
    pub used: u64,
}

impl ContainerMemory {
    /// What is left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// The control group of this process or its ancestor that leaves the least memory, of version 1 or 2; `None` where none has a
/// limit, and where there are no control groups.
#[must_use]
pub fn container_memory() -> Option<ContainerMemory> {
    read(Path::new("/sys/fs/cgroup"), &fs::read_to_string("/proc/self/cgroup").ok()?)
}

/// The names that one version gives to the same things.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Fields of `memory.stat`: files kept in memory.
    cached: [&'static str; 2],
}

const VERSION_2: Files =
    Files { limit: "memory.max", usage: "memory.current", cached: ["inactive_file", "active_file"] };
const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cached: ["total_inactive_file", "total_active_file"],
};

fn read(root: &Path, membership: &str) -> Option<ContainerMemory> {
    let second = group_of(membership, |controllers| controllers.is_empty());
    let first = group_of(membership, |controllers| controllers.split(',').any(|name| name == "memory"));
    let second =
        second.into_iter().flat_map(|group| levels(root, &group)).filter_map(|level| level_of(&level, &VERSION_2));
    let first = first
        .into_iter()
        .flat_map(|group| levels(&root.join("memory"), &group))
        .filter_map(|level| level_of(&level, &VERSION_1));
    second.chain(first).min_by_key(ContainerMemory::left)
}

/// The group in `/proc/self/cgroup` of the hierarchy with such controllers, relative to the hierarchy's root. One that lies outside
/// of what a container sees is taken as the root.
fn group_of(membership: &str, wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let path = membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        wanted(controllers).then(|| path.trim_start_matches('/'))
    })?;
    let visible = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    Some(if visible { path.into() } else { PathBuf::new() })
}

/// The group's folder and those above it. In a container the group's own is often mounted as the root.
fn levels(root: &Path, group: &Path) -> Vec<PathBuf> {
    group.ancestors().map(|level| root.join(level)).collect()
}

fn level_of(folder: &Path, files: &Files) -> Option<ContainerMemory> {
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    // "max" stands for no limit, and is no number.
    let limit = number(files.limit).filter(|&limit| limit < NO_LIMIT)?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached: u64 = files.cached.iter().filter_map(|field| stat_field(&stat, field)).sum();
    Some(ContainerMemory { limit, used: number(files.usage).unwrap_or(0).saturating_sub(cached) })
}

fn stat_field(stat: &str, field: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        root
    }

    #[test]
    fn the_level_that_leaves_least_counts_and_cached_files_are_not_in_use() {
        let root = tree(&[
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "900\n"),
            ("a/memory.stat", "anon 5\ninactive_file 300\nactive_file 200\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "7\n"),
        ]);
        let found = read(root.path(), "0::/a/b\n").expect("a limit");
        assert_eq!((found.limit, found.used, found.left()), (1000, 400, 600));
        assert_eq!(read(root.path(), "0::/c\n"), None);
    }

    #[test]
    fn version_1_is_read_beside_an_empty_version_2() {
        let root = tree(&[
            ("memory/docker/x/memory.limit_in_bytes", "314572800\n"),
            ("memory/docker/x/memory.usage_in_bytes", "1000\n"),
            ("memory/docker/x/memory.stat", "total_inactive_file 100\ntotal_active_file 100\ninactive_file 9\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let membership = "9:name=systemd:/\n4:memory,hugetlb:/docker/x\n0::/\n";
        let found = read(root.path(), membership).expect("a limit");
        assert_eq!((found.limit, found.used), (314_572_800, 800));
    }

    #[test]
    fn a_group_outside_of_what_is_seen_is_the_root() {
        let root = tree(&[("memory.max", "64\n"), ("memory.current", "65\n")]);
        let found = read(root.path(), "0::/../../x\n").expect("a limit");
        assert_eq!((found.limit, found.left()), (64, 0));
        assert_eq!(read(root.path(), ""), None);
    }
}
