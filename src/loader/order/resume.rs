//! Going on where an epoch was left: a token of constant size, since the order of an epoch is computed.

use serde::{Deserialize, Serialize};

use super::super::options::{LastBatch, LoaderOptions};
use super::subset::Subset;
use crate::layout::SampleLayout;
use crate::source::Source;

/// A place in the ordered delivery of a loader's batches, and what fixed which samples are in them. A few hundred bytes as JSON, whatever the size of the source.
///
/// It stands for the batches that `next` has not answered yet: what was taken and not yet used is the holder's. Made by
/// [`Epoch::resume_token`](super::super::Epoch::resume_token), used by [`Loader::resume`](super::super::Loader::resume), on any backend, with any
/// strategy, and any number of workers, slots and outputs. Of the source its number of samples, their layout and its
/// [digest](crate::Source::digest) are compared: a copy of the data is the same data. What the device makes of it is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeToken {
    version: u32,
    epoch: u64,
    batch: u64,
    /// Bad samples of this epoch so far.
    bad: u64,
    fixed: Fixed,
    /// The source's digest, in hexadecimal digits.
    data: Option<String>,
    /// What decoded the samples: another decoder makes other bytes of the same files.
    decoder: Option<String>,
}

/// What fixes the batches of every epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Whether bad samples are replaced.
    substitutes: bool,
}

/// How far delivery has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::loader) struct EpochPosition {
    pub(in crate::loader) epoch: u64,
    /// The first batch that is still to come.
    pub(in crate::loader) batch: u64,
    /// Bad samples in the batches before it.
    pub(in crate::loader) bad: u64,
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
    const VERSION: u32 = 2;

    /// The place before batch `batch` of epoch `epoch`, which has `batches`; its end is the next epoch's beginning.
    pub(in crate::loader) fn new(
        source: (u64, &SampleLayout),
        options: &LoaderOptions,
        at: EpochPosition,
        batches: u64,
    ) -> Self {
        let EpochPosition { epoch, batch, bad } =
            if at.batch < batches { at } else { EpochPosition { epoch: at.epoch.wrapping_add(1), batch: 0, bad: 0 } };
        Self { version: Self::VERSION, epoch, batch, bad, fixed: Fixed::of(source, options), data: None, decoder: None }
    }

    /// The same, with what identifies the source's samples.
    pub(in crate::loader) fn of_data(self, source: &dyn Source) -> Self {
        Self { data: digest(source), decoder: source.summary().decoder, ..self }
    }

    pub(in crate::loader) fn standing(&self) -> EpochPosition {
        let &Self { epoch, batch, bad, .. } = self;
        EpochPosition { epoch, batch, bad }
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

    /// The rank and the world whose share it is a place in.
    #[must_use]
    pub fn share(&self) -> (u64, u64) {
        (self.fixed.rank, self.fixed.world)
    }

    /// Whether it stands between two epochs. There the next may be shared among another number of ranks.
    #[must_use]
    pub fn is_between_epochs(&self) -> bool {
        self.batch == 0
    }

    /// Checks that its source had the same samples, whatever their files' times are.
    pub(in crate::loader) fn check_data(&self, source: &dyn Source) -> Result<(), ResumeError> {
        let same = |field, then: &Option<String>, now: Option<String>| match *then == now {
            true => Ok(()),
            false => {
                let shown = |value: Option<String>| value.unwrap_or_else(|| "not told by the source".to_owned());
                Err(ResumeError::Changed { field, then: shown(then.clone()), now: shown(now) })
            }
        };
        same("the data", &self.data, digest(source))?;
        same("the decoder", &self.decoder, source.summary().decoder)
    }

    /// Checks it against a loader.
    pub(in crate::loader) fn check(
        &self,
        source: (u64, &SampleLayout),
        options: &LoaderOptions,
        batches: u64,
    ) -> Result<(), ResumeError> {
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

/// What identifies a source's samples, in hexadecimal digits.
fn digest(source: &dyn Source) -> Option<String> {
    source.digest().map(|digest| format!("{:032x}", u128::from_be_bytes(digest)))
}

impl Fixed {
    /// Of a source of so many samples of this layout.
    fn of((source_samples, sample): (u64, &SampleLayout), options: &LoaderOptions) -> Self {
        let &LoaderOptions { batch_size, last_batch, seed, rank, world, ref subset, bad_samples, .. } = options;
        Self {
            source_samples,
            sample: sample.to_string(),
            subset: subset.as_ref().map(|subset: &Subset| (subset.len(), subset.hash())),
            batch_size: batch_size as u64,
            last_batch,
            seed,
            rank,
            world,
            substitutes: bad_samples.substitutes(),
        }
    }

    /// Names the first field that differs. Between epochs the share may.
    fn same(&self, now: &Self, other_share: bool) -> Result<(), ResumeError> {
        fn same<T: PartialEq>(
            field: &'static str,
            then: T,
            now: T,
            show: impl Fn(T) -> String,
        ) -> Result<(), ResumeError> {
            if then == now {
                return Ok(());
            }
            Err(ResumeError::Changed { field, then: show(then), now: show(now) })
        }
        let number = |value: u64| value.to_string();
        let or_none = |value: Option<u64>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        let samples = |value: Option<(u64, u64)>| match value {
            Some((samples, hash)) => format!("{samples} samples ({hash:016x})"),
            None => "the whole source".to_owned(),
        };
        let policy = |substitutes: bool| if substitutes { "to substitute" } else { "not to substitute" }.to_owned();
        same("the source's number of samples", self.source_samples, now.source_samples, number)?;
        same("the source's samples", self.sample.as_str(), now.sample.as_str(), str::to_owned)?;
        same("subset", self.subset, now.subset, samples)?;
        same("batch_size", self.batch_size, now.batch_size, number)?;
        same("last_batch", self.last_batch, now.last_batch, |value| format!("{value:?}"))?;
        same("seed", self.seed, now.seed, or_none)?;
        if !other_share {
            same("rank", self.rank, now.rank, number)?;
            same("world", self.world, now.world, number)?;
        }
        same("bad_samples", self.substitutes, now.substitutes, policy)
    }
}
