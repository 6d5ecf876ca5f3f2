//! What the automatic choice came to.

use std::time::Duration;

use serde::Serialize;

use crate::backend::Strategy;
use crate::loader::LoaderOptions;
use crate::measure::stats::Summary;

/// What was chosen, and the evidence for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuned {
    /// The options with the strategy and the workers that were chosen: make the loader with them.
    pub options: LoaderOptions,
    /// The strategy chosen, as `options` have it.
    pub strategy: Strategy,
    /// The number of workers chosen, as `options` have it.
    pub workers: usize,
    /// How long the consumer computed for each batch, in the trials.
    pub compute: Duration,
    /// A description of the reasons.
    pub why: String,
    /// What was measured; empty where nothing was to be chosen, or where the choice comes from the cache.
    pub trials: Vec<Trial>,
    /// Whether a batch of what was chosen was read back and compared with the source in this call.
    pub checked: bool,
    /// Whether the choice comes from the cache.
    pub from_cache: bool,
    /// How long the call took.
    pub took: Duration,
}

/// A strategy with a number of workers that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trial {
    /// The strategy.
    pub strategy: Strategy,
    /// The number of workers. A strategy that reads the source's own memory has none.
    pub workers: usize,
    /// Batches measured.
    pub batches: u64,
    /// Gigabytes of source bytes a second, of each slice; empty if it could not be measured.
    pub gb_s: Vec<f64>,
    /// Why it could not be measured.
    pub failed: Option<String>,
}

impl Trial {
    /// The median of its slices; `None` if it could not be measured.
    #[must_use]
    pub fn median_gb_s(&self) -> Option<f64> {
        Summary::of(&self.gb_s).map(|summary| summary.median)
    }
}
