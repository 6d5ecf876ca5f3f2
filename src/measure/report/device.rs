//! What was found on one device.

use serde::{Deserialize, Serialize};

use super::ceilings::Ceilings;
use super::configuration::{Configuration, Settings};
use crate::backend::AdapterInfo;

/// What was found on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The device and its driver.
    pub adapter: AdapterInfo,
    /// Whether the driver computes on the CPU: then its numbers say nothing about any GPU.
    pub software: bool,
    /// How it ended.
    pub status: DeviceStatus,
    /// What copying alone reaches, for each batch size and number of workers.
    pub ceilings: Vec<Ceilings>,
    /// What a kernel that only copies reaches within the device's memory, bytes read and written, in GB/s; null where it was not measured.
    pub kernel_ceiling_gb_s: Option<f64>,
    /// Why it was not measured, or why what was measured cannot be true.
    pub kernel_ceiling_error: Option<String>,
    /// Every configuration that was asked for, those that cannot run included.
    pub configurations: Vec<Configuration>,
    /// The fastest strategy, each with the settings it is fastest with.
    pub winner: Option<Winner>,
    /// The fastest strategy for each combination of the other settings, where there are several.
    pub sweep: Vec<Winner>,
    /// The fastest strategy beside each consumer that computes or waits, for each combination of the other settings.
    #[serde(default)]
    pub busy: Vec<Winner>,
    /// Seconds it all took.
    pub seconds: f64,
}

impl DeviceReport {
    /// A report in which nothing has been measured yet.
    #[must_use]
    pub fn new(adapter: &AdapterInfo, settings: &[Settings]) -> Self {
        Self {
            software: adapter.is_software(),
            adapter: adapter.clone(),
            status: DeviceStatus::Ok,
            ceilings: Vec::new(),
            kernel_ceiling_gb_s: None,
            kernel_ceiling_error: None,
            configurations: settings.iter().copied().map(Configuration::new).collect(),
            winner: None,
            sweep: Vec::new(),
            busy: Vec::new(),
            seconds: 0.0,
        }
    }
}

impl DeviceReport {
    /// Takes in what was found on the same device with samples of another size.
    pub fn merge(&mut self, other: Self) {
        if self.status == DeviceStatus::Ok {
            self.status = other.status;
        }
        self.ceilings.extend(other.ceilings);
        // What one reached is no more than a ceiling allows.
        let reached = [self.kernel_ceiling_gb_s, other.kernel_ceiling_gb_s].into_iter().flatten();
        self.kernel_ceiling_gb_s = reached.reduce(f64::max);
        if self.kernel_ceiling_error.is_none() {
            self.kernel_ceiling_error = other.kernel_ceiling_error;
        }
        self.configurations.extend(other.configurations);
        self.seconds += other.seconds;
        self.summarise();
    }
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

/// Which strategy was fastest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Winner {
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
