//! Going on where an epoch was left: a token of constant size, since the order of an epoch is computed.

use serde::{Deserialize, Serialize};

use super::options::{LastBatch, LoaderOptions};
use super::subset::Subset;
use crate::source::Source;

/// A place in the ordered delivery of a loader's batches, and what fixed them. A few hundred bytes as JSON, whatever the size of the source.
///
/// It stands for the batches that `next` has not answered yet: what was taken and not yet used is the holder's. Made by
/// [`Epoch::resume_token`](super::Epoch::resume_token), used by [`Loader::resume`](super::Loader::resume), on any backend, with any
/// strategy, and any number of workers, slots and outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeToken {
    version: u32,
    epoch: u64,
    batch: u64,
    fixed: Fixed,
}

/// What fixes the batches of every epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixed {
    source_samples: u64,
    sample: String,
    /// The number of samples, and a hash of their indices.
    subset: Option<(u64, u64)>,
    batch_size: u64,
    last_batch: LastBatch,
    seed: Option<u64>,
    rank: u64,
    world: u64,
    bad_samples: String,
}

/// Why a token cannot be used with a loader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The token's batches are not this loader's.
    #[error("cannot resume: {field} was {then} and is {now}")]
    Changed {
        /// What differs: an option, or a property of the source.
        field: &'static str,
        /// As it was when the token was made.
        then: String,
        /// As it is.
        now: String,
    },
    /// The token is of another version of gpufeed.
    #[error("cannot resume: the token has version {found}, and this is {expected}")]
    Version {
        /// The token's.
        found: u32,
        /// This crate's.
        expected: u32,
    },
    /// The token's place does not exist.
    #[error("cannot resume: batch {batch} is beyond the epoch's {batches}")]
    Beyond {
        /// The batch to go on with.
        batch: u64,
        /// The batches of an epoch.
        batches: u64,
    },
    /// Without an order there is no place in it.
    #[error("cannot resume: delivery is not `ordered`")]
    Unordered,
}

impl ResumeToken {
    const VERSION: u32 = 1;

    /// The place before batch `batch` of epoch `epoch`, which has `batches`; its end is the next epoch's beginning.
    pub(super) fn new(source: &dyn Source, options: &LoaderOptions, epoch: u64, batch: u64, batches: u64) -> Self {
        let (epoch, batch) = if batch < batches { (epoch, batch) } else { (epoch.wrapping_add(1), 0) };
        Self { version: Self::VERSION, epoch, batch, fixed: Fixed::of(source, options) }
    }

    /// The epoch to go on with.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The first batch of it that is still to come.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// Whether it stands between two epochs. There the next may be shared among another number of ranks.
    #[must_use]
    pub fn is_between_epochs(&self) -> bool {
        self.batch == 0
    }

    /// Checks it against a loader.
    pub(super) fn check(&self, source: &dyn Source, options: &LoaderOptions, batches: u64) -> Result<(), ResumeError> {
        if self.version != Self::VERSION {
            return Err(ResumeError::Version { found: self.version, expected: Self::VERSION });
        }
        if !options.ordered {
            return Err(ResumeError::Unordered);
        }
        let now = Fixed::of(source, options);
        self.fixed.same(&now, self.is_between_epochs())?;
        if self.batch >= batches.max(1) {
            return Err(ResumeError::Beyond { batch: self.batch, batches });
        }
        Ok(())
    }
}

impl Fixed {
    fn of(source: &dyn Source, options: &LoaderOptions) -> Self {
        let &LoaderOptions { batch_size, last_batch, seed, rank, world, ref subset, bad_samples, .. } = options;
        Self {
            source_samples: source.len(),
            sample: source.layout().to_string(),
            subset: subset.as_ref().map(|subset: &Subset| (subset.len(), subset.hash())),
            batch_size: batch_size as u64,
            last_batch,
            seed,
            rank,
            world,
            bad_samples: bad_samples.key().to_owned(),
        }
    }

    /// Names the first field that differs. Between epochs the share may.
    fn same(&self, now: &Self, other_share: bool) -> Result<(), ResumeError> {
        fn same<T: PartialEq + std::fmt::Debug>(field: &'static str, then: &T, now: &T) -> Result<(), ResumeError> {
            let changed = || ResumeError::Changed { field, then: format!("{then:?}"), now: format!("{now:?}") };
            if then == now { Ok(()) } else { Err(changed()) }
        }
        same("the source's number of samples", &self.source_samples, &now.source_samples)?;
        same("the source's samples", &self.sample, &now.sample)?;
        same("subset", &self.subset, &now.subset)?;
        same("batch_size", &self.batch_size, &now.batch_size)?;
        same("last_batch", &self.last_batch, &now.last_batch)?;
        same("seed", &self.seed, &now.seed)?;
        if !other_share {
            same("rank", &self.rank, &now.rank)?;
            same("world", &self.world, &now.world)?;
        }
        same("bad_samples", &self.bad_samples, &now.bad_samples)
    }
}
