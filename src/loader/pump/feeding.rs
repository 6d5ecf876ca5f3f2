//! The two ways in which a batch gets its bytes: workers fill a slot, or the device reads the source.

use std::time::{Duration, Instant};

use super::super::schedule::{BatchId, Event};
use super::epochs::Epochs;
use super::observer::Observer;
use super::prepared::{Lists, Prepared, Unsent};
use super::{Direct, Staged};
use crate::backend::{Lane, Wait};
use crate::error::{DeviceError, LoadError};

/// How batches get their bytes.
pub(in crate::loader) enum Feeding {
    Staged(Staged),
    Direct(Direct),
}

impl Feeding {
    /// Takes a slot and has it filled.
    ///
    /// # Errors
    /// [`DeviceError::Lost`]; any other error takes the batch's place.
    pub(super) fn begin<L: Lane>(
        &mut self,
        batch: BatchId,
        lane: &mut L,
        epochs: &Epochs,
        observer: &mut Observer,
    ) -> Result<Event, DeviceError> {
        let (Self::Staged(staged), Some(sampler)) = (self, epochs.sampler(batch.epoch)) else {
            return Ok(Event::NoSlot);
        };
        let start = observer.now();
        match lane.begin() {
            Ok(Some(fill)) => {
                let begun = observer.begun(start);
                let event = staged.begin(batch, fill, sampler, start, begun);
                observer.time_passes();
                Ok(event)
            }
            Ok(None) => Ok(Event::NoSlot),
            Err(error @ DeviceError::Lost { .. }) => Err(error),
            Err(error) => Ok(staged.refused(batch, error)),
        }
    }

    /// Makes a submission of a batch that is ready, and writes the lists that go with it.
    pub(super) fn prepare<L: Lane>(
        &mut self,
        batch: BatchId,
        slot: Option<usize>,
        lane: &mut L,
        epochs: &mut Epochs,
        observer: &mut Observer,
        lists: Lists<'_>,
    ) -> Result<Prepared<'_>, Box<Unsent>> {
        match (self, slot) {
            (Self::Staged(staged), Some(slot)) => staged.prepare(batch, slot, lane, epochs, observer.now(), lists),
            (Self::Direct(direct), _) => match epochs.sampler(batch.epoch) {
                Some(sampler) => direct.prepare(sampler, batch.number, observer, lists),
                None => Err(Unsent::stopped(format!("batch {} belongs to no epoch", batch.number))),
            },
            (Self::Staged(_), None) => Err(Unsent::stopped(format!("batch {} has no slot", batch.number))),
        }
    }

    /// Why a batch could not be begun.
    pub(super) fn take_failure(&mut self, batch: BatchId) -> LoadError {
        match self {
            Self::Staged(staged) => staged.take_failure(batch),
            Self::Direct(_) => LoadError::Stopped { reason: "there are no slots to take".to_owned() },
        }
    }

    /// Forgets what belongs to batches that are not wanted any more.
    pub(super) fn forget_failures(&mut self) {
        if let Self::Staged(staged) = self {
            staged.forget_failures();
        }
    }

    /// The last region of a slot has ended. False if it is filled again.
    pub(super) fn slot_ended(&mut self, slot: usize, now: Instant) -> bool {
        match self {
            Self::Staged(staged) => staged.slot_ended(slot, now),
            Self::Direct(_) => false,
        }
    }

    /// Asks the workers to give a slot up.
    pub(super) fn cancel(&self, slot: usize) {
        if let Self::Staged(staged) = self {
            staged.cancel(slot);
        }
    }

    /// Gives back a slot that has ended and is not wanted.
    pub(super) fn discard<L: Lane>(&mut self, slot: usize, lane: &mut L) {
        if let Self::Staged(staged) = self {
            staged.discard(slot, lane);
        }
    }

    /// What to wait for when the device alone can help.
    pub(super) fn wait(&self) -> Wait {
        match self {
            Self::Staged(_) => Wait::One,
            Self::Direct(direct) => direct.wait(),
        }
    }

    /// The device took this long to finish `batches` batches.
    pub(super) fn waited(&mut self, time: Duration, batches: usize) {
        if let Self::Direct(direct) = self {
            direct.waited(time, batches);
        }
    }
}
