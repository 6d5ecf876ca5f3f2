//! Errors, one small enum per operation. Each variant says whether trying again can help.

mod load;
mod panic;

pub use load::{LoadError, PumpState, Stage, Stall};
pub(crate) use panic::panic_message;
#[cfg(feature = "wgpu")]
pub(crate) use panic::panic_text;

use std::error::Error;

use crate::strategy::Strategy;

/// What a [`Source`](crate::source::Source) reports: any error, kept whole as the cause.
pub type SourceError = Box<dyn Error + Send + Sync + 'static>;

/// A sample, batch or tensor description that cannot be used. Never worth a retry.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A dimension or the batch size is zero.
    #[error("{what} must not be zero")]
    Zero {
        /// What was zero.
        what: &'static str,
    },
    /// Images have 1, 3 or 4 channels.
    #[error("images have 1, 3 or 4 channels, not {channels}")]
    Channels {
        /// The channel count asked for.
        channels: usize,
    },
    /// Rows that do not fit the bytes from one to the next.
    #[error("a pitch of {pitch} bytes cannot be used for {format}, whose rows have {needed}: {reason}")]
    Pitch {
        /// The pixel format.
        format: &'static str,
        /// The pitch asked for.
        pitch: usize,
        /// Bytes of a row without padding.
        needed: usize,
        /// Why it cannot be used.
        reason: &'static str,
    },
    /// More dimensions than a shape holds.
    #[error("a sample has at most {max} dimensions, not {rank}")]
    Rank {
        /// The rank asked for.
        rank: usize,
        /// The largest rank supported.
        max: usize,
    },
    /// A sample has no fields, or too many.
    #[error("a sample has 1 to {max} fields, not {got}")]
    Fields {
        /// How many were given.
        got: usize,
        /// The largest number supported.
        max: usize,
    },
    /// A field cannot be part of this sample.
    #[error("field `{name}` cannot be used: {reason}")]
    FieldName {
        /// The field's name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A size does not fit the address space.
    #[error("{what} overflows the address space")]
    Overflow {
        /// The quantity that overflowed.
        what: &'static str,
    },
    /// Normalisation was asked for samples that are not u8 images.
    #[error(
        "normalisation needs u8 images in HWC order without padding, and this source delivers {layout}; a `Pipeline` takes every pixel format"
    )]
    NotAnImage {
        /// The layout of the source.
        layout: String,
    },
    /// A pipeline was asked for samples that are neither images nor frames.
    #[error("a pipeline needs images or frames, and this source delivers {layout}")]
    NotAFrame {
        /// The layout of the source.
        layout: String,
    },
    /// A step of a pipeline cannot be used, or does not fit the frames.
    #[error("{step}: {reason}")]
    Pipeline {
        /// The step, by the name of its field in `Pipeline`.
        step: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Mean or standard deviation lists have the wrong length.
    #[error("{what} has {got} values for {channels} channels")]
    ChannelCount {
        /// `mean` or `std`.
        what: &'static str,
        /// How many values were given.
        got: usize,
        /// How many channels the images have.
        channels: usize,
    },
    /// A mean or standard deviation that cannot be used.
    #[error("{what}[{channel}] is {value}: {reason}")]
    BadParameter {
        /// `mean` or `std`.
        what: &'static str,
        /// Which channel.
        channel: usize,
        /// The value given.
        value: f64,
        /// Why it cannot be used.
        reason: &'static str,
    },
    /// A byte slice has another length than the layout asks for.
    #[error("{what} is {got} bytes, and {expected} are needed")]
    Length {
        /// What was measured.
        what: &'static str,
        /// Its length in bytes.
        got: usize,
        /// The length needed in bytes.
        expected: usize,
    },
}

/// A strategy that this device cannot run, and why. Never worth a retry on the same device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("strategy `{strategy}` is not available here: {reason}")]
pub struct Unsupported {
    /// What was asked for.
    pub strategy: Strategy,
    /// Why it cannot run.
    pub reason: String,
}

/// What a device can fail with while it is in use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device is gone: nothing on it can be used again. Open it anew.
    #[error("the device was lost: {reason}")]
    Lost {
        /// What the driver said.
        reason: String,
    },
    /// Memory ran out. Fewer slots, outputs or samples a batch can help.
    #[error("out of memory: {what} ({bytes} bytes)")]
    OutOfMemory {
        /// What was being allocated.
        what: String,
        /// How much was asked for.
        bytes: u64,
    },
    /// Host memory could not be page-locked. It is the host's memory that is short, not the device's; fewer or smaller slots, or a
    /// higher limit, can help.
    #[error("page-locking {bytes} bytes of host memory failed: {reason}")]
    PageLock {
        /// How much was to be locked in all.
        bytes: u64,
        /// What refused it, what the limits are, and how to raise them.
        reason: String,
    },
    /// The application's own [`Step`](crate::backend::Step) failed. The batch is lost, the device is not.
    #[error("the application's own step failed: {reason}")]
    Step {
        /// Its error, or what its panic said.
        reason: String,
    },
    /// The driver refused an operation that gpufeed believed valid. The batch is lost, the device is not.
    #[error("the device refused an operation: {message}")]
    Refused {
        /// What the driver or the validation said.
        message: String,
    },
}

/// Opening a device or a loader failed. Nothing stays allocated.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No device matches what was asked for.
    #[error("no device matches `{wanted}`; found: {found}")]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// What there is, in words.
        found: String,
    },
    /// The device cannot run this strategy.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A batch does not fit what the device can bind or allocate.
    #[error("{what} needs {needed} bytes and the device allows {limit} ({limit_name}); {advice}")]
    TooLarge {
        /// The buffer in question.
        what: &'static str,
        /// Its size in bytes.
        needed: u64,
        /// The limit in bytes.
        limit: u64,
        /// The limit's name.
        limit_name: &'static str,
        /// What to change.
        advice: &'static str,
    },
    /// The memory asked for exceeds the caller's budget; nothing was allocated.
    #[error("{needed} bytes are needed ({breakdown}) and the budget is {budget}")]
    OverBudget {
        /// The sum in bytes.
        needed: u64,
        /// The budget in bytes.
        budget: u64,
        /// The sum's parts, in words.
        breakdown: String,
    },
    /// An option cannot be used.
    #[error("{option}: {reason}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The samples or the normalisation cannot be used.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A thread could not be started.
    #[error("cannot start a thread: {message}")]
    Thread {
        /// What the system said.
        message: String,
    },
}

impl OpenError {
    /// Whether it was memory that was short (the budget's, the device's, or what the host may page-lock), so that another try
    /// with less can help: see [`LoaderOptions::shrunk`](crate::loader::LoaderOptions::shrunk).
    #[must_use]
    pub fn is_short_of_memory(&self) -> bool {
        matches!(
            self,
            Self::OverBudget { .. } | Self::Device(DeviceError::OutOfMemory { .. } | DeviceError::PageLock { .. })
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_memory_is_worth_a_try_with_less() {
        let reason = || "a test".to_owned();
        let short = [
            OpenError::OverBudget { needed: 2, budget: 1, breakdown: reason() },
            DeviceError::OutOfMemory { what: reason(), bytes: 1 }.into(),
            DeviceError::PageLock { bytes: 1, reason: reason() }.into(),
        ];
        assert!(short.iter().all(OpenError::is_short_of_memory));
        let others = [
            OpenError::Option { option: "slots", reason: reason() },
            OpenError::Thread { message: reason() },
            DeviceError::Lost { reason: reason() }.into(),
            DeviceError::Refused { message: reason() }.into(),
        ];
        assert!(!others.iter().any(OpenError::is_short_of_memory));
    }
}
