//! One configuration, and what was measured with it.

use serde::{Deserialize, Serialize};

use super::clock::GpuRates;
use super::figures::Figures;
use super::hand_over::HandOver;
use crate::backend::{Footprint, Strategy};
use crate::loader::{Distribution, Finding, LoaderOptions, LoaderStats};
use crate::measure::outcome::Verified;

/// What is compared: a strategy, the sizes it runs with, and what its batches are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How bytes get to the device.
    pub strategy: Strategy,
    /// Bytes of a sample: those of the report's data, unless its size is swept.
    #[serde(default)]
    pub sample_bytes: u64,
    /// Samples in a batch.
    pub batch_size: usize,
    /// Threads that read samples.
    pub workers: usize,
    /// Staging slots.
    pub slots: usize,
    /// Output tensors.
    pub outputs: usize,
    /// How long the consumer computes for each batch, in microseconds of work that runs alone; 0 for one that does nothing.
    #[serde(default)]
    pub compute_us: u32,
    /// What the consumer's CPU waits for.
    #[serde(default)]
    pub hand_over: HandOver,
}

impl Settings {
    /// The options of a loader with these settings, and everything else as in `base`.
    #[must_use]
    pub fn options(&self, base: &LoaderOptions) -> LoaderOptions {
        let Self { strategy, batch_size, workers, slots, outputs, .. } = *self;
        LoaderOptions { strategy: Some(strategy), batch_size, workers, slots, outputs, ..base.clone() }
    }

    /// The same loader beside a consumer that does nothing.
    #[must_use]
    pub fn idle(&self) -> Self {
        Self { compute_us: 0, hand_over: HandOver::Queued, ..*self }
    }

    /// Whether its consumer does nothing, and waits for nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == self.idle()
    }

    /// Whether all but the strategy is the same.
    #[must_use]
    pub fn same_sizes(&self, other: &Self) -> bool {
        Self { strategy: other.strategy, ..*self } == *other
    }
}

/// One configuration and what was measured with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Configuration {
    /// What ran.
    pub settings: Settings,
    /// Whether the strategy allocates for every batch.
    pub allocates_per_batch: bool,
    /// What became of it.
    pub status: Status,
    /// Bytes planned.
    pub footprint: Option<Footprint>,
    /// What was checked before it was timed.
    pub verified: Option<Verified>,
    /// How long the consumer's work takes alone, in microseconds, as measured between the rounds; null where there is none.
    #[serde(default)]
    pub compute_alone_us: Option<f64>,
    /// Every round.
    pub rounds: Vec<Round>,
    /// How long its batches took, over all rounds: from the start of a batch's fill to its tensor ready on the device. Empty in reports
    /// that were made before it was kept.
    #[serde(default)]
    pub latency: Distribution,
    /// What the device's own clock says; null where it has none to be believed.
    pub gpu: Option<GpuRates>,
    /// The figures of all [columns](super::COLUMNS) over all rounds.
    pub figures: Figures,
    /// What held it back, by the engine that judges every loader.
    pub held_back: Option<Finding>,
    /// What was measured and cannot be, and so is not shown, with the reason.
    pub doubts: Vec<String>,
}

impl Configuration {
    /// A configuration that was not reached yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            allocates_per_batch: settings.strategy.allocates_per_batch(),
            status: Status::NotReached,
            footprint: None,
            verified: None,
            compute_alone_us: None,
            rounds: Vec::new(),
            latency: Distribution::default(),
            gpu: None,
            figures: Figures::default(),
            held_back: None,
            doubts: Vec::new(),
        }
    }

    /// Whether it has numbers.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.status == Status::Measured && !self.rounds.is_empty()
    }
}

/// What became of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Status {
    /// It was not reached.
    NotReached,
    /// Its bytes were verified and its rounds timed.
    Measured,
    /// The device cannot run it.
    Unsupported {
        /// Why not.
        reason: String,
    },
    /// It failed, and so has no numbers.
    Failed {
        /// What happened.
        message: String,
        /// Whether wrong bytes, indices or values were delivered.
        wrong_data: bool,
    },
}

/// One timed round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// From an idle device to an idle device.
    pub seconds: f64,
    /// Batches delivered and finished.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Bytes of those samples.
    pub bytes: u64,
    /// Samples a second.
    pub samples_s: f64,
    /// Gigabytes a second.
    pub gb_s: f64,
    /// CPU time of the process for each gigabyte, where known.
    pub cpu_s_per_gb: Option<f64>,
    /// The staging step alone in the same round, in GB/s.
    pub staging_gb_s: Option<f64>,
    /// Seconds that the consumer's CPU waited for the device, apart from `next`: for the batch, or for its own work.
    #[serde(default)]
    pub waited_s: f64,
    /// Everything that the loader counted.
    pub stats: LoaderStats,
}
