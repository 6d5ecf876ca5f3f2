//! What a comparison found, in plain structs: every sample is kept, and what is derived from them stands beside.
//!
//! The JSON of a [`Report`] is described by `compare.schema.json` beside this file ([`JSON_SCHEMA`]). Rates are in decimal
//! gigabytes (10^9 bytes) of the samples as the source delivers them.

use serde::{Deserialize, Serialize};

use super::gpu::GpuRates;
use super::limits::{HeldBack, Shares};
use super::stats::Summary;
use super::verify::Verified;
use crate::backend::{AdapterInfo, Footprint, Strategy};
use crate::loader::{LoaderOptions, LoaderStats, Percentiles};

/// The version of the format: the field `schema` of a report.
pub const SCHEMA: &str = "gpufeed-compare/2";

/// The JSON Schema of a [`Report`].
pub const JSON_SCHEMA: &str = include_str!("compare.schema.json");

/// A comparison on any number of devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of gpufeed.
    pub gpufeed: String,
    /// When it started: RFC 3339, UTC.
    pub date: String,
    /// The machine.
    pub host: Host,
    /// Whether gpufeed was built without optimisation: then its numbers say little.
    pub debug_build: bool,
    /// The command line.
    pub command: Vec<String>,
    /// What was fed.
    pub data: Data,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// What was found, device by device. Devices are not compared with each other.
    pub devices: Vec<DeviceReport>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The operating system.
    pub os: String,
    /// The processor's architecture.
    pub arch: String,
    /// Threads that can run at once.
    pub cores: usize,
    /// The processor's name, where known.
    pub cpu: Option<String>,
    /// Bytes of memory, where known.
    pub memory: Option<u64>,
}

/// What was fed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Whether it was made up.
    pub synthetic: bool,
    /// The last part of the path, or what was made up.
    pub name: String,
    /// The samples, in words.
    pub layout: String,
    /// Whether the samples are images.
    pub images: bool,
    /// Bytes of a sample.
    pub sample_bytes: u64,
    /// How many there are. They are fed again and again.
    pub samples: u64,
    /// What the device makes of them, in words.
    pub preprocess: String,
    /// The seed of the order; null for the source's own order.
    pub seed: Option<u64>,
}

/// What was found on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The device and its driver.
    pub adapter: AdapterInfo,
    /// Whether the driver computes on the CPU: then its numbers say nothing about any GPU.
    pub software: bool,
    /// How it ended.
    pub status: DeviceStatus,
    /// What copying alone reaches, for each batch size and number of workers: the device's copy is a ceiling, the host's a reference.
    pub ceilings: Vec<Ceilings>,
    /// What a kernel that only copies reaches within the device's memory, bytes read and written, in GB/s; null where it was not measured.
    #[serde(default)]
    pub kernel_ceiling_gb_s: Option<f64>,
    /// Why it was not measured, or what was measured cannot be.
    #[serde(default)]
    pub kernel_ceiling_error: Option<String>,
    /// Every configuration that was asked for, those that cannot run included.
    pub configurations: Vec<Configuration>,
    /// The fastest strategy, each with the settings it is fastest with.
    pub winner: Option<Verdict>,
    /// The fastest strategy for each combination of the other settings, where there are several.
    pub sweep: Vec<Verdict>,
    /// Seconds it all took.
    pub seconds: f64,
}

/// How the comparison on a device ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum DeviceStatus {
    /// Everything that can run has been measured.
    Ok,
    /// It was ended early; what had been measured is there.
    Interrupted,
    /// The process on this device died; what had been measured is there.
    Crashed {
        /// How it died.
        message: String,
    },
    /// The process on this device did not end in time and was killed; what had been measured is there.
    Timeout {
        /// The time it had.
        seconds: f64,
    },
    /// The device cannot be used, or not any more.
    Error {
        /// What it reported.
        message: String,
    },
}

/// What is compared: a strategy and the sizes it runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How bytes get to the device.
    pub strategy: Strategy,
    /// Samples in a batch.
    pub batch_size: usize,
    /// Threads that read samples.
    pub workers: usize,
    /// Staging slots.
    pub slots: usize,
    /// Output tensors.
    pub outputs: usize,
}

impl Settings {
    /// The options of a loader with these settings, and everything else as in `base`.
    #[must_use]
    pub fn options(&self, base: &LoaderOptions) -> LoaderOptions {
        let Self { strategy, batch_size, workers, slots, outputs } = *self;
        LoaderOptions { strategy: Some(strategy), batch_size, workers, slots, outputs, ..base.clone() }
    }

    /// Whether all but the strategy is the same.
    #[must_use]
    pub fn same_sizes(&self, other: &Self) -> bool {
        Self { strategy: other.strategy, ..*self } == *other
    }
}

/// What copying alone reaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Samples in a batch.
    pub batch_size: usize,
    /// Threads that copied.
    pub workers: usize,
    /// A parallel memcpy on the host, in GB/s: one sample a round. A reference that a strategy may pass: it may copy better, or not at all.
    pub host_memcpy_samples: Vec<f64>,
    /// Their median.
    pub host_memcpy_gb_s: Option<f64>,
    /// The device's own copy from staging to device memory, in GB/s: the ceiling of whatever crosses the link.
    pub device_copy_gb_s: Option<f64>,
    /// The driver's copy from ordinary memory, where its API has one.
    pub pageable_copy_gb_s: Option<f64>,
    /// Why there is no device copy, if there is none.
    pub device_copy_error: Option<String>,
}

/// One configuration and what was measured with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Every round.
    pub rounds: Vec<Round>,
    /// What the rounds have in the middle.
    pub median: Option<Median>,
    /// Throughput as percent of the device's own copy; null where that is not known, or was passed and so is no ceiling.
    pub percent_of_copy: Option<f64>,
    /// Throughput divided by the parallel memcpy of the same bytes with the same threads: a reference, which may be passed.
    pub times_memcpy: Option<f64>,
    /// The staging step alone.
    pub staging: Option<Staging>,
    /// What the device's own clock says; null where it has none to be believed.
    #[serde(default)]
    pub gpu: Option<GpuRates>,
    /// What was measured and cannot be, and so is not shown, with the reason.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// Where the time went, as shares.
    pub shares: Option<Shares>,
    /// What held it back.
    pub held_back: Option<HeldBack>,
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
    /// Samples a second, whether images or not.
    pub images_s: f64,
    /// Gigabytes a second.
    pub gb_s: f64,
    /// CPU time of the process for each gigabyte, where known.
    pub cpu_s_per_gb: Option<f64>,
    /// The staging step alone in the same round, in GB/s.
    pub staging_gb_s: Option<f64>,
    /// Everything that the loader counted.
    pub stats: LoaderStats,
}

/// The medians of a configuration's rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Median {
    /// Samples a second.
    pub images_s: Summary,
    /// Gigabytes a second.
    pub gb_s: f64,
    /// CPU time of the process for each gigabyte, where known.
    pub cpu_s_per_gb: Option<f64>,
    /// From the start of a batch's fill to its tensor ready on the device: medians of the rounds' percentiles.
    pub latency: Percentiles,
    /// Time inside `next`: medians of the rounds' percentiles.
    pub wait: Percentiles,
}

/// The CPU's staging step alone: one slot, raw bytes, and the time of taking memory, filling it and submitting it. What the
/// device needs afterwards is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Staging {
    /// Gigabytes a second: the median of the rounds.
    pub gb_s: f64,
    /// That, divided by the parallel memcpy of the same bytes with the same threads.
    pub times_memcpy: Option<f64>,
}

/// Which strategy was fastest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The settings of the fastest.
    pub settings: Settings,
    /// The strategy that came second.
    pub runner_up: Option<Settings>,
    /// How much faster than the runner-up: the median of the rounds' ratios.
    pub ratio: Option<f64>,
    /// The spread of those ratios.
    pub spread: Option<f64>,
    /// How many rounds both were measured in.
    pub rounds: usize,
    /// Whether the lead is larger than the spread, over enough rounds.
    pub beyond_noise: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::report;

    fn problems(json: &serde_json::Value) -> Vec<String> {
        let schema = serde_json::from_str(JSON_SCHEMA).expect("the schema is JSON");
        let validator = jsonschema::validator_for(&schema).expect("the schema is a schema");
        validator.iter_errors(json).map(|error| error.to_string()).collect()
    }

    #[test]
    fn a_report_follows_its_schema_and_comes_back_from_json() {
        let report = report();
        let json = serde_json::to_value(&report).expect("serialises");
        assert_eq!(problems(&json), Vec::<String>::new());
        assert_eq!(serde_json::from_value::<Report>(json).expect("deserialises"), report);
    }

    #[test]
    fn the_schema_refuses_numbers_without_verification_and_other_versions() {
        let json = serde_json::to_value(report()).expect("serialises");
        let mut unverified = json.clone();
        unverified["devices"][0]["configurations"][0]["verified"] = serde_json::Value::Null;
        assert!(!problems(&unverified).is_empty());
        let mut failed = json.clone();
        failed["devices"][0]["configurations"][0]["status"] =
            serde_json::json!({ "state": "failed", "message": "", "wrong_data": true });
        assert!(!problems(&failed).is_empty());
        let mut other = json;
        other["schema"] = "gpufeed-compare/1".into();
        assert!(!problems(&other).is_empty());
    }
}
