//! Why frames were not fed.

use std::time::Duration;

use crate::error::DeviceError;
use crate::layout::Element;

/// Why frames were not fed. Nothing was sent, and the next call can succeed unless the device is lost.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// No frames, or more than a batch holds.
    #[error("{got} frames were given, and a batch holds 1 to {most}")]
    Count {
        /// How many were given.
        got: usize,
        /// The batch size.
        most: usize,
    },
    /// A frame of another size. Where the last field is [ragged](crate::Field::ragged) a frame ends behind any of its rows; where another
    /// one is, and is not given by name, its rows cannot be told from a frame's bytes.
    #[error("frame {frame} has {got} bytes, and {expected} are needed")]
    Length {
        /// Which frame.
        frame: usize,
        /// Its bytes.
        got: usize,
        /// The bytes of its fields on the device, without those that were given by name; of the largest where one is ragged.
        expected: usize,
    },
    /// A field of a frame that is missing, or cannot be what was given.
    #[error("field `{field}` of frame {frame}: {problem}")]
    Field {
        /// Which frame.
        frame: usize,
        /// The field's name.
        field: String,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// The application holds every output: drop a batch, or raise `outputs`.
    #[error("all {outputs} output tensors are held by the caller: drop a batch or raise `outputs`")]
    AllTensorsLeased {
        /// How many outputs there are.
        outputs: usize,
    },
    /// No slot got free, or no frames came, within the time that the caller gave.
    #[error("no slot was free, or no frames came, within {0:?}")]
    TimedOut(Duration),
    /// A buffer or texture of the application's that cannot be used.
    #[cfg(feature = "wgpu")]
    #[error(transparent)]
    Resource(#[from] crate::backend::wgpu::ResourceError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// What is wrong with a frame's field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// Frames have no such field.
    #[error("frames have no such field")]
    Unknown,
    /// It was not given, or not whole.
    #[error("{got} of its {expected} bytes were written")]
    Short {
        /// The bytes that were given.
        got: usize,
        /// The bytes of the field.
        expected: usize,
    },
    /// More was given than it holds, or it was given twice.
    #[error("{got} bytes were given, and it has {expected}")]
    Long {
        /// The bytes that were given.
        got: usize,
        /// The bytes of the field.
        expected: usize,
    },
    /// Its elements are of another type.
    #[error("its elements are of type {expected}, not {got}")]
    Type {
        /// The type that was given.
        got: Element,
        /// The type of the field.
        expected: Element,
    },
}

/// Why frames that a closure writes were not fed. Nothing was sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FillError<E> {
    /// The closure's own error.
    #[error("frame {frame} was not written: {error}")]
    Frame {
        /// Which frame.
        frame: usize,
        /// What the closure returned.
        error: E,
    },
    /// Any other reason.
    #[error(transparent)]
    Feed(#[from] FeedError),
}

#[cfg(feature = "wgpu")]
impl From<crate::backend::wgpu::SubmitError> for FeedError {
    fn from(error: crate::backend::wgpu::SubmitError) -> Self {
        use crate::backend::wgpu::SubmitError;
        match error {
            SubmitError::Resource(error) => error.into(),
            SubmitError::Device(error) => error.into(),
        }
    }
}

impl<E> From<DeviceError> for FillError<E> {
    fn from(error: DeviceError) -> Self {
        Self::Feed(error.into())
    }
}
