//! A comparison under way: what its parts (rounds, ceilings, the device's clock) share.

use std::sync::Arc;

use super::busy::Work;
use super::events::{Event, Observer};
use super::outcome::VerifyError;
use super::plan::Plan;
use super::report::{DeviceReport, DeviceStatus, Status};
use super::rounds::Contestant;
use crate::backend::Backend;
use crate::loader::Distribution;
use crate::source::Source;

pub(super) struct Comparison<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) source: Arc<dyn Source>,
    pub(super) plan: &'a Plan,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) report: DeviceReport,
    /// Those that were verified.
    pub(super) entrants: Vec<Entrant<B>>,
    /// What computes, where that is asked for.
    pub(super) load: Option<Load<B>>,
}

/// A loader that is timed, and its rows of the report: one for each way in which its batches are used.
pub(super) struct Entrant<B: Backend> {
    pub(super) rows: Vec<usize>,
    pub(super) contestant: Contestant<B>,
}

/// The consumer that computes, and how much work takes how long.
pub(super) struct Load<B: Backend> {
    pub(super) consumer: B::Consumer,
    pub(super) works: Vec<TimedWork>,
}

/// Work of a wanted length, timed alone again and again.
pub(super) struct TimedWork {
    pub(super) compute_us: u32,
    pub(super) work: Work,
    pub(super) alone_s: Vec<f64>,
}

impl<B: Backend> Comparison<'_, B> {
    /// Whether there is nothing more to be done.
    pub(super) fn over(&self) -> bool {
        self.observer.stop() || self.report.status != DeviceStatus::Ok
    }

    pub(super) fn report_event(&mut self, event: &Event) {
        self.observer.event(event, &self.report);
    }

    pub(super) fn failed(&mut self, index: usize, error: &VerifyError) {
        if matches!(error, VerifyError::Stopped) {
            return;
        }
        let message = error.to_string();
        let row = &mut self.report.configurations[index];
        // Rounds before it were right, but a configuration that once was wrong has no numbers.
        row.rounds.clear();
        row.latency = Distribution::default();
        row.compute_alone_us = None;
        row.status = Status::Failed { message: message.clone(), wrong_data: error.is_wrong_data() };
        if error.is_lost() {
            self.report.status = DeviceStatus::Error { message: message.clone() };
        }
        let settings = row.settings;
        self.report_event(&Event::Failed { settings, message });
    }
}
