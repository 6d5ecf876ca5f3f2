//! What a loader's times say: the one engine behind the verdict on a loader and on a recorded comparison.

use serde::{Deserialize, Serialize};

use super::super::stats::LoaderStats;
use super::bottleneck::Bottleneck;
use super::evidence::Evidence;
use crate::backend::Strategy;

/// Fewer batches than this, or than twice the slots, are not evidence.
const FEW: u64 = 8;

/// What a loader ran with, as far as it bears on where its time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How bytes got to the device.
    pub strategy: Strategy,
    /// Threads that read samples.
    pub workers: usize,
    /// Staging slots.
    pub slots: usize,
    /// Output tensors.
    pub outputs: usize,
}

/// The stage that held a loader back, and why that is believed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// The stage.
    pub bottleneck: Bottleneck,
    /// The figures.
    pub evidence: Evidence,
}

impl Finding {
    /// What counters say of a loader with this setup, whether it is there or was recorded. Those of several runs may be added up.
    #[must_use]
    pub fn of(stats: &LoaderStats, setup: Setup) -> Self {
        let Setup { strategy, workers, slots, outputs } = setup;
        let evidence = Evidence::of(stats, workers);
        let few = stats.batches < FEW.max(2 * slots as u64) || stats.active_s <= 0.0;
        let bottleneck = if few { Bottleneck::Startup } else { evidence.bottleneck(outputs, strategy) };
        Self { bottleneck, evidence }
    }

    /// A description of the stage and its evidence.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("held back by {} ({})", self.bottleneck.describe(), self.evidence.describe(self.bottleneck))
    }
}
