//! What a loader's times say: the one engine behind the verdict on a loader and on a recorded comparison.

use serde::{Deserialize, Serialize};

use super::super::stats::LoaderStats;
use super::beside::Beside;
use super::bottleneck::Bottleneck;
use super::evidence::Evidence;
use crate::backend::Strategy;

/// Fewer batches than this, or than twice the slots, are not evidence.
const FEW: u64 = 8;

/// What a loader ran with, as far as it bears on where its time went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// How bytes got to the device.
    pub strategy: Strategy,
    /// Threads that read samples.
    pub workers: usize,
    /// Staging slots.
    pub slots: usize,
    /// Output tensors.
    pub outputs: usize,
    /// What is known of the user's own work on the device.
    pub beside: Beside,
}

/// The stage that held a loader back, and why that is believed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// The stage.
    pub bottleneck: Bottleneck,
    /// The figures.
    pub evidence: Evidence,
    /// The strategy that would hide the copies, where they are [not hidden](Bottleneck::NotHidden) and one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_by: Option<Strategy>,
}

impl Finding {
    /// What counters say of a loader with this setup, whether it is there or was recorded. Those of several runs may be added up.
    #[must_use]
    pub fn of(stats: &LoaderStats, setup: Setup) -> Self {
        let Setup { strategy, workers, slots, outputs, beside } = setup;
        let evidence = Evidence::of(stats, workers, beside);
        let few = stats.batches < FEW.max(2 * slots as u64) || stats.active_s <= 0.0;
        let bottleneck = match evidence.bottleneck(outputs, strategy) {
            _ if few => Bottleneck::Startup,
            device if device.is_of_the_device() => evidence.beside_the_user(device, beside.hidden_by.is_some()),
            other => other,
        };
        let hidden_by = beside.hidden_by.filter(|_| bottleneck == Bottleneck::NotHidden);
        Self { bottleneck, evidence, hidden_by }
    }

    /// A description of the stage and its evidence.
    #[must_use]
    pub fn describe(&self) -> String {
        let hidden_by = self.hidden_by.map(|strategy| format!("; `{strategy}` would hide them")).unwrap_or_default();
        let (stage, evidence) = (self.bottleneck.describe(), self.evidence.describe(self.bottleneck));
        format!("held back by {stage} ({evidence}){hidden_by}")
    }
}
