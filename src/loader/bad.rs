//! Samples that could not be read: what took their places, and who counts them.

use std::sync::{Mutex, MutexGuard};

use serde::Serialize;

use super::order::permutation::mix;
use super::order::subset::Subset;
use super::tolerance::BadSamples;
use crate::error::{LoadError, SourceError};

/// A sample that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BadSample {
    /// The epoch.
    pub epoch: u64,
    /// The batch it belonged to.
    pub batch: u64,
    /// Its index in the source.
    pub index: u64,
    /// The sample that took its place; `None` if there is none.
    pub substitute: Option<u64>,
    /// Whether its batch is lost with it, since nothing that was tried in its place could be read.
    pub batch_lost: bool,
    /// The error, with its causes.
    pub cause: String,
}

/// Samples that were left out or replaced, of the batches delivered since the loader was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BadSampleReport {
    /// How many were left out.
    pub skipped: u64,
    /// How many others took their place.
    pub substituted: u64,
    /// How many could not be replaced, so that their batches were lost.
    pub unreplaced: u64,
    /// The first of them, in the order of delivery; no more than [`LISTED`](Self::LISTED).
    pub listed: Vec<BadSample>,
}

impl BadSampleReport {
    /// So many are listed; all are counted.
    pub const LISTED: usize = 1000;
}

/// Which samples take the places of bad ones.
#[derive(Clone, Debug)]
pub(super) struct Substitutes {
    seed: u64,
    len: u64,
    subset: Option<Subset>,
}

impl Substitutes {
    /// Of a source of `source` samples, or of a subset of it.
    pub(super) fn new(seed: u64, source: u64, subset: Option<Subset>) -> Self {
        Self { seed, len: subset.as_ref().map_or(source, Subset::len), subset }
    }

    /// The samples to try in the place of `index`, one after the other.
    pub(super) fn of(&self, index: u64) -> impl Iterator<Item = u64> + '_ {
        (0..BadSamples::TRIES).map(move |attempt| {
            let place = mix(mix(self.seed ^ 0x5EED).wrapping_add(mix(index)) ^ u64::from(attempt)) % self.len;
            self.subset.as_ref().map_or(place, |subset| subset.at(place))
        })
    }
}

/// A bad sample on its way from a worker to the pump.
#[derive(Debug)]
pub(super) struct BadRead {
    pub(super) position: usize,
    pub(super) index: u64,
    pub(super) substitute: Option<u64>,
    /// Whether its batch is lost with it.
    pub(super) lost: bool,
    pub(super) cause: SourceError,
}

/// Counts and lists bad samples as they are delivered.
#[derive(Debug, Default)]
pub(super) struct BadSampleLog(Mutex<BadSampleReport>);

impl BadSampleLog {
    pub(super) fn report(&self) -> BadSampleReport {
        self.lock().clone()
    }

    /// How many were left out, and how many replaced.
    pub(super) fn counts(&self) -> (u64, u64) {
        let report = self.lock();
        (report.skipped, report.substituted)
    }

    pub(super) fn add(&self, bad: BadSample) {
        log::warn!("sample {} (epoch {}, batch {}) could not be read: {}", bad.index, bad.epoch, bad.batch, bad.cause);
        let mut report = self.lock();
        match (bad.batch_lost, bad.substitute) {
            (true, _) => report.unreplaced += 1,
            (false, Some(_)) => report.substituted += 1,
            (false, None) => report.skipped += 1,
        }
        if report.listed.len() < BadSampleReport::LISTED {
            report.listed.push(bad);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BadSampleReport> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The bad samples of the epoch under way, against what is allowed.
#[derive(Debug)]
pub(super) struct BadSampleLimit {
    policy: BadSamples,
    samples: u64,
    seen: u64,
    bad: u64,
}

impl BadSampleLimit {
    pub(super) fn new(policy: BadSamples) -> Self {
        Self { policy, samples: 0, seen: 0, bad: 0 }
    }

    /// Another epoch, of `samples` samples, or the rest of one of which `seen` were asked for before and `bad` could not be read.
    pub(super) fn restart(&mut self, samples: u64, seen: u64, bad: u64) {
        (self.samples, self.seen, self.bad) = (samples, seen, bad);
    }

    /// Takes the bad samples of a batch of `asked` samples, in their order, and tells whether they are too many.
    pub(super) fn take(
        &mut self,
        epoch: u64,
        batch: u64,
        asked: usize,
        noted: Vec<BadRead>,
    ) -> (Vec<BadSample>, Option<LoadError>) {
        self.seen += asked as u64;
        let tolerance = self.policy.tolerance();
        let (most, seen) = (tolerance.most(self.samples), self.seen);
        let mut taken = Vec::with_capacity(noted.len());
        for BadRead { index, substitute, lost, cause, .. } in noted {
            self.bad += 1;
            let text = chain(&*cause);
            taken.push(BadSample { epoch, batch, index, substitute, batch_lost: lost, cause: text });
            if self.bad > most {
                let (bad, limit, source) = (self.bad, tolerance.in_words(most), cause);
                return (taken, Some(LoadError::TooManyBadSamples { bad, seen, limit, index, batch, source }));
            }
        }
        (taken, None)
    }
}

/// An error with its causes, in one line. Many messages hold their cause's already: it is told once.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |error| error.source()).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// A sample could not be read, and neither could others in its place.
#[derive(Debug, thiserror::Error)]
#[error("{cause}; nor could any of the {tried} samples that were tried in its place as substitutes")]
pub(super) struct NoSubstitute {
    pub(super) cause: SourceError,
    pub(super) tried: usize,
}
