//! Loaders that stay open between their slices, as far as there is memory for them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::trial::{Ground, Slice};
use crate::backend::{AdapterInfo, Backend, DeviceType, Footprint, Strategy};
use crate::error::OpenError;
use crate::loader::Loader;
use crate::measure::available_memory;
use crate::measure::verify::VerifyError;

/// The very first loader runs for this long before it is measured: clocks rise and caches fill.
const FIRST_WARM_UP: Duration = Duration::from_millis(60);
/// Batches that take longer are slow: little can be tried.
const SLOW: Duration = Duration::from_millis(20);

/// A strategy with a number of workers.
pub(super) type Candidate = (Strategy, usize);

pub(super) struct Held<B: Backend> {
    ground: Ground<B>,
    open: BTreeMap<Candidate, Loader<B>>,
    room: Room,
    /// Strategies that have run.
    warm: Vec<Strategy>,
    /// How long the last batches took, each.
    batch: Duration,
}

impl<B: Backend> Held<B> {
    pub(super) fn new(ground: Ground<B>, adapter: &AdapterInfo, budget: Option<u64>) -> Self {
        let room = Room::of(adapter, budget);
        Self { ground, open: BTreeMap::new(), room, warm: Vec::new(), batch: Duration::ZERO }
    }

    /// Whether nothing has run yet.
    pub(super) fn is_cold(&self) -> bool {
        self.warm.is_empty()
    }

    /// Whether batches take so long that nothing should be measured twice.
    pub(super) fn is_slow(&self) -> bool {
        self.batch > SLOW
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
            self.batch = self.ground.warm_up(&mut loader, length, limit)?;
        }
        let measured = self.ground.slice(&mut loader, length, self.is_slow(), limit)?;
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
        self.ground.check(&mut loader, limit)
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
        if !self.room.has_one_more(self.open.values().map(Loader::footprint)) {
            self.open.clear();
        }
        match self.ground.open(candidate) {
            // What is open beside it took the memory, perhaps.
            Err(error) if error.is_short_of_memory() && !self.open.is_empty() => {
                self.open.clear();
                self.ground.open(candidate)
            }
            opened => opened,
        }
    }
}

/// The memory that open loaders may take together, in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    host: u64,
    /// `None` where the device's memory is the host's.
    device: Option<u64>,
    all: u64,
}

impl Room {
    /// An eighth of the memory there is, a quarter of the device's, and the caller's own bound.
    fn of(adapter: &AdapterInfo, budget: Option<u64>) -> Self {
        let host = available_memory().map_or(256 << 20, |bytes| (bytes / 8).min(2 << 30));
        let own = adapter.device_type == DeviceType::Discrete;
        let device = own.then(|| adapter.memory.map_or(host, |bytes| bytes / 4));
        Self { host, device, all: budget.unwrap_or(u64::MAX) }
    }

    /// Whether another loader fits beside these: those of one batch layout are about as large.
    fn has_one_more(&self, open: impl Iterator<Item = Footprint>) -> bool {
        let (mut host, mut device, mut loaders) = (0u64, 0u64, 0u64);
        for Footprint { staging, device: scratch, outputs } in open {
            host = host.saturating_add(staging);
            device = device.saturating_add(scratch).saturating_add(outputs);
            loaders += 1;
        }
        let one_more = |bytes: u64| bytes.saturating_add(bytes / loaders.max(1));
        let (host, device) = (one_more(host), one_more(device));
        let all = host.saturating_add(device);
        let fits = match self.device {
            Some(most) => host <= self.host && device <= most,
            None => all <= self.host,
        };
        fits && all <= self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_stay_open_as_far_as_there_is_memory_where_theirs_lies() {
        let loader = Footprint { staging: 10, device: 20, outputs: 80 };
        let fits = |room: Room, open: usize| room.has_one_more(std::iter::repeat_n(loader, open));
        let card = Room { host: 30, device: Some(1000), all: u64::MAX };
        assert_eq!([0, 2, 3].map(|open| fits(card, open)), [true, true, false], "staging is the host's");
        let shared = Room { host: 330, device: None, all: u64::MAX };
        assert_eq!([2, 3].map(|open| fits(shared, open)), [true, false]);
        assert_eq!([1, 2].map(|open| fits(Room { all: 220, ..card }, open)), [true, false], "the caller's bound");
    }
}
