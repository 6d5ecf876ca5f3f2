//! The epochs that batches are delivered of: which samples are in them, and how many of those were bad.

use std::collections::VecDeque;

use super::super::bad::{BadRead, BadSample, BadSampleLimit};
use super::super::order::sampler::Sampler;
use super::super::schedule::{BatchId, EpochPlan};
use super::Begin;
use crate::error::LoadError;

/// The epoch that is delivered, and the one that follows while the last batches of the first are on their way.
pub(in crate::loader) struct Epochs {
    epochs: VecDeque<Begin>,
    limit: BadSampleLimit,
    /// The epoch that the limit counts.
    counted: Option<u64>,
}

/// There are never more: an epoch is asked for when the one before the last has been delivered.
const MAX_EPOCHS: usize = 2;

impl Epochs {
    pub(in crate::loader) fn new(limit: BadSampleLimit) -> Self {
        Self { epochs: VecDeque::with_capacity(MAX_EPOCHS), limit, counted: None }
    }

    /// An epoch in place of all others.
    pub(super) fn start(&mut self, epoch: Begin) -> EpochPlan {
        self.epochs.clear();
        self.follow(epoch)
    }

    /// An epoch after the others.
    pub(super) fn follow(&mut self, epoch: Begin) -> EpochPlan {
        if self.epochs.len() == MAX_EPOCHS {
            self.epochs.pop_front();
        }
        let plan = EpochPlan { id: epoch.id, first: epoch.first, end: epoch.sampler.batches() };
        self.epochs.push_back(epoch);
        plan
    }

    pub(super) fn sampler(&self, id: u64) -> Option<&Sampler> {
        self.epochs.iter().find(|epoch| epoch.id == id).map(|epoch| &epoch.sampler)
    }

    /// Counts a batch's bad samples; the error if they are too many.
    pub(super) fn settle(&mut self, batch: BatchId, bad: Vec<BadRead>) -> (Vec<BadSample>, Option<LoadError>) {
        let Some(epoch) = self.epochs.iter().find(|epoch| epoch.id == batch.epoch) else { return (Vec::new(), None) };
        let sampler = &epoch.sampler;
        if self.counted != Some(batch.epoch) {
            self.counted = Some(batch.epoch);
            self.limit.restart(sampler.samples(), sampler.samples_before(epoch.first), epoch.bad);
        }
        self.limit.take(sampler.epoch(), batch.number, sampler.batch_len(batch.number), bad)
    }
}
