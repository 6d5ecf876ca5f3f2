//! What can be wrong with a `.npy` file.

use std::io;
use std::path::PathBuf;

use crate::error::LayoutError;
use crate::source::LabelCount;

/// A `.npy` file cannot be used. Every message names the file; none is worth a retry, except those of the system
/// ([`Io`](Self::Io), [`Read`](Self::Read)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file cannot be opened, or its header cannot be read.
    #[error("{}: cannot be opened: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file does not start as a `.npy` file does.
    #[error("{}: not a .npy file ({reason})", .path.display())]
    NotNpy {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: &'static str,
    },
    /// The header is damaged, or of a kind that is not supported.
    #[error("{}: unusable .npy header: {reason}", .path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The elements are stored with the most significant byte first.
    #[error("{}: big-endian elements (`{dtype}`); save the array as little-endian", .path.display())]
    BigEndian {
        /// The file.
        path: PathBuf,
        /// NumPy's name of the element type.
        dtype: String,
    },
    /// The elements have a type that is not supported here.
    #[error("{}: elements of type `{dtype}`; supported are {supported}", .path.display())]
    ElementType {
        /// The file.
        path: PathBuf,
        /// NumPy's name of the element type.
        dtype: String,
        /// NumPy's names of the element types supported.
        supported: &'static str,
    },
    /// The elements are stored column by column, so that a sample's bytes are scattered.
    #[error("{}: Fortran order; save it through `numpy.ascontiguousarray`", .path.display())]
    FortranOrder {
        /// The file.
        path: PathBuf,
    },
    /// The array has no dimensions.
    #[error("{}: a single value, not an array of samples", .path.display())]
    Scalar {
        /// The file.
        path: PathBuf,
    },
    /// The first dimension is zero.
    #[error("{}: no samples (the first dimension is 0)", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The shape makes no usable samples.
    #[error("{}: {source}", .path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// What is wrong with the shape.
        source: LayoutError,
    },
    /// The file is shorter than its header promises.
    #[error("{}: truncated: {missing} of {expected} bytes are missing", .path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes missing.
        missing: u64,
        /// Bytes the file should have, with its header.
        expected: u64,
    },
    /// The file is longer than its header promises.
    #[error("{}: {extra} bytes after the array's end", .path.display())]
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// Bytes too many.
        extra: u64,
    },
    /// The labels are not a list.
    #[error("{}: labels have one dimension, not {rank}", .path.display())]
    LabelRank {
        /// The file with the labels.
        path: PathBuf,
        /// The number of dimensions it has.
        rank: usize,
    },
    /// The number of labels is not the number of samples.
    #[error("{}: {source}", .path.display())]
    LabelCount {
        /// The file with the labels.
        path: PathBuf,
        /// The two numbers.
        source: LabelCount,
    },
    /// Little-endian floats cannot be passed through to a big-endian host.
    #[error("{}: f32 arrays are not supported on big-endian hosts", .path.display())]
    HostEndian {
        /// The file.
        path: PathBuf,
    },
    /// The file is not what it was when it was opened: another length, or another time of modification. Open it anew.
    #[error("{}: the file was changed after it was opened", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A sample could not be read, although the file was whole when it was opened.
    #[error("{}: reading sample {index}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The sample's index.
        index: u64,
        /// What the system said.
        source: io::Error,
    },
}
