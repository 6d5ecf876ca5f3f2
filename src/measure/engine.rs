//! The comparison on one device: everything is verified first, then all configurations are timed in turn, round by round, with
//! the ceilings measured between.

use std::sync::Arc;
use std::time::Instant;

use super::busy::User;
use super::comparison::{Comparison, Entrant};
use super::cycled::Cycled;
use super::events::{Event, Observer};
use super::outcome::VerifyError;
use super::plan::Plan;
use super::report::{DeviceReport, DeviceStatus, Settings, Status};
use super::rounds::Contestant;
use super::verify::{Checked, Extent, verify};
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
        entrants: Vec::new(),
        load: None,
    };
    comparison.prepare_consumer();
    comparison.verify_all(&extents);
    comparison.time_all(started);
    let Comparison { mut report, observer, entrants, load, .. } = comparison;
    drop((entrants, load));
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
            if matches!(self.report.configurations[index].status, Status::Failed { .. }) || self.joins(index) {
                continue;
            }
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
        self.entrants.iter_mut().for_each(|entrant| entrant.contestant.hold(hold));
    }

    /// Whether the loader of a configuration was looked at already, for another use of its batches: then it is as that one is.
    fn joins(&mut self, index: usize) -> bool {
        let settings = &self.plan.settings;
        let own = settings[index].idle();
        let tried = |&earlier: &usize| {
            settings[earlier].idle() == own
                && !matches!(self.report.configurations[earlier].status, Status::Failed { wrong_data: false, .. })
        };
        let Some(earlier) = (0..index).find(tried) else { return false };
        let rows = &mut self.report.configurations;
        (rows[index].verified, rows[index].footprint) = (rows[earlier].verified, rows[earlier].footprint);
        rows[index].status = rows[earlier].status.clone();
        if let Some(entrant) = self.entrants.iter_mut().find(|entrant| entrant.rows.contains(&earlier)) {
            entrant.rows.push(index);
        }
        true
    }

    /// Verifies one configuration, which then may be timed; returns the bytes that its loader takes.
    fn verify_one(&mut self, index: usize, settings: Settings, batches: u64) -> Result<u64, VerifyError> {
        self.report_event(&Event::Verifying { settings });
        let options = settings.options(&self.plan.base);
        let extent = Extent { batches, time: self.plan.timing.verify };
        let (source, consumer) = (&self.source, self.load.as_mut().map(|load| &mut load.consumer));
        let checked = verify(self.backend, source, &options, extent, consumer, &|| self.observer.stop())?;
        let Checked { verified, footprint, sums } = checked;
        let contestant = Contestant::new(self.backend, source, options, sums)?;
        self.entrants.push(Entrant { rows: vec![index], contestant });
        let row = &mut self.report.configurations[index];
        (row.verified, row.footprint) = (Some(verified), Some(footprint));
        self.report_event(&Event::Verified { settings, verified });
        Ok(footprint.total())
    }

    fn time_all(&mut self, started: Instant) {
        let timing = self.plan.timing;
        let mut rounds = 0;
        while !self.over() && !self.entrants.is_empty() && timing.goes_on(rounds, started.elapsed()) {
            rounds += 1;
            if let Err(error) = self.wake_device() {
                log::warn!("the consumer could not work before a round: {error}");
            }
            for mut entrant in std::mem::take(&mut self.entrants) {
                for index in entrant.rows.clone() {
                    if self.over() {
                        break;
                    }
                    if let Err(error) = self.time_one(index, &mut entrant.contestant, rounds) {
                        self.failed(index, &error);
                        entrant.rows.retain(|&row| row != index);
                    }
                }
                if !entrant.rows.is_empty() {
                    self.entrants.push(entrant);
                }
            }
            self.measure_ceilings(rounds);
            self.report.summarise();
        }
    }

    fn time_one(&mut self, index: usize, contestant: &mut Contestant<B>, round: usize) -> Result<(), VerifyError> {
        let (timing, settings) = (self.plan.timing, self.plan.settings[index]);
        let stop = || self.observer.stop();
        let busy = self.load.as_mut().and_then(|load| load.work(settings.compute_us));
        let mut user = User::new(busy, settings.hand_over);
        let Some((mut timed, latencies)) = contestant.round(timing.slice, &mut user, &stop)? else { return Ok(()) };
        // Its other parts are the same whatever becomes of the batches.
        if settings.is_idle() {
            timed.staging_gb_s = self.time_staging(settings, contestant)?;
            if round == 1 && !timing.ceiling.is_zero() {
                self.ask_the_device(index, contestant, timing.ceiling / 2)?;
            }
        }
        let row = &mut self.report.configurations[index];
        row.rounds.push(timed);
        row.latency.merge(&latencies);
        row.status = Status::Measured;
        let (samples_s, gb_s, of) = (timed.samples_s, timed.gb_s, timing.rounds);
        self.report_event(&Event::Timed { settings, round, of, samples_s, gb_s });
        Ok(())
    }

    /// The staging step alone. Where the device reads the source by itself there is none to time.
    fn time_staging(&self, settings: Settings, contestant: &mut Contestant<B>) -> Result<Option<f64>, VerifyError> {
        if settings.strategy.is_direct() || self.plan.timing.staging.is_zero() {
            return Ok(None);
        }
        match contestant.staging(self.plan.timing.staging, &|| self.observer.stop()) {
            Err(error) if !error.is_lost() => {
                let strategy = settings.strategy;
                log::warn!("{strategy}: the staging step could not be timed alone: {error}");
                Ok(None)
            }
            result => result,
        }
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
