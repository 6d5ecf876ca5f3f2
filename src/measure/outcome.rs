//! What checking a loader's batches came to.

use serde::{Deserialize, Serialize};

use crate::error::{DeviceError, LayoutError, LoadError, OpenError, SourceError};
use crate::preprocess::Fingerprint;

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verified {
    /// Batches whose indices and fingerprints were compared.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Batches whose whole tensor was compared.
    pub tensors: u64,
}

/// Why something cannot be relied on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// What was delivered is wrong.
    #[error(transparent)]
    Wrong(#[from] Mismatch),
    /// A sample could not be read a second time.
    #[error("batch {batch}: sample {index} could not be read again to compare: {source}")]
    Source {
        /// The batch.
        batch: u64,
        /// The sample.
        index: u64,
        /// The source's own error.
        source: SourceError,
    },
    /// A batch could not be read back.
    #[error("batch {batch} could not be read back: {source}")]
    ReadBack {
        /// The batch.
        batch: u64,
        /// The device's error.
        source: DeviceError,
    },
    /// The consumer that computes failed.
    #[error("the consumer's own work: {0}")]
    Consumer(DeviceError),
    /// The loader could not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The loader delivered an error.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The samples and what is to be made of them do not fit.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The caller asked for an end.
    #[error("stopped")]
    Stopped,
}

impl VerifyError {
    /// Whether wrong data was delivered, rather than none.
    #[must_use]
    pub fn is_wrong_data(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }

    /// Whether the device is gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(
            self,
            Self::Load(LoadError::Device { source: DeviceError::Lost { .. }, .. })
                | Self::ReadBack { source: DeviceError::Lost { .. }, .. }
                | Self::Consumer(DeviceError::Lost { .. })
                | Self::Open(OpenError::Device(DeviceError::Lost { .. }))
        )
    }
}

/// What was delivered is not what should have been.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Another sample, or none, stands where the sampler's order has one.
    #[error("batch {batch}: sample {position} of it has index {got:?}, and the order says {expected:?}")]
    Index {
        /// The batch.
        batch: u64,
        /// The position in the batch.
        position: usize,
        /// The index that should be there.
        expected: Option<u64>,
        /// The index that is.
        got: Option<u64>,
    },
    /// The bytes on the device are not the source's.
    #[error(
        "batch {batch}, sample {index}: the device has the fingerprint {got:016x}, and the source's is {expected:016x}"
    )]
    Fingerprint {
        /// The batch.
        batch: u64,
        /// The sample's index in the source.
        index: u64,
        /// The fingerprint of the source's bytes.
        expected: Fingerprint,
        /// The device's.
        got: Fingerprint,
    },
    /// A field on the host, the rows of a ragged field, or a tensor behind the first are not as the source has them.
    #[error("batch {batch}: field `{field}` is not as the source has it")]
    Field {
        /// The batch.
        batch: u64,
        /// The field's name.
        field: String,
    },
    /// The tensor or the list of fingerprints has another length.
    #[error("batch {batch}: {got} {what} were delivered, and it has {expected}")]
    Length {
        /// The batch.
        batch: u64,
        /// What was counted.
        what: &'static str,
        /// How many it has.
        expected: usize,
        /// How many were delivered.
        got: usize,
    },
    /// A batch was not there yet when the consumer's work on it began, or not any more.
    #[error("batch {batch}: it was not on the device when the consumer's work on it began")]
    Absent {
        /// The batch.
        batch: u64,
    },
    /// Batches were written while the consumer worked on them.
    #[error("{changed} of {batches} batches changed while the consumer worked on them")]
    Changed {
        /// How many.
        changed: u64,
        /// Of how many.
        batches: u64,
    },
    /// The consumer's work on some batches did not run.
    #[error("the consumer worked on {got} batches, and took {expected}")]
    Uncounted {
        /// How many it took.
        expected: u64,
        /// On how many it worked.
        got: u64,
    },
    /// A value of the tensor is not the oracle's.
    #[error("batch {batch}, sample {index}: element {element} is {got}, and {expected} ± {bound:.3e} was expected")]
    Value {
        /// The batch.
        batch: u64,
        /// The sample's index in the source.
        index: u64,
        /// The element within the sample's tensor.
        element: usize,
        /// The oracle's value.
        expected: f64,
        /// The device's.
        got: f64,
        /// How far they may be apart.
        bound: f64,
    },
}
