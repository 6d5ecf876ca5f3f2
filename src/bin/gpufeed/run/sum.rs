//! What `gpufeed run` reports of several devices: each, and their sum.

use serde::Serialize;

use super::ending::ended;
use super::report::{Report, speed};
use crate::units;

/// The result of a run on several devices. The names are those of the JSON.
#[derive(Debug, Serialize)]
pub struct Reports {
    devices: Vec<Report>,
    sum: Sum,
}

/// All devices together.
#[derive(Debug, Serialize)]
struct Sum {
    samples: u64,
    batches: u64,
    /// Source bytes.
    bytes: u64,
    /// From the common start until the last device had done its last batch. Includes saving.
    elapsed_s: f64,
    samples_per_s: f64,
    /// Decimal gigabytes of source bytes.
    gb_per_s: f64,
    interrupted: bool,
    /// The error that stopped them all.
    error: Option<String>,
}

impl Reports {
    pub fn new(devices: Vec<Report>) -> Self {
        let total = |of: fn(&Report) -> u64| devices.iter().map(of).sum::<u64>();
        let (samples, bytes) = (total(|device| device.stats.samples), total(|device| device.stats.bytes));
        let elapsed_s = devices.iter().map(|device| device.elapsed_s).fold(0.0, f64::max);
        let failed = devices.iter().find(|device| device.error.is_some() && !device.stopped);
        let sum = Sum {
            samples,
            batches: total(|device| device.stats.batches),
            bytes,
            elapsed_s,
            samples_per_s: samples as f64 / elapsed_s,
            gb_per_s: bytes as f64 / 1e9 / elapsed_s,
            interrupted: devices.iter().any(|device| device.interrupted),
            error: failed.and_then(|device| device.error.clone()),
        };
        Self { devices, sum }
    }

    /// The report for people: the sum, then each device.
    pub fn text(&self) -> String {
        let noun = self.devices.first().map_or("samples", |device| device.noun);
        let Sum { samples, batches, elapsed_s, samples_per_s, gb_per_s, interrupted, .. } = self.sum;
        let head = format!(
            "{samples} {noun} in {} on {} devices in {}: {}{}",
            units::count(batches, "batch", "batches"),
            self.devices.len(),
            units::seconds(elapsed_s),
            speed(samples_per_s, noun, gb_per_s),
            ended(self.sum.error.is_some(), interrupted),
        );
        let devices = self.devices.iter().map(|device| format!("\n\n{}: {}", device.device.id, device.text()));
        std::iter::once(head).chain(devices).collect()
    }
}
