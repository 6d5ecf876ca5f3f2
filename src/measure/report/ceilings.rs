//! What copying alone reaches.

use serde::{Deserialize, Serialize};

use super::configuration::Settings;

/// What copying alone reaches with one size of sample, batch size and number of workers. The device's copy is a ceiling, the host's a reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Bytes of a sample.
    #[serde(default)]
    pub sample_bytes: u64,
    /// Samples in a batch.
    pub batch_size: usize,
    /// Threads that copied.
    pub workers: usize,
    /// A parallel memcpy on the host, in GB/s: one sample a round. A strategy may pass it: it may copy better, or not at all.
    pub host_memcpy_samples: Vec<f64>,
    /// Their median.
    pub host_memcpy_gb_s: Option<f64>,
    /// The device's own copy from staging to device memory, in GB/s.
    pub device_copy_gb_s: Option<f64>,
    /// The device's own copy of as many bytes as a batch has, in GB/s: what a consumer that computes is measured beside. Null without one.
    #[serde(default)]
    pub batch_copy_gb_s: Option<f64>,
    /// The driver's copy from ordinary memory, where its API has one, in GB/s.
    pub pageable_copy_gb_s: Option<f64>,
    /// Why there is no device copy, if there is none.
    pub device_copy_error: Option<String>,
}

impl Ceilings {
    /// Those of the sizes that settings have.
    #[must_use]
    pub fn of<'a>(all: &'a [Self], settings: &Settings) -> Option<&'a Self> {
        let Settings { sample_bytes, batch_size, workers, .. } = *settings;
        all.iter().find(|one| (one.sample_bytes, one.batch_size, one.workers) == (sample_bytes, batch_size, workers))
    }
}
