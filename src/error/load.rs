//! Why an epoch delivered no batch.

use std::fmt;
use std::time::Duration;

use super::{DeviceError, SourceError};

/// Where in a batch's way something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stage {
    /// A worker read the sample from its source.
    Read,
    /// Staging memory was being taken.
    Begin,
    /// Copy and kernel were being queued.
    Submit,
    /// The device was working, or was asked what it had finished.
    Device,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Begin => "begin",
            Self::Submit => "submit",
            Self::Device => "device",
        })
    }
}

/// Why [`next`](crate::loader::Epoch) delivered no batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The source could not deliver a sample. The batch is lost; the next call delivers the one after it.
    #[error("sample {index} could not be read (batch {batch}): {source}")]
    Sample {
        /// The sample's index in the source.
        index: u64,
        /// The batch it belonged to.
        batch: u64,
        /// The source's own error.
        source: SourceError,
    },
    /// The source panicked. The batch is lost; the next call delivers the one after it.
    #[error("the source panicked at sample {index} (batch {batch}): {message}")]
    Panic {
        /// The sample's index in the source.
        index: u64,
        /// The batch it belonged to.
        batch: u64,
        /// The panic's message.
        message: String,
    },
    /// The source wrote less than a sample: a field is not whole, or a ragged one ends within a row. The batch is lost; the next call delivers the one after it.
    #[error("the source wrote {written} of the {expected} bytes of sample {index}'s field `{field}` (batch {batch})")]
    ShortSample {
        /// The sample's index in the source.
        index: u64,
        /// The batch it belonged to.
        batch: u64,
        /// The field's name.
        field: String,
        /// Bytes of it that were written.
        written: usize,
        /// Bytes that it has; of a ragged field, up to the end of the row.
        expected: usize,
    },
    /// The device failed. After [`DeviceError::Lost`] the epoch is over; otherwise only this batch is lost.
    #[error("batch {batch} failed at stage `{stage}`: {source}")]
    Device {
        /// The batch that was being worked on.
        batch: u64,
        /// Where.
        stage: Stage,
        /// The device's error.
        source: DeviceError,
    },
    /// Every output tensor is held by the caller: drop a batch (or raise `outputs`) and call
    /// [`try_next`](crate::loader::Epoch::try_next) again. An iterator ends with it.
    #[error("all {outputs} output tensors are held by the caller: drop a batch or raise `outputs`")]
    AllTensorsLeased {
        /// How many outputs the loader has.
        outputs: usize,
    },
    /// The loader's own thread is gone; the loader cannot be used again.
    #[error("the loader's pump stopped: {reason}")]
    Stopped {
        /// Why.
        reason: String,
    },
    /// Nothing moved for as long as [`stall_timeout`](crate::LoaderOptions::stall_timeout) allows. Nothing is lost:
    /// [`try_next`](crate::loader::Epoch::try_next) waits again. An iterator ends with it.
    #[error("{0}")]
    Stalled(Box<Stall>),
    /// No batch came within the time that the caller gave. Nothing is lost: the next call waits again.
    #[error("no batch within {0:?}")]
    TimedOut(Duration),
    /// The loader was [cancelled](crate::loader::Canceller): this epoch is over, and later ones are.
    #[error("the loader was cancelled")]
    Cancelled,
    /// More samples could not be read than [`bad_samples`](crate::LoaderOptions::bad_samples) allows. The epoch is over.
    #[error(
        "{bad} of {seen} samples could not be read, and {limit} is the limit; the last, sample {index} (batch {batch}): {source}"
    )]
    TooManyBadSamples {
        /// How many could not be read in this epoch.
        bad: u64,
        /// How many were asked for.
        seen: u64,
        /// The limit, in words.
        limit: String,
        /// The last one's index in the source.
        index: u64,
        /// The batch it belonged to.
        batch: u64,
        /// Its error.
        source: SourceError,
    },
}

/// Who waits for what, when nothing moves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// How long nothing moved, at least.
    pub after: Duration,
    /// Workers that are inside of the source's `read`, and the sample each reads.
    pub reading: Vec<(usize, u64)>,
    /// Workers in all.
    pub workers: usize,
    /// What the loader's pump thread does.
    pub pump: PumpState,
    /// Slots being filled.
    pub filling: usize,
    /// Batches that the device has not finished.
    pub in_flight: usize,
}

/// What the loader's pump thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PumpState {
    /// It waits for workers, or for batches to be given back.
    Idle,
    /// It waits for the device to finish a batch.
    AwaitsDevice,
    /// It is inside of a call into the device's driver.
    InDriver,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after, reading, workers, pump, filling, in_flight } = self;
        write!(f, "nothing moved for {after:.1?}: ")?;
        for (worker, index) in reading {
            write!(f, "worker {worker} is reading sample {index}; ")?;
        }
        let idle = workers - reading.len();
        if idle > 0 {
            write!(f, "{idle} of {workers} workers have nothing to read; ")?;
        }
        f.write_str(match pump {
            PumpState::Idle => "the pump waits for something to do, or for a batch to be dropped",
            PumpState::AwaitsDevice => "the pump waits for the device",
            PumpState::InDriver => "the pump is inside of the device's driver",
        })?;
        write!(f, "; {filling} slots are being filled, {in_flight} batches are on the device")
    }
}
