//! A whole report.

use serde::{Deserialize, Serialize};

use super::device::DeviceReport;
use super::schema::SCHEMA;
use crate::measure::machine::{Host, rfc_3339};

/// A comparison on any number of devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
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

impl Report {
    /// A report on this machine that begins now and has no devices yet.
    #[must_use]
    pub fn new(data: Data, command: Vec<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            gpufeed: env!("CARGO_PKG_VERSION").to_owned(),
            date: rfc_3339(std::time::SystemTime::now()),
            host: Host::here(),
            debug_build: cfg!(debug_assertions),
            command,
            data,
            interrupted: false,
            devices: Vec::new(),
        }
    }
}

/// What was fed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Whether it was made up.
    pub synthetic: bool,
    /// The last part of the path, or what was made up.
    pub name: String,
    /// A description of the samples.
    pub layout: String,
    /// Whether the samples are images.
    pub images: bool,
    /// Bytes of a sample.
    pub sample_bytes: u64,
    /// How many there are. They are fed again and again.
    pub samples: u64,
    /// A description of what the device makes of them.
    pub preprocess: String,
    /// The seed of the order; null for the source's own order.
    pub seed: Option<u64>,
}
