//! What can be wrong with tar shards.

use std::path::PathBuf;

use crate::error::LayoutError;
use crate::source::FileError;
use crate::source::decode::DecoderUnavailable;
use crate::source::shown::{Shown, escaped, excerpt, shown_member};

/// Tar shards cannot be used as a source. Every message names the archive or the pattern.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TarError {
    /// A shard cannot be opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// The braces of a pattern make no list of shards.
    #[error("{}: {reason}", escaped(.pattern))]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file is no tar archive.
    #[error("{}: not a tar archive{hint}", Shown(.path))]
    NotTar {
        /// The file.
        path: PathBuf,
        /// What it seems to be instead, and what to do; empty if nobody knows.
        hint: String,
    },
    /// An archive is damaged or ends early.
    #[error("{}: damaged at byte {offset}: {}", Shown(.path), escaped(.reason))]
    Damaged {
        /// The archive.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is there.
        reason: String,
    },
    /// A shard was named twice.
    #[error("{}: this shard is named twice", Shown(.path))]
    Twice {
        /// The archive.
        path: PathBuf,
    },
    /// No shard was named.
    #[error("no tar shards were named")]
    NoShards,
    /// There is no sample in any shard.
    #[error("{}: no images (JPEG, PNG or WebP){}{left_out}", Shown(.path), others(*.shards))]
    NoImages {
        /// The first shard.
        path: PathBuf,
        /// The number of shards.
        shards: usize,
        /// What there is instead, in words; empty if there is nothing.
        left_out: String,
    },
    /// The options make no usable samples.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The decoder that was asked for cannot be used.
    #[error(transparent)]
    Decoder(#[from] DecoderUnavailable),
}

fn others(shards: usize) -> String {
    if shards > 1 { format!(" in this shard and {} others", shards - 1) } else { " in this shard".to_owned() }
}

/// A sample of a shard cannot be used, whatever its image is. The message names the shard and the sample.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", shown_member(.path, Some(.sample)))]
#[non_exhaustive]
pub struct TarSampleError {
    /// The archive.
    pub path: PathBuf,
    /// The name that its members have in common.
    pub sample: String,
    /// What is wrong with it.
    #[source]
    pub problem: TarProblem,
}

/// What is wrong with a sample of a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TarProblem {
    /// There is a label, and no image beside it.
    #[error("no image beside its label (the members of a sample must follow each other)")]
    NoImage,
    /// There is an image, and no label beside it.
    #[error("no label beside its image: there is no member .{} (the members of a sample must follow each other)", escaped(.suffix))]
    NoLabel {
        /// The suffix of the members that hold labels.
        suffix: String,
    },
    /// The label is no integer.
    #[error("its label is no integer: {}", excerpt(.text))]
    NotInteger {
        /// The start of what is in its place.
        text: String,
    },
    /// The label is none of the list of classes.
    #[error("its label is {label}, and the list has {classes} classes")]
    NotInClassList {
        /// The label.
        label: i64,
        /// The number of classes.
        classes: usize,
    },
    /// A member is there twice.
    #[error("two members .{}", escaped(.suffix))]
    Twice {
        /// Their suffix.
        suffix: String,
    },
    /// The image or the label is a link.
    #[error("the member .{} is a link, not a file: archive it with `tar --dereference --hard-dereference`", escaped(.suffix))]
    Link {
        /// The member's suffix.
        suffix: String,
    },
    /// The image or the label is stored in parts.
    #[error("the member .{} is a sparse file, which is not supported: archive it without `--sparse`", escaped(.suffix))]
    Sparse {
        /// The member's suffix.
        suffix: String,
    },
}
