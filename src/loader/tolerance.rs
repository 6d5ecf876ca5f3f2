//! What is done about samples that cannot be read, and how many there may be.

use crate::error::OpenError;

/// What happens to a sample whose source fails, panics or writes less than a sample.
///
/// Strategies that read the source's own memory call no `read`, so that they know no bad samples: where the memory has changed their
/// batch is lost, whatever is said here. Without [`ordered`](super::LoaderOptions::ordered) delivery it depends on chance which sample is the
/// first beyond a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum BadSamples {
    /// Its batch is lost, and an error takes the batch's place.
    #[default]
    Fail,
    /// It is left out. Its batch is shorter, so that no other batch changes; a batch of which nothing is left does not come. What follows
    /// it in its batch is read a second time.
    Skip(Tolerance),
    /// Another sample takes its place: which one depends on the seed and the bad sample's index alone. After
    /// [`TRIES`](Self::TRIES) that cannot be read either the batch is lost.
    Substitute(Tolerance),
}

/// How many samples of an epoch may be bad before the epoch ends with [`LoadError::TooManyBadSamples`](crate::LoadError::TooManyBadSamples).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Tolerance {
    /// All of them.
    All,
    /// This many.
    Count(u64),
    /// This share of the epoch's samples, from 0 to 1.
    Rate(f64),
}

impl BadSamples {
    /// How many samples are tried in a bad one's place.
    pub const TRIES: u32 = 16;

    /// Whether it decides which samples there are, and not only which are missing.
    pub(super) fn substitutes(self) -> bool {
        matches!(self, Self::Substitute(_))
    }

    pub(super) fn check(self) -> Result<(), OpenError> {
        match self {
            Self::Skip(Tolerance::Rate(rate)) | Self::Substitute(Tolerance::Rate(rate))
                if !(0.0..=1.0).contains(&rate) =>
            {
                let reason = format!("a rate of {rate} is not between 0 and 1");
                Err(OpenError::Option { option: "bad_samples", reason })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn tolerance(self) -> Tolerance {
        match self {
            Self::Fail => Tolerance::Count(0),
            Self::Skip(tolerance) | Self::Substitute(tolerance) => tolerance,
        }
    }
}

impl Tolerance {
    /// The number that is allowed of `samples`.
    pub(super) fn most(self, samples: u64) -> u64 {
        match self {
            Self::All => u64::MAX,
            Self::Count(most) => most,
            // A product just below a whole number was meant to be it.
            Self::Rate(rate) => (samples as f64 * rate * (1.0 + 1e-12)) as u64,
        }
    }

    pub(super) fn in_words(self, most: u64) -> String {
        match self {
            Self::Rate(rate) => format!("{most} ({}% of the epoch)", (rate * 1e8).round() / 1e6),
            _ => most.to_string(),
        }
    }
}
