//! A comparison under way: what its parts (rounds, ceilings, the device's clock) share.

use std::sync::Arc;

use super::events::{Event, Observer};
use super::outcome::VerifyError;
use super::plan::Plan;
use super::report::{DeviceReport, DeviceStatus, Status};
use super::rounds::Contestant;
use crate::backend::Backend;
use crate::source::Source;

pub(super) struct Comparison<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) source: Arc<dyn Source>,
    pub(super) plan: &'a Plan,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) report: DeviceReport,
    /// Those that were verified, with their indices in the report.
    pub(super) contestants: Vec<(usize, Contestant<B>)>,
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
        row.status = Status::Failed { message: message.clone(), wrong_data: error.is_wrong_data() };
        if error.is_lost() {
            self.report.status = DeviceStatus::Error { message: message.clone() };
        }
        let settings = row.settings;
        self.report_event(&Event::Failed { settings, message });
    }
}
