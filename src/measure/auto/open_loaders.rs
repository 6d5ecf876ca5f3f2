//! Loaders that stay open between their slices, as far as there is memory for them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::candidate::Candidate;
use super::memory_budget::MemoryBudget;
use super::trial::{Slice, TrialContext};
use crate::backend::{AdapterInfo, Backend, Strategy};
use crate::error::{DeviceError, OpenError};
use crate::loader::Loader;
use crate::measure::outcome::VerifyError;

/// The very first loader runs for this long before it is measured: clocks rise and caches fill.
const FIRST_WARM_UP: Duration = Duration::from_millis(60);
/// Batches that take longer are slow: little can be tried.
const SLOW: Duration = Duration::from_millis(20);

pub(super) struct OpenLoaders<B: Backend> {
    context: TrialContext<B>,
    open: BTreeMap<Candidate, Loader<B>>,
    budget: MemoryBudget,
    /// Strategies that have run.
    warm: Vec<Strategy>,
    /// How long the last batches took, each.
    batch: Duration,
}

impl<B: Backend> OpenLoaders<B> {
    pub(super) fn new(context: TrialContext<B>, adapter: &AdapterInfo, budget: Option<u64>) -> Self {
        let budget = MemoryBudget::of(adapter, budget);
        Self { context, open: BTreeMap::new(), budget, warm: Vec::new(), batch: Duration::ZERO }
    }

    /// Whether nothing has run yet.
    pub(super) fn is_cold(&self) -> bool {
        self.warm.is_empty()
    }

    /// Whether batches take so long that nothing should be measured twice.
    pub(super) fn is_slow(&self) -> bool {
        self.batch > SLOW
    }

    /// Has a consumer compute behind each batch from now on.
    ///
    /// # Errors
    /// The device's error.
    pub(super) fn compute(&mut self, time: Duration, most: Duration) -> Result<(), DeviceError> {
        self.context.compute(time, most)
    }

    /// Has it compute a part of that.
    ///
    /// # Errors
    /// The device's error.
    pub(super) fn compute_part(&mut self, part: f64) -> Result<(), DeviceError> {
        self.context.compute_part(part)
    }

    /// One slice of a candidate, which stays open unless it fails.
    pub(super) fn slice(
        &mut self,
        candidate: Candidate,
        length: Duration,
        limit: Instant,
    ) -> Result<Option<Slice>, VerifyError> {
        let fresh = !self.open.contains_key(&candidate);
        let mut loader = self.take(candidate)?;
        let known = self.warm.contains(&candidate.0);
        // What the strategy has compiled is there then; memory that is new is little beside batches that are slow.
        if fresh && !(known && self.is_slow()) {
            let length = if self.is_cold() { FIRST_WARM_UP } else { Duration::ZERO };
            self.batch = self.context.warm_up(&mut loader, length, limit)?;
        }
        let measured = self.context.slice(&mut loader, length, self.is_slow(), limit)?;
        if !known {
            self.warm.push(candidate.0);
        }
        if let Some(slice) = measured {
            self.batch = slice.batch;
        }
        self.open.insert(candidate, loader);
        Ok(measured)
    }

    /// Reads a batch of a candidate back and compares it. False if none came in time.
    pub(super) fn check(&mut self, candidate: Candidate, limit: Instant) -> Result<bool, VerifyError> {
        let mut loader = self.take(candidate)?;
        self.context.check(&mut loader, limit)
    }

    /// Closes all but these.
    pub(super) fn keep(&mut self, keep: impl Fn(Candidate) -> bool) {
        self.open.retain(|&candidate, _| keep(candidate));
    }

    /// The candidate's loader, taken out; a new one if it is not open.
    fn take(&mut self, candidate: Candidate) -> Result<Loader<B>, OpenError> {
        if let Some(open) = self.open.remove(&candidate) {
            return Ok(open);
        }
        if !self.budget.has_one_more(self.open.values().map(Loader::footprint)) {
            self.open.clear();
        }
        match self.context.open(candidate) {
            // What is open beside it took the memory, perhaps.
            Err(error) if error.is_short_of_memory() && !self.open.is_empty() => {
                self.open.clear();
                self.context.open(candidate)
            }
            opened => opened,
        }
    }
}
