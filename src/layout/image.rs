//! Images in the order in which they are decoded.

use serde::{Deserialize, Serialize};

/// A u8 image in HWC order: `height * width * channels` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImageLayout {
    height: usize,
    width: usize,
    channels: usize,
}

impl ImageLayout {
    pub(super) const fn of(height: usize, width: usize, channels: usize) -> Self {
        Self { height, width, channels }
    }

    /// Rows.
    #[must_use]
    pub const fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Channels: 1, 3 or 4.
    #[must_use]
    pub const fn channels(&self) -> usize {
        self.channels
    }

    /// Pixels of one channel.
    #[must_use]
    pub const fn plane(&self) -> usize {
        self.height.saturating_mul(self.width)
    }
}
