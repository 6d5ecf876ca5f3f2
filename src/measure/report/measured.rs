//! What figures are made of.

use super::ceilings::Ceilings;
use super::clock::GpuRates;
use super::configuration::{Configuration, Round, Settings};
use super::device::DeviceReport;
use crate::measure::busy::{hidden, ideal};
use crate::measure::stats::{MIN_ROUNDS, Summary};

/// What figures are made of: a configuration with all rounds, or with one.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    pub(super) rounds: &'a [Round],
    pub(super) gpu: Option<&'a GpuRates>,
    pub(super) ceilings: Option<&'a Ceilings>,
    pub(super) kernel_ceiling_gb_s: Option<f64>,
    settings: &'a Settings,
    compute_alone_us: Option<f64>,
    /// The rounds of the same loader beside a consumer that does nothing.
    idle: &'a [Round],
}

/// Microseconds from batch to batch, the median of the rounds.
fn step_us(rounds: &[Round]) -> Option<f64> {
    let steps: Vec<f64> = rounds.iter().map(|round| 1e6 * round.seconds / round.batches as f64).collect();
    Summary::of(&steps).map(|summary| summary.median)
}

impl<'a> Measured<'a> {
    /// A configuration of a device with these of its rounds.
    pub(super) fn of(device: &'a DeviceReport, configuration: &'a Configuration, rounds: &'a [Round]) -> Self {
        let ceilings = Ceilings::of(&device.ceilings, &configuration.settings);
        let settings = &configuration.settings;
        let idle = device.configurations.iter().find(|row| row.settings == settings.idle());
        Self {
            rounds,
            gpu: configuration.gpu.as_ref(),
            ceilings,
            kernel_ceiling_gb_s: device.kernel_ceiling_gb_s,
            settings,
            compute_alone_us: configuration.compute_alone_us,
            idle: idle.map_or(&[], |row| &row.rounds),
        }
    }

    fn summary(&self, of: impl Fn(&Round) -> Option<f64>) -> Option<Summary> {
        Summary::of(&self.rounds.iter().filter_map(of).collect::<Vec<_>>())
    }

    pub(super) fn median(&self, of: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
        self.summary(of).map(|summary| summary.median)
    }

    pub(super) fn spread(&self, of: impl Fn(&Round) -> f64) -> Option<f64> {
        self.summary(|round| Some(of(round))).filter(|summary| summary.n >= MIN_ROUNDS).map(|summary| summary.spread)
    }

    /// How long the consumer's work takes alone: what was measured, and until then what was asked for.
    pub(super) fn compute_us(&self) -> f64 {
        self.compute_alone_us.unwrap_or_else(|| f64::from(self.settings.compute_us))
    }

    pub(super) fn step_us(&self) -> Option<f64> {
        step_us(self.rounds)
    }

    /// Of the shorter of transfer and compute, the share that cost no time of its own.
    pub(super) fn hidden(&self) -> Option<f64> {
        hidden(step_us(self.idle)?, self.compute_us(), self.step_us()?)
    }

    /// The slowest of copy, fill and compute. The fill is the CPU's own copy, where there is one.
    pub(super) fn ideal_us(&self) -> Option<f64> {
        let ceilings = self.ceilings?;
        let bytes = self.median(|round| Some(round.bytes as f64 / round.batches as f64))?;
        let time_us = |gb_s: f64| bytes / 1e3 / gb_s;
        let copy = time_us(ceilings.batch_copy_gb_s.or(ceilings.device_copy_gb_s)?);
        let fill = if self.settings.strategy.is_direct() { 0.0 } else { time_us(ceilings.host_memcpy_gb_s?) };
        Some(ideal(copy.max(fill), self.compute_us()))
    }

    pub(super) fn times_memcpy(&self, rate: Option<f64>) -> Option<f64> {
        Some(rate? / self.ceilings?.host_memcpy_gb_s?)
    }
}
