//! What a folder's images become.

use crate::source::decode::DecodeOptions;

/// How an image of another shape becomes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Fit {
    /// The whole image, stretched to the sample's height and width.
    Stretch,
    /// The largest centred part with the sample's proportions: scaled so that the shorter side fits, then cropped.
    #[default]
    Crop,
}

/// What a [`FolderSource`](super::FolderSource) makes of its images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderOptions {
    /// Rows of a sample. Default 224.
    pub height: usize,
    /// Columns of a sample. Default 224.
    pub width: usize,
    /// Channels of a sample: 1 (grey), 3 (RGB) or 4 (RGBA). Default 3.
    pub channels: usize,
    /// How an image of another shape becomes a sample. Default [`Fit::Crop`].
    pub fit: Fit,
    /// The most bytes that one image may have, as a file and when decoded at its own size. A larger one is an error, so
    /// that a small file cannot claim all memory. A decoder may need a few times as much. Default 512 MiB.
    pub max_decoded_bytes: u64,
    /// How files are decoded.
    pub decode: DecodeOptions,
    /// The classes, each once: a class's position is its label, whatever folders there are. Sub-folders of other names
    /// are left out, and [told](crate::Source::summary). Default `None`: the sub-folders that hold images, in the order of
    /// their names.
    pub classes: Option<Vec<String>>,
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self {
            height: 224,
            width: 224,
            channels: 3,
            fit: Fit::default(),
            max_decoded_bytes: 512 << 20,
            decode: DecodeOptions::default(),
            classes: None,
        }
    }
}
