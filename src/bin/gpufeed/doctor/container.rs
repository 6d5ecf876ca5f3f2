//! The memory that a container, a batch system or a service manager allows.

use gpufeed::measure::ContainerMemory;

use super::finding::{Finding, State};
use crate::units;

pub const CHECK: &str = "container-memory";

const MEND: &str = "give it more: `docker run --memory`, `resources.limits.memory` of a Kubernetes container, `--mem` under Slurm, \
                    `MemoryMax=` of a systemd unit; or take smaller batches, fewer slots and fewer outputs";

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct ContainerFacts {
    pub container: Option<ContainerMemory>,
    /// What is left of the container's memory or the machine's.
    pub available: Option<u64>,
    /// Bytes that the loader wants of the host's memory.
    pub needed: u64,
    /// Bytes of the data, as delivered.
    pub data: Option<u64>,
}

/// Pure.
pub fn judge(facts: &ContainerFacts) -> Finding {
    let wanted = format!("a loader of this size takes {}", units::bytes(facts.needed));
    let Some(left) = facts.container.map(|container| container.left()).or(facts.available) else {
        return Finding::new(CHECK, State::Unknown, "this system does not say how much memory there is");
    };
    let what = match facts.container {
        Some(container) => format!(
            "a limit of {}, {} in use, {} left; {wanted}",
            units::bytes(container.limit),
            units::bytes(container.used),
            units::bytes(left)
        ),
        None => format!("no limit on this process's memory; {} available, {wanted}", units::bytes(left)),
    };
    let finding = if facts.needed > left {
        Finding::new(CHECK, State::Wrong, what).cost("the system ends a process that takes more").mend(MEND)
    } else if facts.data.is_some_and(|data| data > left) {
        let data = units::bytes(facts.data.unwrap_or(0));
        Finding::new(CHECK, State::Note, format!("{what}; the data are {data}, which does not stay in memory"))
            .cost("every epoch reads from storage again")
            .mend(MEND)
    } else {
        Finding::new(CHECK, State::Ok, what)
    };
    let limit = facts.container.map(|container| container.limit as f64);
    let finding = finding.figure("left_bytes", left as f64).figure("needed_bytes", facts.needed as f64);
    limit.into_iter().fold(finding, |finding, limit| finding.figure("limit_bytes", limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(container: Option<(u64, u64)>, needed: u64, data: Option<u64>) -> ContainerFacts {
        let container = container.map(|(limit, used)| {
            serde_json::from_value(serde_json::json!({ "limit": limit, "used": used })).expect("its fields")
        });
        ContainerFacts { container, available: Some(8 << 30), needed, data }
    }

    #[test]
    fn a_loader_that_does_not_fit_its_container_is_wrong() {
        let found = judge(&facts(Some((300 << 20, 280 << 20)), 40 << 20, None));
        assert_eq!(found.state, State::Wrong);
        assert!(found.what.starts_with("a limit of 300 MiB, 280 MiB in use, 20.0 MiB left"), "{found:?}");
        assert!(found.mend.is_some_and(|mend| mend.contains("docker run --memory")));
    }

    #[test]
    fn data_that_do_not_stay_in_memory_are_a_note() {
        assert_eq!(judge(&facts(Some((300 << 20, 0)), 40 << 20, Some(400 << 20))).state, State::Note);
        assert_eq!(judge(&facts(Some((300 << 20, 0)), 40 << 20, Some(40 << 20))).state, State::Ok);
        let free = judge(&facts(None, 40 << 20, None));
        assert!(free.state == State::Ok && free.what.starts_with("no limit"), "{free:?}");
    }
}
