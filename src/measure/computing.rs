//! The consumer of a comparison: made and calibrated before anything is timed, and timed alone between the rounds.

use std::time::Duration;

use super::busy::{Work, calibrate, time_alone, wake};
use super::comparison::{Comparison, Load, TimedWork};
use super::events::Event;
use super::outcome::VerifyError;
use super::report::Status;
use super::stats::Summary;
use crate::backend::Backend;
use crate::error::DeviceError;

/// How long work is looked for.
const CALIBRATION: Duration = Duration::from_secs(3);
/// How long a device's clock may take to rise.
const WAKING: Duration = Duration::from_millis(500);

impl<B: Backend> Comparison<'_, B> {
    /// Makes the consumer, if any configuration has one that computes, and finds out how much work takes how long. Where that fails those
    /// configurations have, and the others are compared.
    pub(super) fn prepare_consumer(&mut self) {
        let mut wanted: Vec<u32> = self.plan.settings.iter().map(|settings| settings.compute_us).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|&compute_us| compute_us > 0);
        if wanted.is_empty() {
            return;
        }
        match self.backend.consumer() {
            Ok(consumer) => self.load = Some(Load { consumer, works: Vec::new() }),
            Err(error) => return wanted.iter().for_each(|&compute_us| self.cannot_compute(compute_us, &error)),
        }
        for compute_us in wanted {
            if self.over() {
                return;
            }
            let Some(load) = &mut self.load else { return };
            match calibrate(&mut load.consumer, Duration::from_micros(compute_us.into()), CALIBRATION) {
                Ok(work) => {
                    load.works.push(TimedWork { compute_us, work, alone_s: vec![work.alone_s] });
                    self.report_event(&Event::Calibrated { compute_us, alone_us: 1e6 * work.alone_s });
                }
                Err(error) => self.cannot_compute(compute_us, &error),
            }
        }
        self.note_works();
    }

    fn cannot_compute(&mut self, compute_us: u32, error: &DeviceError) {
        for index in 0..self.plan.settings.len() {
            if self.plan.settings[index].compute_us == compute_us {
                self.failed(index, &VerifyError::Consumer(error.clone()));
            }
        }
    }

    /// Has the device work, where anything is measured beside work, until its clock is what it was when that was calibrated: whatever came
    /// first in a round would be measured on another device. A software device has no clock of its own.
    ///
    /// # Errors
    /// The device's error.
    pub(super) fn wake_device(&mut self) -> Result<(), VerifyError> {
        if self.backend.info().is_software() {
            return Ok(());
        }
        let Some(load) = &mut self.load else { return Ok(()) };
        let Some(&TimedWork { compute_us, work, .. }) = load.works.last() else { return Ok(()) };
        let wanted = Duration::from_micros(compute_us.into());
        let awake = wake(&mut load.consumer, work, wanted, WAKING).map_err(VerifyError::Consumer)?;
        if !awake {
            log::debug!("work that took {compute_us} us alone takes longer by now");
        }
        Ok(())
    }

    /// Times all work alone once more: clocks drift, and so what is ideal does.
    ///
    /// # Errors
    /// The device's error.
    pub(super) fn time_works(&mut self) -> Result<(), VerifyError> {
        self.wake_device()?;
        let Some(load) = &mut self.load else { return Ok(()) };
        for TimedWork { compute_us, work, alone_s } in &mut load.works {
            let about = Duration::from_micros((*compute_us).into());
            let timed = time_alone(&mut load.consumer, work.iterations, about);
            alone_s.push(timed.map_err(VerifyError::Consumer)?);
        }
        self.note_works();
        Ok(())
    }

    fn note_works(&mut self) {
        for row in &mut self.report.configurations {
            let of = |work: &&TimedWork| work.compute_us == row.settings.compute_us;
            let work = self.load.iter().flat_map(|load| &load.works).find(of);
            let alone = work.and_then(|work| Summary::of(&work.alone_s)).map(|summary| 1e6 * summary.median);
            row.compute_alone_us = alone.filter(|_| !matches!(row.status, Status::Failed { .. }));
        }
    }
}

impl<B: Backend> Load<B> {
    /// The work that is about this long; `None` where nobody computes.
    pub(super) fn work(&mut self, compute_us: u32) -> Option<(&mut B::Consumer, Work)> {
        let known = self.works.iter().find(|work| work.compute_us == compute_us)?;
        Some((&mut self.consumer, known.work))
    }
}
