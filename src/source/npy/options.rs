//! What an array's dimensions mean.

/// What an [`NpySource`](super::NpySource) makes of its array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NpyOptions {
    /// Which dimension of u8 images is the channels. Default [`ChannelOrder::Last`].
    pub channels: ChannelOrder,
}

impl NpyOptions {
    /// u8 images with their channels first.
    #[must_use]
    pub const fn channels_first() -> Self {
        Self { channels: ChannelOrder::First }
    }
}

/// Which dimension of a u8 array is the channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelOrder {
    /// (N, H, W, C). Arrays of other shapes are no images and pass through as they are stored.
    #[default]
    Last,
    /// (N, C, H, W), as PyTorch stores images: samples are images of H x W x C, whose channels are put side by side as they are read. An
    /// array that is not of u8, or does not have 1, 3 or 4 channels there, is an error.
    First,
}
