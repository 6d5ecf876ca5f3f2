//! The comparison on one device: everything is verified first, then all configurations are timed in turn, round by round, with
//! the ceilings measured between.

use std::sync::Arc;
use std::time::Instant;

use super::cycled::Cycled;
use super::events::{Event, Observer};
use super::plan::Plan;
use super::report::{Configuration, DeviceReport, DeviceStatus, Settings, Status};
use super::rounds::Contestant;
use super::verify::{Extent, VerifyError, verify};
use crate::any::AnyBackend;
use crate::backend::{AdapterInfo, Backend};
use crate::source::Source;

impl AnyBackend {
    /// Compares configurations on this device, as [`compare`].
    pub fn compare(&self, source: Arc<dyn Source>, plan: &Plan, observer: &mut dyn Observer) -> DeviceReport {
        match self {
            Self::Host(backend) => compare(backend, source, plan, observer),
            #[cfg(feature = "wgpu")]
            Self::Wgpu(backend) => compare(backend, source, plan, observer),
            #[cfg(feature = "cuda")]
            Self::Cuda(backend) => compare(backend, source, plan, observer),
        }
    }
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
            seconds: 0.0,
        }
    }
}

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

pub(super) struct Comparison<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) source: Arc<dyn Source>,
    pub(super) plan: &'a Plan,
    observer: &'a mut dyn Observer,
    pub(super) report: DeviceReport,
    /// Those that were verified, with their places in the report.
    pub(super) contestants: Vec<(usize, Contestant<B>)>,
}

impl<B: Backend> Comparison<'_, B> {
    /// Whether there is nothing more to be done.
    pub(super) fn over(&self) -> bool {
        self.observer.stop() || self.report.status != DeviceStatus::Ok
    }

    pub(super) fn stops(&self) -> bool {
        self.observer.stop()
    }

    fn tell(&mut self, event: &Event) {
        self.observer.event(event, &self.report);
    }

    fn verify_all(&mut self, batches: &[u64]) {
        let mut open = 0u64;
        for (place, &batches) in batches.iter().enumerate() {
            if self.over() {
                return;
            }
            let settings = self.plan.settings[place];
            if let Err(unsupported) = self.backend.supports(settings.strategy) {
                let reason = unsupported.reason;
                self.report.configurations[place].status = Status::Unsupported { reason: reason.clone() };
                self.tell(&Event::Unsupported { settings, reason });
                continue;
            }
            match self.verify_one(place, settings, batches) {
                // The staging step has a loader of its own, with one slot and small tensors.
                Ok(bytes) => open = open.saturating_add(bytes).saturating_add(bytes / 2),
                Err(error) => self.failed(place, &error),
            }
        }
        // All or none: what is opened anew for each round must not compete with what stays warm.
        let device = self.backend.info().memory.map_or(u64::MAX, |bytes| bytes / 4);
        let hold = open <= self.plan.hold_bytes.min(device);
        self.contestants.iter_mut().for_each(|(_, contestant)| contestant.hold(hold));
    }

    /// Verifies one configuration, which then may be timed; tells the bytes that its loader takes.
    fn verify_one(&mut self, place: usize, settings: Settings, batches: u64) -> Result<u64, VerifyError> {
        self.tell(&Event::Verifying { settings });
        let options = settings.options(&self.plan.base);
        let extent = Extent { batches, time: self.plan.timing.verify };
        let (verified, footprint) = verify(self.backend, &self.source, &options, extent, &|| self.observer.stop())?;
        self.contestants.push((place, Contestant::new(self.backend, &self.source, options)?));
        let row = &mut self.report.configurations[place];
        (row.verified, row.footprint) = (Some(verified), Some(footprint));
        self.tell(&Event::Verified { settings, verified });
        Ok(footprint.total())
    }

    fn failed(&mut self, place: usize, error: &VerifyError) {
        if matches!(error, VerifyError::Stopped) {
            return;
        }
        let message = error.to_string();
        let row = &mut self.report.configurations[place];
        // Rounds before it were right, but a configuration that once was wrong has no numbers.
        row.rounds.clear();
        row.status = Status::Failed { message: message.clone(), wrong_data: error.is_wrong_data() };
        if error.is_lost() {
            self.report.status = DeviceStatus::Error { message: message.clone() };
        }
        let settings = row.settings;
        self.tell(&Event::Failed { settings, message });
    }

    fn time_all(&mut self, started: Instant) {
        let timing = self.plan.timing;
        let mut rounds = 0;
        while !self.over() && !self.contestants.is_empty() && timing.goes_on(rounds, started.elapsed()) {
            rounds += 1;
            for (place, mut contestant) in std::mem::take(&mut self.contestants) {
                if self.over() {
                    self.contestants.push((place, contestant));
                    continue;
                }
                match self.time_one(place, &mut contestant, rounds) {
                    Ok(()) => self.contestants.push((place, contestant)),
                    Err(error) => self.failed(place, &error),
                }
            }
            self.measure_ceilings(rounds);
            self.report.summarise();
        }
    }

    fn time_one(&mut self, place: usize, contestant: &mut Contestant<B>, round: usize) -> Result<(), VerifyError> {
        let timing = self.plan.timing;
        let stop = || self.observer.stop();
        let Some(mut timed) = contestant.round(timing.slice, &stop)? else { return Ok(()) };
        // Where the device reads the source by itself there is no staging to time.
        let staged = !self.plan.settings[place].strategy.is_direct();
        let staging = if staged { contestant.staging(timing.staging, &stop) } else { Ok(None) };
        timed.staging_gb_s = match staging {
            Err(error) if !error.is_lost() => {
                log::warn!(
                    "{}: the staging step could not be timed alone: {error}",
                    self.plan.settings[place].strategy
                );
                None
            }
            result => result?,
        };
        if round == 1 {
            self.ask_the_device(place, contestant, timing.ceiling / 2)?;
        }
        let row = &mut self.report.configurations[place];
        row.rounds.push(timed);
        row.status = Status::Measured;
        let settings = row.settings;
        let (images_s, gb_s, of) = (timed.images_s, timed.gb_s, timing.rounds);
        self.tell(&Event::Timed { settings, round, of, images_s, gb_s });
        Ok(())
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
