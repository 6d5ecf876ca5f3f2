//! What a loader can be told, with its defaults and how to choose.

use std::time::Duration;

use crate::backend::Strategy;
use crate::error::OpenError;
use crate::preprocess::Preprocess;

/// What happens to the samples left over at the end of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LastBatch {
    /// They become a shorter batch.
    #[default]
    Short,
    /// They are not delivered in this epoch.
    Drop,
}

/// Options of a [`Loader`](super::Loader). Start from `Default` and change what you know better.
///
/// # Sizing
///
/// Staging memory is `slots * batch bytes`, output memory `outputs * tensor bytes`; both are allocated once. Throughput needs
/// one slot being filled, one being copied and one on its way back: three or four slots; more only evens out sources
/// whose samples take very different times. Outputs bound how far the loader runs ahead: with `n` outputs, `n - 1` batches
/// are ready or on their way while you hold one. Workers beyond the number of cores do not help sources that only copy
/// memory; sources that wait (files on a slow disk, a network) can use more.
#[derive(Clone, Debug)]
pub struct LoaderOptions {
    /// Samples in a batch.
    pub batch_size: usize,
    /// Staging slots: batches that are being filled or copied. At least 1.
    pub slots: usize,
    /// Output tensors: batches that are ready or held by you. At least 1; with 1 nothing is prepared while you hold a batch.
    pub outputs: usize,
    /// Threads that read samples. They fill one slot together. At least 1; the default is the number of cores, at most 8.
    pub workers: usize,
    /// Shuffle with this seed; `None` delivers in the source's order. The order of an epoch depends on the seed and the epoch's
    /// number alone.
    pub seed: Option<u64>,
    /// What happens to the samples left over at the end of an epoch.
    pub last_batch: LastBatch,
    /// How bytes get to the device; `None` takes the backend's default.
    pub strategy: Option<Strategy>,
    /// What the device does with the bytes.
    pub preprocess: Preprocess,
    /// The most bytes (staging, device and outputs together) the loader may take; `None` for no bound.
    pub byte_budget: Option<u64>,
    /// Whether the device computes a fingerprint of each sample's delivered bytes.
    pub fingerprints: bool,
    /// How long dropping the loader may wait for a source that is stuck in a read. After that its thread and its slot are left
    /// behind, with an error in the log.
    pub shutdown_timeout: Duration,
}

impl Default for LoaderOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            batch_size: 64,
            slots: 4,
            outputs: 4,
            workers: cores.min(8),
            seed: None,
            last_batch: LastBatch::default(),
            strategy: None,
            preprocess: Preprocess::default(),
            byte_budget: None,
            fingerprints: false,
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}

impl LoaderOptions {
    const MOST_THREADS: usize = 1024;
    pub(super) const MOST_POOLED: usize = 1 << 16;

    /// Checks what can be checked without a device or a source.
    ///
    /// # Errors
    /// [`OpenError::Option`] names the option.
    pub fn validate(&self) -> Result<(), OpenError> {
        let counts = [
            ("batch_size", self.batch_size, usize::MAX),
            ("slots", self.slots, Self::MOST_POOLED),
            ("outputs", self.outputs, Self::MOST_POOLED),
            ("workers", self.workers, Self::MOST_THREADS),
        ];
        check_counts(&counts)
    }
}

/// Checks that each named count is from 1 to its most.
pub(super) fn check_counts(counts: &[(&'static str, usize, usize)]) -> Result<(), OpenError> {
    for &(option, value, most) in counts {
        if value == 0 || value > most {
            let reason = match value {
                0 => "must be at least 1".to_owned(),
                _ => format!("is {value}, and {most} is the most"),
            };
            return Err(OpenError::Option { option, reason });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_zero_is_named() {
        LoaderOptions::default().validate().expect("defaults are valid");
        let error = LoaderOptions { slots: 0, ..LoaderOptions::default() }.validate().expect_err("no slots");
        assert_eq!(error.to_string(), "slots: must be at least 1");
        let error = LoaderOptions { workers: 5000, ..LoaderOptions::default() }.validate().expect_err("too many");
        assert!(error.to_string().contains("workers: is 5000"), "{error}");
    }
}
