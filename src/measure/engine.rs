//! The comparison on one device: everything is verified first, then all configurations are timed in turn, round by round, with
//! the ceilings measured between.

use std::sync::Arc;
use std::time::Instant;

use super::comparison::Comparison;
use super::cycled::Cycled;
use super::events::{Event, Observer};
use super::outcome::VerifyError;
use super::plan::Plan;
use super::report::{DeviceReport, DeviceStatus, Settings, Status};
use super::rounds::Contestant;
use super::verify::{Extent, verify};
use crate::backend::Backend;
use crate::source::Source;

/// Compares configurations on a device, fed from `source` again and again. Takes about the time that `plan` says.
///
/// Whatever fails becomes a row of the report that says so.
pub fn compare<B: Backend>(
    backend: &B,
    source: Arc<dyn Source>,
    plan: &Plan,
    observer: &mut dyn Observer,
) -> DeviceReport {
    let started = Instant::now();
    let batches = |settings: &Settings| source.len().div_ceil(settings.batch_size.max(1) as u64);
    let extents: Vec<u64> = plan.settings.iter().map(batches).collect();
    let mut comparison = Comparison {
        backend,
        source: Arc::new(Cycled::new(source)),
        plan,
        observer,
        report: DeviceReport::new(backend.info(), &plan.settings),
        contestants: Vec::new(),
    };
    comparison.verify_all(&extents);
    comparison.time_all(started);
    let Comparison { mut report, observer, contestants, .. } = comparison;
    drop(contestants);
    if observer.stop() && report.status == DeviceStatus::Ok {
        report.status = DeviceStatus::Interrupted;
    }
    report.summarise();
    report.seconds = started.elapsed().as_secs_f64();
    report
}

impl<B: Backend> Comparison<'_, B> {
    fn verify_all(&mut self, batches: &[u64]) {
        let mut open = 0u64;
        for (index, &batches) in batches.iter().enumerate() {
            if self.over() {
                return;
            }
            let settings = self.plan.settings[index];
            if let Err(unsupported) = self.backend.supports(settings.strategy) {
                let reason = unsupported.reason;
                self.report.configurations[index].status = Status::Unsupported { reason: reason.clone() };
                self.report_event(&Event::Unsupported { settings, reason });
                continue;
            }
            match self.verify_one(index, settings, batches) {
                // The staging step has a loader of its own, with one slot and small tensors.
                Ok(bytes) => open = open.saturating_add(bytes).saturating_add(bytes / 2),
                Err(error) => self.failed(index, &error),
            }
        }
        // All or none: what is opened anew for each round must not compete with what stays warm.
        let device = self.backend.info().memory.map_or(u64::MAX, |bytes| bytes / 4);
        let hold = open <= self.plan.hold_bytes.min(device);
        self.contestants.iter_mut().for_each(|(_, contestant)| contestant.hold(hold));
    }

    /// Verifies one configuration, which then may be timed; returns the bytes that its loader takes.
    fn verify_one(&mut self, index: usize, settings: Settings, batches: u64) -> Result<u64, VerifyError> {
        self.report_event(&Event::Verifying { settings });
        let options = settings.options(&self.plan.base);
        let extent = Extent { batches, time: self.plan.timing.verify };
        let (verified, footprint) = verify(self.backend, &self.source, &options, extent, &|| self.observer.stop())?;
        self.contestants.push((index, Contestant::new(self.backend, &self.source, options)?));
        let row = &mut self.report.configurations[index];
        (row.verified, row.footprint) = (Some(verified), Some(footprint));
        self.report_event(&Event::Verified { settings, verified });
        Ok(footprint.total())
    }

    fn time_all(&mut self, started: Instant) {
        let timing = self.plan.timing;
        let mut rounds = 0;
        while !self.over() && !self.contestants.is_empty() && timing.goes_on(rounds, started.elapsed()) {
            rounds += 1;
            for (index, mut contestant) in std::mem::take(&mut self.contestants) {
                if self.over() {
                    self.contestants.push((index, contestant));
                    continue;
                }
                match self.time_one(index, &mut contestant, rounds) {
                    Ok(()) => self.contestants.push((index, contestant)),
                    Err(error) => self.failed(index, &error),
                }
            }
            self.measure_ceilings(rounds);
            self.report.summarise();
        }
    }

    fn time_one(&mut self, index: usize, contestant: &mut Contestant<B>, round: usize) -> Result<(), VerifyError> {
        let timing = self.plan.timing;
        let stop = || self.observer.stop();
        let Some(mut timed) = contestant.round(timing.slice, &stop)? else { return Ok(()) };
        // Where the device reads the source by itself there is no staging to time.
        let staged = !self.plan.settings[index].strategy.is_direct();
        let staging = if staged { contestant.staging(timing.staging, &stop) } else { Ok(None) };
        timed.staging_gb_s = match staging {
            Err(error) if !error.is_lost() => {
                let strategy = self.plan.settings[index].strategy;
                log::warn!("{strategy}: the staging step could not be timed alone: {error}");
                None
            }
            result => result?,
        };
        if round == 1 {
            self.ask_the_device(index, contestant, timing.ceiling / 2)?;
        }
        let row = &mut self.report.configurations[index];
        row.rounds.push(timed);
        row.status = Status::Measured;
        let settings = row.settings;
        let (samples_s, gb_s, of) = (timed.samples_s, timed.gb_s, timing.rounds);
        self.report_event(&Event::Timed { settings, round, of, samples_s, gb_s });
        Ok(())
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
