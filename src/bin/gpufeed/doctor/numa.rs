//! Which cores and memory this process may use, and which are near the GPU.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::finding::{Finding, State};

pub const CHECK: &str = "numa";

/// The machine's nodes and what this process may use.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// The CPUs of each node with memory, by its number.
    pub cpus: Vec<(usize, BTreeSet<usize>)>,
    pub allowed_cpus: BTreeSet<usize>,
    pub allowed_memory: BTreeSet<usize>,
}

impl Nodes {
    /// Of this machine, from `/sys/devices/system/node` and `/proc/self/status`.
    pub fn read(folder: &Path, status: &str) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut cpus: Vec<_> = entries
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
                Some((number, list(&fs::read_to_string(entry.path().join("cpulist")).ok()?)))
            })
            .collect();
        cpus.sort_unstable_by_key(|(number, _)| *number);
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(list).unwrap_or_default()
        };
        Self { cpus, allowed_cpus: field("Cpus_allowed_list"), allowed_memory: field("Mems_allowed_list") }
    }
}

/// `0-3,8` as numbers.
fn list(text: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Pure. `node` is the one that the device is attached to.
pub fn judge(device: &str, node: Option<usize>, nodes: &Nodes) -> Finding {
    if nodes.cpus.len() < 2 {
        return Finding::new(CHECK, State::Ok, "all cores and all memory are on one node").on(device);
    }
    let Some((node, near)) = node.and_then(|node| nodes.cpus.iter().find(|(number, _)| *number == node)) else {
        let what = format!("{} nodes, and which of them the device is attached to is not shown", nodes.cpus.len());
        return Finding::new(CHECK, State::Unknown, what).on(device);
    };
    let far = nodes.allowed_cpus.difference(near).count();
    let memory_far = nodes.allowed_memory.iter().any(|allowed| allowed != node);
    let mend = format!("start it as `numactl --cpunodebind={node} --membind={node} ...`");
    let what = format!(
        "the device is on node {node} of {}; of the {} cores that this process may use, {far} are elsewhere",
        nodes.cpus.len(),
        nodes.allowed_cpus.len()
    );
    let cost = "copies from another node cross the processors' own link; `compare` under numactl and without shows by how much";
    let finding = match (far, memory_far) {
        (0, false) => Finding::new(CHECK, State::Ok, what),
        (far, _) if far == nodes.allowed_cpus.len() => Finding::new(CHECK, State::Wrong, what).cost(cost).mend(mend),
        _ => Finding::new(CHECK, State::Note, what).cost(cost).mend(mend),
    };
    finding.figure("far_cores", far as f64).on(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(allowed: &str, memory: &str) -> Nodes {
        Nodes {
            cpus: vec![(0, list("0-3")), (1, list("4-7"))],
            allowed_cpus: list(allowed),
            allowed_memory: list(memory),
        }
    }

    #[test]
    fn lists_of_the_kernel_are_read() {
        assert_eq!(list("0-2,8\n"), BTreeSet::from([0, 1, 2, 8]));
        assert!(list("").is_empty());
        let here = Nodes::read(Path::new("/nonexistent"), "Cpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n");
        assert_eq!((here.allowed_cpus.len(), here.allowed_memory.len(), here.cpus.len()), (2, 1, 0));
    }

    #[test]
    fn a_process_on_the_other_node_is_wrong_and_one_on_both_is_a_note() {
        let state = |allowed, memory| judge("cuda:0", Some(1), &nodes(allowed, memory)).state;
        assert_eq!(
            [state("0-3", "0-1"), state("0-7", "0-1"), state("4-7", "1")],
            [State::Wrong, State::Note, State::Ok]
        );
        let found = judge("cuda:0", Some(1), &nodes("0-3", "0"));
        assert!(found.mend.is_some_and(|mend| mend.contains("--cpunodebind=1 --membind=1")));
        assert_eq!(judge("cuda:0", None, &nodes("0-7", "0")).state, State::Unknown);
        assert_eq!(judge("cuda:0", None, &Nodes::default()).state, State::Ok);
    }
}
