//! How epochs begin, follow each other and end.

use super::event::{BatchId, EpochPlan};
use super::{BatchState, GivenUp, Schedule};

/// Where the epoch under way stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EpochState {
    /// None is under way: none was started, or it was given up.
    Idle,
    /// Batches are still to be begun, from `next` on.
    Running { id: u64, next: u64, end: u64 },
    /// All its batches have begun, or it was wound down; what has begun is still delivered.
    Draining { id: u64, end: u64 },
    /// The device is lost, which ends every epoch. An epoch is told so once, in place of this batch.
    Lost { batch: u64, reported: bool },
}

impl EpochState {
    pub(super) fn of(EpochPlan { id, first, end }: EpochPlan) -> Self {
        if first < end { Self::Running { id, next: first, end } } else { Self::Draining { id, end } }
    }

    /// The batch to begin next.
    pub(super) fn next_batch(&self) -> Option<BatchId> {
        match *self {
            Self::Running { id, next, .. } => Some(BatchId { epoch: id, number: next }),
            _ => None,
        }
    }

    /// That batch begins.
    pub(super) fn advance(&mut self) -> Option<BatchId> {
        let batch = self.next_batch()?;
        if let Self::Running { id, end, .. } = *self {
            *self = Self::of(EpochPlan { id, first: batch.number + 1, end });
        }
        Some(batch)
    }

    pub(super) fn has_begun(&self) -> bool {
        matches!(self, Self::Draining { .. })
    }

    /// The batch in whose place the loss is to be reported, if it is to be.
    pub(super) fn take_loss(&mut self) -> Option<u64> {
        match self {
            Self::Lost { batch, reported } if !*reported => {
                *reported = true;
                Some(*batch)
            }
            _ => None,
        }
    }
}

impl Schedule {
    pub(super) fn start(&mut self, plan: EpochPlan) {
        self.give_up();
        self.epoch = match self.epoch {
            EpochState::Lost { .. } => EpochState::Lost { batch: plan.first, reported: false },
            _ => EpochState::of(plan),
        };
    }

    pub(super) fn follow(&mut self, plan: EpochPlan) {
        match self.epoch {
            EpochState::Running { .. } => self.following = Some(plan),
            EpochState::Draining { .. } => self.epoch = EpochState::of(plan),
            // What it was to follow was given up.
            EpochState::Idle | EpochState::Lost { .. } => {}
        }
    }

    pub(super) fn wind_down(&mut self) {
        self.following = None;
        if let EpochState::Running { id, next, .. } = self.epoch {
            self.epoch = EpochState::Draining { id, end: next };
        }
    }

    pub(super) fn stop(&mut self) {
        self.give_up();
        self.epoch = match self.epoch {
            EpochState::Lost { batch, .. } => EpochState::Lost { batch, reported: true },
            _ => EpochState::Idle,
        };
    }

    pub(super) fn lose(&mut self) {
        let submitting = self.submitting.and_then(|position| self.batches.get(position)).map(|batch| batch.id.number);
        let batch = submitting.unwrap_or_else(|| self.front());
        // What was being submitted has left its slot.
        self.leave();
        self.give_up();
        self.epoch = match self.epoch {
            lost @ EpochState::Lost { .. } => lost,
            // Nobody is there to be told.
            EpochState::Idle => EpochState::Lost { batch, reported: true },
            _ => EpochState::Lost { batch, reported: false },
        };
    }

    /// Nothing that has begun is wanted any more.
    fn give_up(&mut self) {
        self.following = None;
        self.submitting = None;
        for batch in self.batches.drain(..) {
            let state = if batch.state == BatchState::Filling { GivenUp::ToCancel } else { GivenUp::ToDiscard };
            self.given_up.extend(batch.slot.map(|slot| (slot, state)));
        }
    }

    /// The number of the oldest batch that has not left.
    pub(in crate::loader) fn front(&self) -> u64 {
        let next = match self.epoch {
            EpochState::Running { next, .. } => next,
            EpochState::Draining { end, .. } => end,
            EpochState::Lost { batch, .. } => batch,
            EpochState::Idle => 0,
        };
        self.batches.front().map_or(next, |batch| batch.id.number)
    }

    /// The epoch that batches are begun of, and the number of its last batch and one: fewer than planned once it was wound down.
    pub(in crate::loader) fn end(&self) -> Option<(u64, u64)> {
        match self.epoch {
            EpochState::Running { id, end, .. } | EpochState::Draining { id, end } => Some((id, end)),
            EpochState::Idle | EpochState::Lost { .. } => None,
        }
    }

    /// Whether every slot that was given up has come back.
    pub(in crate::loader) fn is_settled(&self) -> bool {
        self.batches.is_empty() && self.given_up.is_empty()
    }
}
