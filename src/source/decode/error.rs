//! What can be wrong with an image file.

use std::io;
use std::path::PathBuf;

use crate::error::SourceError;
use crate::source::shown::shown_member;

/// An image file cannot be used. The message names the file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", shown_member(.path, .member.as_deref()))]
#[non_exhaustive]
pub struct ImageError {
    /// The file, or the archive that it is in.
    pub path: PathBuf,
    /// Its name in the archive, if it is in one.
    pub member: Option<String>,
    /// What is wrong with it.
    #[source]
    pub problem: ImageProblem,
}

/// What is wrong with an image file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageProblem {
    /// It cannot be opened or read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Its first bytes are those of another format.
    #[error("neither JPEG, PNG nor WebP")]
    Format,
    /// It ends before the image does.
    #[error("truncated")]
    Truncated,
    /// The file, or the image when decoded, has more bytes than allowed.
    #[error(
        "{needed} bytes large, and at most {limit} are allowed \
        (`max_decoded_bytes` of the library, `--max-image-bytes` of the command)"
    )]
    TooLarge {
        /// Bytes of the file or the decoded image.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Its data is damaged, by more than [`Damaged`](super::Damaged) allows.
    #[error("damaged: {0}")]
    Damaged(String),
    /// The decoder refused it.
    #[error("cannot be decoded: {0}")]
    Decode(SourceError),
    /// The resampler refused it.
    #[error("cannot be resized: {0}")]
    Resize(SourceError),
}
