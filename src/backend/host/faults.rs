//! Faults on request.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::moments::Moments;
use crate::error::DeviceError;

/// What a [`HostBackend`](super::HostBackend) should do wrong. Submissions are counted from zero over all its lanes. Made with update
/// syntax, `Faults { delay, ..Faults::default() }`, which later fields leave valid.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// How long each submission takes before the device reads the slot, however many are on their way.
    pub delay: Duration,
    /// How much longer the device takes to copy each batch; it copies one at a time.
    pub copy: Duration,
    /// How much longer its kernel takes for each batch; it runs one at a time, after the copy.
    pub kernel: Duration,
    /// This submission is refused; the device lives on.
    pub refuse_submission: Option<u64>,
    /// The device is lost at this submission.
    pub lose_at_submission: Option<u64>,
    /// When copies and kernels end.
    pub moments: Moments,
    /// Whether copies go through a queue of their own, beside the one that an application uses: a batch is delivered only when its copy
    /// has ended. No fault, and the part of a device with two queues.
    pub copies_beside: bool,
    /// Whether kernels do too: a batch is delivered only when all of its work has ended, and a tensor that was given back is idle, and
    /// may be submitted to, some looks later. No fault either.
    pub kernels_beside: bool,
}

/// Faults and what has become of them.
#[derive(Debug)]
pub(super) struct FaultState {
    faults: Faults,
    submissions: AtomicU64,
    lost: Mutex<Option<String>>,
}

impl FaultState {
    pub(super) fn new(faults: Faults) -> Self {
        Self { faults, submissions: AtomicU64::new(0), lost: Mutex::new(None) }
    }

    pub(super) fn delay(&self) -> Duration {
        self.faults.delay
    }

    /// How much longer copy and kernel take.
    pub(super) fn slowness(&self) -> (Duration, Duration) {
        (self.faults.copy, self.faults.kernel)
    }

    /// When copies and kernels end.
    pub(super) fn moments(&self) -> &Moments {
        &self.faults.moments
    }

    /// Whether copies have a queue of their own.
    pub(super) fn copies_beside(&self) -> bool {
        self.faults.copies_beside
    }

    /// Whether kernels have one too.
    pub(super) fn kernels_beside(&self) -> bool {
        self.faults.kernels_beside
    }

    pub(super) fn lose(&self, reason: &str) {
        let mut lost = self.lost.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        lost.get_or_insert_with(|| reason.to_owned());
    }

    /// Fails if the device is lost.
    pub(super) fn check(&self) -> Result<(), DeviceError> {
        let lost = self.lost.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match &*lost {
            Some(reason) => Err(DeviceError::Lost { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Counts a submission and returns its number, or fails if this is the one that should.
    pub(super) fn submission(&self) -> Result<u64, DeviceError> {
        self.check()?;
        let number = self.submissions.fetch_add(1, Ordering::Relaxed);
        if self.faults.lose_at_submission == Some(number) {
            self.lose("told to be lost");
            self.check()?;
        }
        if self.faults.refuse_submission == Some(number) {
            return Err(DeviceError::Refused { message: "told to refuse".into() });
        }
        Ok(number)
    }
}
