//! What the automatic choice may do.

use std::path::PathBuf;
use std::time::Duration;

use crate::backend::Strategy;

/// What [`tune`](super::tune) may do.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoOptions {
    /// How long to measure. With a quarter of it for what a trial cannot interrupt (opening and freeing memory, a source's read)
    /// this bounds the whole call: the default of 1.5 s ends before 1.9 s. A trial that is stuck then is left to itself.
    pub budget: Duration,
    /// Use this strategy, and choose the number of workers only.
    pub strategy: Option<Strategy>,
    /// Use this many workers, and choose the strategy only.
    pub workers: Option<usize>,
    /// How long the consumer computes on the device for each batch: trials are measured with so much work behind each batch, which is
    /// calibrated first, within the budget. Zero for a consumer that leaves the device alone; a second at most. What hides its transfers behind that work
    /// may be another strategy than the one that is fastest alone. [`tune_again`](super::tune_again) finds out by itself.
    pub compute: Duration,
    /// Remember the choice in this file, and take it from there next time: for the same device, driver, samples, options and version.
    /// Sources of other kinds with equal samples want files of their own. A file that cannot be used is a warning in the log.
    pub cache: Option<PathBuf>,
}

impl Default for AutoOptions {
    fn default() -> Self {
        Self {
            budget: Duration::from_millis(1500),
            strategy: None,
            workers: None,
            compute: Duration::ZERO,
            cache: None,
        }
    }
}
