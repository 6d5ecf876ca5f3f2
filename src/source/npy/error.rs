//! What can be wrong with a `.npy` file.

use std::path::PathBuf;

use crate::error::LayoutError;
use crate::source::shown::Shown;
use crate::source::{FileError, LabelCount};

/// A `.npy` file cannot be used. Every message names the file; only errors of the system ([`File`](Self::File)) may be
/// worth a retry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file does not start as a `.npy` file does.
    #[error("{}: not a .npy file ({reason})", Shown(.path))]
    NotNpy {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: &'static str,
    },
    /// The header is damaged, or of a kind that is not supported.
    #[error("{}: unusable .npy header: {reason}", Shown(.path))]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The samples' elements are stored with the most significant byte first.
    #[error("{}: big-endian elements (`{dtype}`); save it through `array.astype(array.dtype.newbyteorder('<'))`", Shown(.path))]
    BigEndian {
        /// The file.
        path: PathBuf,
        /// NumPy's name of the element type.
        dtype: String,
    },
    /// The elements have a type that is not supported here.
    #[error("{}: elements of type `{dtype}`; supported are {supported}", Shown(.path))]
    ElementType {
        /// The file.
        path: PathBuf,
        /// NumPy's name of the element type.
        dtype: String,
        /// NumPy's names of the element types supported.
        supported: &'static str,
    },
    /// The elements are stored column by column, so that a sample's bytes are scattered.
    #[error("{}: Fortran order; save it through `numpy.ascontiguousarray`", Shown(.path))]
    FortranOrder {
        /// The file.
        path: PathBuf,
    },
    /// The array has no dimensions.
    #[error("{}: a single value, not an array of samples", Shown(.path))]
    Scalar {
        /// The file.
        path: PathBuf,
    },
    /// The first dimension is zero.
    #[error("{}: no samples (the first dimension is 0)", Shown(.path))]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The shape makes no usable samples.
    #[error("{}: {source}", Shown(.path))]
    Layout {
        /// The file.
        path: PathBuf,
        /// What is wrong with the shape.
        source: LayoutError,
    },
    /// The array has no images with their channels first, which were asked for.
    #[error(
        "{}: no images with channels first: they are `|u1` of the shape (N, C, H, W) with C of 1, 3 or 4, and this is `{dtype}` of {shape:?}",
        Shown(.path)
    )]
    NotChannelsFirst {
        /// The file.
        path: PathBuf,
        /// NumPy's name of the element type.
        dtype: String,
        /// Its dimensions.
        shape: Vec<u64>,
    },
    /// The file is shorter than its header promises.
    #[error("{}: truncated: {missing} of {expected} bytes are missing", Shown(.path))]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes missing.
        missing: u64,
        /// Bytes the file should have, with its header.
        expected: u64,
    },
    /// The file is longer than its header promises.
    #[error("{}: {extra} bytes after the array's end", Shown(.path))]
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// Bytes too many.
        extra: u64,
    },
    /// The labels are not a list.
    #[error("{}: labels have the shape (N,) or (N, 1), not {shape:?}", Shown(.path))]
    LabelShape {
        /// The file with the labels.
        path: PathBuf,
        /// Its dimensions.
        shape: Vec<u64>,
    },
    /// A label is too large for an i64.
    #[error("{}: label {index} is larger than any i64", Shown(.path))]
    LabelValue {
        /// The file with the labels.
        path: PathBuf,
        /// The label's position.
        index: usize,
    },
    /// The number of labels is not the number of samples.
    #[error("{}: {source}", Shown(.path))]
    LabelCount {
        /// The file with the labels.
        path: PathBuf,
        /// The two numbers.
        source: LabelCount,
    },
    /// Little-endian elements cannot be passed through to a big-endian host.
    #[error("{}: elements of more than one byte are not supported on big-endian hosts", Shown(.path))]
    HostEndian {
        /// The file.
        path: PathBuf,
    },
}
