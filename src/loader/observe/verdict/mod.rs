//! What holds a loader back. Pure: from its counters and options.
//!
//! In steady state every slot is being filled, waiting for its turn, or on its way to the device; whoever is slowest has them
//! all. So it shows in what the loader's own thread waits for. Source and device that wait for each other in turn lack slots between
//! them; a user who waits while the loader waits for the user lacks outputs.

mod advice;
mod beside;
mod bottleneck;
mod describe;
mod evidence;
mod finding;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

pub use advice::Advice;
pub use beside::Beside;
pub use bottleneck::Bottleneck;
pub use evidence::Evidence;
pub use finding::{Finding, Setup};

use super::super::options::LoaderOptions;
use super::stats::LoaderStats;
use crate::backend::Strategy;

/// What holds a loader back, why that is believed, and what to turn next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The stage.
    pub bottleneck: Bottleneck,
    /// The figures.
    pub evidence: Evidence,
    /// The strategy that would hide the copies, where they are [not hidden](Bottleneck::NotHidden) and one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_by: Option<Strategy>,
    /// Which options to turn, the most promising first.
    pub advice: Vec<Advice>,
}

impl Verdict {
    /// The verdict on a loader with these counters, options and this strategy, on a device that has this to do beside.
    #[must_use]
    pub fn of(stats: &LoaderStats, options: &LoaderOptions, strategy: Strategy, beside: Beside) -> Self {
        let &LoaderOptions { workers, slots, outputs, .. } = options;
        let found = Finding::of(stats, Setup { strategy, workers, slots, outputs, beside });
        let Finding { bottleneck, evidence, hidden_by } = found;
        let advice = advice::advice(bottleneck, &evidence, stats, options, strategy, hidden_by);
        Self { bottleneck, evidence, hidden_by, advice }
    }

    /// A description of the stage and its evidence, without the advice.
    #[must_use]
    pub fn describe(&self) -> String {
        Finding { bottleneck: self.bottleneck, evidence: self.evidence, hidden_by: self.hidden_by }.describe()
    }
}

impl fmt::Display for Verdict {
    /// One sentence for the stage with its evidence, and one for each piece of advice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())?;
        self.advice.iter().try_for_each(|advice| write!(f, "; {advice}"))
    }
}
