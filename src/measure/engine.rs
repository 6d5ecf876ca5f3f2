//! The comparison on one device: everything is verified first, then all configurations are timed in turn, round by round, with
//! the ceilings measured between.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cycled::Cycled;
use super::parallel_memcpy;
use super::plan::Plan;
use super::report::{Ceilings, Configuration, DeviceReport, DeviceStatus, Settings, Status};
use super::rounds::Contestant;
use super::verify::{Extent, Verified, VerifyError, verify};
use crate::any::AnyBackend;
use crate::backend::{AdapterInfo, Backend};
use crate::source::Source;

/// What happens during a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A configuration is being verified.
    Verifying {
        /// Which.
        settings: Settings,
    },
    /// A configuration delivers what it should.
    Verified {
        /// Which.
        settings: Settings,
        /// What was checked.
        verified: Verified,
    },
    /// The device cannot run a configuration.
    Unsupported {
        /// Which.
        settings: Settings,
        /// Why not.
        reason: String,
    },
    /// A configuration failed, and will have no numbers.
    Failed {
        /// Which.
        settings: Settings,
        /// What happened.
        message: String,
    },
    /// A configuration was timed once more.
    Timed {
        /// Which.
        settings: Settings,
        /// The round, from one.
        round: usize,
        /// How many there are at most.
        of: usize,
        /// Samples a second in this round.
        images_s: f64,
        /// Gigabytes a second in this round.
        gb_s: f64,
    },
}

/// Who follows a comparison.
pub trait Observer {
    /// Something happened; this is the report so far.
    fn event(&mut self, event: &Event, so_far: &DeviceReport);

    /// Whether to end: what was measured so far stays. Asked about once a batch.
    fn stop(&self) -> bool {
        false
    }
}

/// Follows nothing.
impl Observer for () {
    fn event(&mut self, _: &Event, _: &DeviceReport) {}
}

impl AnyBackend {
    /// Compares configurations on this device, as [`compare`].
    pub fn compare(&self, source: Arc<dyn Source>, plan: &Plan, observer: &mut dyn Observer) -> DeviceReport {
        match self {
            Self::Host(backend) => compare(backend, source, plan, observer),
            #[cfg(feature = "wgpu")]
            Self::Wgpu(backend) => compare(backend, source, plan, observer),
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

struct Comparison<'a, B: Backend> {
    backend: &'a B,
    source: Arc<dyn Source>,
    plan: &'a Plan,
    observer: &'a mut dyn Observer,
    report: DeviceReport,
    /// Those that were verified, with their places in the report.
    contestants: Vec<(usize, Contestant<B>)>,
}

impl<B: Backend> Comparison<'_, B> {
    /// Whether there is nothing more to be done.
    fn over(&self) -> bool {
        self.observer.stop() || self.report.status != DeviceStatus::Ok
    }

    fn tell(&mut self, event: &Event) {
        self.observer.event(event, &self.report);
    }

    fn verify_all(&mut self, batches: &[u64]) {
        let mut open = 0u64;
        for (place, (&settings, &batches)) in self.plan.settings.iter().zip(batches).enumerate() {
            if self.over() {
                return;
            }
            if let Err(unsupported) = self.backend.supports(settings.strategy) {
                let reason = unsupported.reason;
                self.report.configurations[place].status = Status::Unsupported { reason: reason.clone() };
                self.tell(&Event::Unsupported { settings, reason });
                continue;
            }
            self.tell(&Event::Verifying { settings });
            let options = settings.options(&self.plan.base);
            let extent = Extent { batches, time: self.plan.timing.verify };
            let stop = || self.observer.stop();
            let verified = verify(self.backend, &self.source, &options, extent, &stop);
            match verified {
                Ok((verified, footprint)) => {
                    let row = &mut self.report.configurations[place];
                    (row.verified, row.footprint) = (Some(verified), Some(footprint));
                    // The staging step has a loader of its own, with one slot and small tensors.
                    open = open.saturating_add(footprint.total()).saturating_add(footprint.total() / 2);
                    match Contestant::new(self.backend, &self.source, options) {
                        Ok(contestant) => self.contestants.push((place, contestant)),
                        Err(error) => self.failed(place, &error),
                    }
                    self.tell(&Event::Verified { settings, verified });
                }
                Err(error) => self.failed(place, &error),
            }
        }
        // All or none: what is opened anew for each round must not compete with what stays warm.
        let device = self.backend.info().memory.map_or(u64::MAX, |bytes| bytes / 4);
        let hold = open <= self.plan.hold_bytes.min(device);
        self.contestants.iter_mut().for_each(|(_, contestant)| contestant.hold(hold));
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
        timed.staging_gb_s = match contestant.staging(timing.staging, &stop) {
            Err(error) if !error.is_lost() => {
                log::warn!(
                    "{}: the staging step could not be timed alone: {error}",
                    self.plan.settings[place].strategy
                );
                None
            }
            result => result?,
        };
        let row = &mut self.report.configurations[place];
        row.rounds.push(timed);
        row.status = Status::Measured;
        let settings = row.settings;
        let (images_s, gb_s, of) = (timed.images_s, timed.gb_s, timing.rounds);
        self.tell(&Event::Timed { settings, round, of, images_s, gb_s });
        Ok(())
    }

    /// The host's ceiling once a round, as it drifts like everything else; the device's own copy once.
    fn measure_ceilings(&mut self, round: usize) {
        let time = self.plan.timing.ceiling;
        let sample = self.source.layout().byte_len();
        let sizes: Vec<Settings> = self.contestants.iter().map(|(place, _)| self.plan.settings[*place]).collect();
        for Settings { batch_size, workers, .. } in sizes {
            let bytes = sample.saturating_mul(batch_size);
            let known = |c: &Ceilings| (c.batch_size, c.workers) == (batch_size, workers);
            let place = match self.report.ceilings.iter().position(known) {
                Some(place) => place,
                None if self.over() => continue,
                None => {
                    let ceilings = self.new_ceilings(batch_size, workers, bytes, time);
                    self.report.ceilings.push(ceilings);
                    self.report.ceilings.len() - 1
                }
            };
            let samples = self.report.ceilings[place].host_memcpy_samples.len();
            if samples < round && samples < MOST_MEMCPY && !self.over() {
                let rate = parallel_memcpy(bytes, workers, time).map(|rate| rate / 1e9);
                self.report.ceilings[place].host_memcpy_samples.extend(rate);
            }
        }
    }

    fn new_ceilings(&self, batch_size: usize, workers: usize, bytes: usize, time: Duration) -> Ceilings {
        // The device's copy is the same for any number of workers.
        let same = self.report.ceilings.iter().find(|c| c.batch_size == batch_size);
        let (device_copy_gb_s, device_copy_error) = match same {
            Some(same) => (same.device_copy_gb_s, same.device_copy_error.clone()),
            None => match self.backend.copy_ceiling(bytes, time) {
                Ok(rate) if rate.is_finite() && rate > 0.0 => (Some(rate / 1e9), None),
                Ok(rate) => (None, Some(format!("measured as {rate}"))),
                Err(error) => (None, Some(error.to_string())),
            },
        };
        let host_memcpy_samples = Vec::new();
        Ceilings {
            batch_size,
            workers,
            host_memcpy_samples,
            host_memcpy_gb_s: None,
            device_copy_gb_s,
            device_copy_error,
        }
    }
}

/// Each measurement of the host's ceiling touches half a gigabyte first, so that there are no more than this.
const MOST_MEMCPY: usize = 5;

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
