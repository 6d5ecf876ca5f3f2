//! What becomes of every image of a source.

use super::Target;
use super::decoder::{DecodeOptions, DecoderUnavailable};
use crate::error::LayoutError;
use crate::layout::SampleLayout;

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

/// What a [`FolderSource`](crate::FolderSource) or a [`TarSource`](crate::TarSource) makes of its images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageOptions {
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
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            height: 224,
            width: 224,
            channels: 3,
            fit: Fit::default(),
            max_decoded_bytes: 512 << 20,
            decode: DecodeOptions::default(),
        }
    }
}

impl ImageOptions {
    /// The layout of the samples, and the way to it.
    ///
    /// # Errors
    /// The options make no usable samples, or their decoder is not there.
    pub(in crate::source) fn prepare<E>(&self) -> Result<(SampleLayout, Target), E>
    where
        E: From<LayoutError> + From<DecoderUnavailable>,
    {
        let &Self { height, width, channels, fit, max_decoded_bytes, decode } = self;
        let layout = SampleLayout::image(height, width, channels)?;
        let side = |side| u32::try_from(side).map_err(|_| LayoutError::Overflow { what: "an image's side" });
        let target = Target::new((side(height)?, side(width)?), channels, fit, max_decoded_bytes, decode)?;
        Ok((layout, target))
    }
}
