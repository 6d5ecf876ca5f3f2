//! The consumer that trials are measured beside: given, or found out from how long its steps took.

use std::time::{Duration, Instant};

use super::infer::{compute_of, most};
use super::tuner::{Tuner, lock};
use super::wanted::Consumed;
use crate::backend::Backend;
use crate::error::{DeviceError, OpenError};
use crate::measure::outcome::VerifyError;

/// How long a trial is that looks for the consumer's compute.
const SLICE: Duration = Duration::from_millis(30);
/// What looking for it may take of the time there is.
const SHARE: f64 = 0.35;
/// What looking for work that is as long may take.
const CALIBRATION: f64 = 0.2;

impl<B: Backend> Tuner<B> {
    /// Has the consumer compute as told, or as what was seen of it says.
    pub(super) fn prepare(&mut self, consumer: Consumed) -> Result<(), OpenError> {
        match consumer {
            Consumed::Computing(time) => {
                self.loaders.compute(time, self.share(CALIBRATION))?;
                lock(&self.state).compute = time;
                Ok(())
            }
            Consumed::Stepping(seen_s) => self.find_out(seen_s).map_err(|error| match error {
                VerifyError::Open(error) => error,
                VerifyError::Consumer(error) => error.into(),
                other => DeviceError::Refused { message: other.to_string() }.into(),
            }),
        }
    }

    fn find_out(&mut self, seen_s: f64) -> Result<(), VerifyError> {
        let candidate = self.board(|board| (board.strategy, board.workers));
        let limit = self.start + self.share(SHARE);
        let Some(alone_s) = self.step(candidate, limit)? else {
            self.makes_no_difference();
            return Ok(());
        };
        // Work as long as all that is tried, of which parts are.
        let most_s = most(seen_s, alone_s);
        match self.loaders.compute(Duration::from_secs_f64(most_s), self.share(CALIBRATION)) {
            Err(error @ DeviceError::Refused { .. }) => {
                log::warn!("what its consumer does cannot be imitated, so the choice stays: {error}");
                self.makes_no_difference();
                return Ok(());
            }
            made => made.map_err(VerifyError::Consumer)?,
        }
        let mut failed = None;
        let found = compute_of(seen_s, alone_s, |compute| {
            let step = self.loaders.compute_part(compute / most_s).map_err(VerifyError::Consumer);
            let step = step.and_then(|()| self.step(candidate, limit));
            step.unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        if found == 0.0 {
            self.makes_no_difference();
            return Ok(());
        }
        lock(&self.state).compute = Duration::from_secs_f64(found);
        self.loaders.compute_part(found / most_s).map_err(VerifyError::Consumer)
    }

    fn share(&self, of_all: f64) -> Duration {
        (self.deadline - self.start).mul_f64(of_all)
    }

    fn makes_no_difference(&self) {
        lock(&self.state).idle = true;
    }

    /// Seconds of a step of a candidate; `None` if too few batches came in time.
    fn step(&mut self, candidate: (crate::Strategy, usize), limit: Instant) -> Result<Option<f64>, VerifyError> {
        let slice = self.loaders.slice(candidate, SLICE, limit)?;
        lock(&self.state).opened = true;
        Ok(slice.map(|slice| slice.batch.as_secs_f64()))
    }
}
