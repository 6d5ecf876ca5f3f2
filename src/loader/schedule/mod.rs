//! What the loader does next: a state machine that knows no threads, clocks, memory or channels.
//!
//! The [pump](super::pump) reports what has happened as an [`Event`] and gets the next [`Action`]. It performs that and reports how it
//! went, until there is no action: then [`lack`](Schedule::lack) says what has to happen first.
//!
//! # The way of a batch
//!
//! ```text
//!        Begin             SlotEnded          Submit              Polled
//! epoch ------> [Filling] ----------> [Ready] ------> in flight ---------> finished
//!                   |                    |
//!                   +---- given up ------+--> Cancel, Discard
//! ```
//!
//! Batches begin in order. They are submitted in order, or as they get ready, but never before those of an earlier epoch. Where the
//! device reads the source by itself there is nothing to fill: a batch is ready as soon as it begins.

mod epoch;
mod event;
#[cfg(test)]
mod explore;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use epoch::EpochState;
pub(super) use event::{Action, BatchId, EpochPlan, Event, Lack, Shape};

/// A batch between `Begin` and `Submit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Batch {
    id: BatchId,
    slot: Option<usize>,
    state: BatchState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BatchState {
    Filling,
    Ready,
    /// It could not be begun.
    Failed,
}

/// What becomes of a slot whose batch was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GivenUp {
    ToCancel,
    Ending,
    ToDiscard,
}

/// Every state of slots, outputs and epochs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Schedule {
    shape: Shape,
    epoch: EpochState,
    /// Begins when the epoch under way has begun its last batch.
    following: Option<EpochPlan>,
    /// Begun and not yet submitted, in the order in which they began.
    batches: VecDeque<Batch>,
    /// Slots of batches that are not wanted any more.
    given_up: VecDeque<(usize, GivenUp)>,
    /// The position of the batch that is being submitted.
    submitting: Option<usize>,
    in_flight: usize,
    /// No slot was free when one was last asked for.
    lacks_slot: bool,
    /// No output was free when one was last asked for.
    lacks_output: bool,
}

impl Schedule {
    pub(super) fn new(shape: Shape) -> Self {
        let entries = match shape {
            Shape::Staged { slots, .. } => slots,
            Shape::Direct { .. } => 1,
        };
        Self {
            shape,
            epoch: EpochState::Idle,
            following: None,
            batches: VecDeque::with_capacity(entries),
            given_up: VecDeque::with_capacity(entries),
            submitting: None,
            in_flight: 0,
            lacks_slot: false,
            lacks_output: false,
        }
    }

    /// Takes an event in, and says what is to be done now; `None` if nothing is before another event.
    pub(super) fn on(&mut self, event: Event) -> Option<Action> {
        match event {
            Event::Start(plan) => self.start(plan),
            Event::Follow(plan) => self.follow(plan),
            Event::WindDown => self.wind_down(),
            Event::Stop => self.stop(),
            Event::SlotEnded { slot } => self.slot_ended(slot),
            Event::OutputReturned => self.lacks_output = false,
            Event::Polled { in_flight } => {
                self.in_flight = in_flight;
                self.lacks_slot = false;
            }
            Event::Lost => self.lose(),
            Event::Begun { slot } => self.begun(Some(slot), BatchState::Filling),
            Event::BeginFailed => self.begun(None, BatchState::Failed),
            Event::NoSlot => self.lacks_slot = true,
            Event::Submitted => {
                self.leave();
                self.in_flight += 1;
            }
            Event::NoOutput => {
                self.submitting = None;
                self.lacks_output = true;
            }
            Event::Unsent => self.leave(),
            Event::EpochFailed => {
                self.leave();
                self.stop();
            }
            Event::Done => {}
        }
        self.next_action()
    }

    fn next_action(&mut self) -> Option<Action> {
        if let Some(action) = self.next_given_up() {
            return Some(action);
        }
        if let Some(batch) = self.epoch.take_loss() {
            return Some(Action::ReportLoss { batch });
        }
        self.next_to_submit().or_else(|| self.next_to_begin())
    }

    fn next_given_up(&mut self) -> Option<Action> {
        let position = self.given_up.iter().position(|(_, state)| *state != GivenUp::Ending)?;
        let (slot, state) = self.given_up[position];
        if state == GivenUp::ToCancel {
            self.given_up[position].1 = GivenUp::Ending;
            return Some(Action::Cancel { slot });
        }
        self.given_up.remove(position);
        self.lacks_slot = false;
        Some(Action::Discard { slot })
    }

    fn next_to_submit(&mut self) -> Option<Action> {
        if self.lacks_output {
            return None;
        }
        let position = self.ready_position()?;
        self.submitting = Some(position);
        let Batch { id, slot, state } = self.batches[position];
        Some(if state == BatchState::Failed { Action::Fail(id) } else { Action::Submit { batch: id, slot } })
    }

    fn next_to_begin(&mut self) -> Option<Action> {
        let batch = self.epoch.next_batch()?;
        match self.shape {
            Shape::Staged { slots, .. } => {
                let room = self.batches.len() + self.given_up.len() < slots;
                (room && !self.lacks_slot).then_some(Action::Begin(batch))
            }
            Shape::Direct { depth } => {
                if !self.batches.is_empty() || self.in_flight >= depth {
                    return None;
                }
                self.begun(None, BatchState::Ready);
                self.next_to_submit()
            }
        }
    }

    /// The position of the batch whose turn it is, if it is ready.
    fn ready_position(&self) -> Option<usize> {
        let front = self.batches.front()?;
        let any = matches!(self.shape, Shape::Staged { unordered: true, .. });
        let mut turn = self.batches.iter().take_while(|batch| any && batch.id.epoch == front.id.epoch);
        match turn.position(|batch| batch.state != BatchState::Filling) {
            Some(position) => Some(position),
            None => (front.state != BatchState::Filling).then_some(0),
        }
    }

    /// The batch to be begun has begun, or could not be.
    fn begun(&mut self, slot: Option<usize>, state: BatchState) {
        let Some(id) = self.epoch.advance() else { return };
        self.batches.push_back(Batch { id, slot, state });
        if self.epoch.has_begun()
            && let Some(plan) = self.following.take()
        {
            self.epoch = EpochState::of(plan);
        }
    }

    fn slot_ended(&mut self, slot: usize) {
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.slot == Some(slot)) {
            batch.state = BatchState::Ready;
        } else if let Some((_, state)) = self.given_up.iter_mut().find(|(given_up, _)| *given_up == slot) {
            *state = GivenUp::ToDiscard;
        }
    }

    /// The batch that was being submitted has left.
    fn leave(&mut self) {
        if let Some(position) = self.submitting.take() {
            self.batches.remove(position);
        }
        // Its slot may be free already.
        self.lacks_slot = false;
    }

    /// Whether a batch could be begun if there were a slot.
    pub(super) fn lacks_slot(&self) -> bool {
        self.epoch.next_batch().is_some()
            && match self.shape {
                Shape::Staged { .. } => self.lacks_slot,
                Shape::Direct { depth } => self.in_flight >= depth,
            }
    }

    /// What has to happen before there is anything to do, once there is no action.
    pub(super) fn lack(&self) -> Lack {
        if self.ready_position().is_some() {
            return Lack::Output;
        }
        match (self.filling() > 0, self.in_flight > 0) {
            (true, true) => Lack::Either,
            (true, false) => Lack::Fill,
            (false, true) if self.epoch.next_batch().is_some() => Lack::Device,
            (false, true) => Lack::Drain,
            (false, false) => Lack::Epoch,
        }
    }

    /// Slots that are being filled, wanted or not.
    pub(super) fn filling(&self) -> usize {
        self.batches.iter().filter(|batch| batch.state == BatchState::Filling).count() + self.given_up.len()
    }

    /// Submissions that have not finished.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }
}
