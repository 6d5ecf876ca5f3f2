//! Why a folder is no source.

use std::io;
use std::path::PathBuf;

use crate::error::LayoutError;
use crate::source::decode::DecoderUnavailable;
use crate::source::shown::{Shown, escaped};

/// A folder cannot be used as a source. Every message names the folder or file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The folder itself cannot be listed. Sub-folders that cannot be are left out.
    #[error("{}: {source}", Shown(.path))]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no image.
    #[error("{}: no images (JPEG, PNG or WebP) in this folder or below{left_out}", Shown(.path))]
    NoImages {
        /// The folder.
        path: PathBuf,
        /// What there is instead, in words; empty if there is nothing.
        left_out: String,
    },
    /// Some images lie in sub-folders, which are classes, and some do not; or there is a list of classes, and none is in one.
    #[error("{} has no class: images lie either all in sub-folders or all beside each other", Shown(.path))]
    Mixed {
        /// The first image outside the sub-folders.
        path: PathBuf,
    },
    /// The list of classes has a name twice.
    #[error("the list of classes has `{}` twice", escaped(.name))]
    ClassTwice {
        /// The name.
        name: String,
    },
    /// The options make no usable samples.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The decoder that was asked for cannot be used.
    #[error(transparent)]
    Decoder(#[from] DecoderUnavailable),
}
