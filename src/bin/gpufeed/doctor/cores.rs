//! Whether the cores copy as fast as the link takes.

use super::finding::{Finding, State};
use crate::units;

pub const CHECK: &str = "cores";

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct CoreFacts {
    /// Threads that can run at once: cores, less what affinity and a container's quota take away.
    pub cores: usize,
    /// A memcpy by one thread and by all of them, in GB/s.
    pub one_gb_s: Option<f64>,
    pub all_gb_s: Option<f64>,
    /// The fastest copy of any GPU here.
    pub link_gb_s: Option<f64>,
}

/// Pure.
pub fn judge(facts: &CoreFacts) -> Finding {
    let CoreFacts { cores, one_gb_s, all_gb_s, link_gb_s } = *facts;
    let (Some(one), Some(all)) = (one_gb_s, all_gb_s) else {
        return Finding::new(CHECK, State::Unknown, format!("{cores} cores; how fast they copy could not be measured"));
    };
    let copy = format!(
        "{}: one copies {} GB/s, all together {} GB/s",
        units::count(cores as u64, "core", "cores"),
        units::digits(one),
        units::digits(all)
    );
    let Some(link) = link_gb_s else {
        return figures(Finding::new(CHECK, State::Ok, format!("{copy}; there is no GPU to copy to")), one, all);
    };
    let needed = (link / one).ceil().max(1.0);
    let what = format!("{copy}; the GPU takes {} GB/s, {needed:.0} such cores", units::digits(link));
    let finding = if all < 0.9 * link {
        Finding::new(CHECK, State::Wrong, what)
            .cost(format!("strategies that copy on the CPU reach at most {:.0}% of the link", 100.0 * all / link))
            .mend(
                "`registered` (CUDA) and `imported` (Vulkan) read the data set's own memory without the CPU; or give the process more cores \
                 (a container's quota, `taskset`, Slurm's --cpus-per-task) and its memory all channels",
            )
    } else {
        Finding::new(CHECK, State::Ok, what)
    };
    figures(finding, one, all).figure("link_gb_s", link).figure("workers_needed", needed)
}

fn figures(finding: Finding, one: f64, all: f64) -> Finding {
    finding.figure("one_core_gb_s", one).figure("all_cores_gb_s", all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: CoreFacts = CoreFacts { cores: 16, one_gb_s: Some(9.0), all_gb_s: Some(36.0), link_gb_s: Some(55.0) };

    #[test]
    fn cores_that_copy_less_than_the_link_takes_are_wrong_and_the_way_around_is_named() {
        let found = judge(&H200);
        assert_eq!(found.state, State::Wrong);
        assert!(found.what.contains("takes 55.0 GB/s, 7 such cores"), "{found:?}");
        assert!(found.cost.is_some_and(|cost| cost.contains("at most 65% of the link")));
        assert!(found.mend.is_some_and(|mend| mend.contains("`registered`")));
    }

    #[test]
    fn enough_cores_are_well_and_without_a_gpu_nothing_is_asked_of_them() {
        assert_eq!(judge(&CoreFacts { all_gb_s: Some(52.0), ..H200 }).state, State::Ok);
        let alone = judge(&CoreFacts { link_gb_s: None, cores: 1, ..H200 });
        assert!(alone.state == State::Ok && alone.what.starts_with("1 core: "), "{alone:?}");
        assert_eq!(judge(&CoreFacts { one_gb_s: None, ..H200 }).state, State::Unknown);
    }
}
