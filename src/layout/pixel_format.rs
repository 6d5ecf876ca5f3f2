//! How the bytes of one frame stand for its pixels.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How pixels lie in memory, 8 bits a component.
///
/// The formats of 4:2:0 have one pair of chroma samples for each 2x2 pixels; where a side is odd, the last pair belongs to the pixels
/// that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PixelFormat {
    /// Grey.
    Gray8,
    /// Red, green, blue.
    Rgb8,
    /// Blue, green, red: OpenCV's order.
    Bgr8,
    /// Red, green, blue, alpha.
    Rgba8,
    /// Blue, green, red, alpha.
    Bgra8,
    /// 4:2:0 in two planes: luma, and behind it one of chroma pairs, Cb before Cr.
    Nv12(Yuv),
    /// 4:2:0 in three planes: luma, Cb, Cr.
    I420(Yuv),
}

impl PixelFormat {
    /// Bytes of one pixel where its components lie beside each other; `None` for planes.
    #[must_use]
    pub const fn pixel_bytes(self) -> Option<usize> {
        match self {
            Self::Gray8 => Some(1),
            Self::Rgb8 | Self::Bgr8 => Some(3),
            Self::Rgba8 | Self::Bgra8 => Some(4),
            Self::Nv12(_) | Self::I420(_) => None,
        }
    }

    /// What luma and chroma mean, for formats that have them.
    #[must_use]
    pub const fn yuv(self) -> Option<Yuv> {
        match self {
            Self::Nv12(yuv) | Self::I420(yuv) => Some(yuv),
            _ => None,
        }
    }

    /// Its name, as its users know it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gray8 => "Gray8",
            Self::Rgb8 => "RGB8",
            Self::Bgr8 => "BGR8",
            Self::Rgba8 => "RGBA8",
            Self::Bgra8 => "BGRA8",
            Self::Nv12(_) => "NV12",
            Self::I420(_) => "I420",
        }
    }
}

impl fmt::Display for PixelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What luma and chroma mean: ITU-T H.273 calls these matrix coefficients, range and chroma sample location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Yuv {
    /// The weights of red, green and blue in luma.
    pub matrix: YuvMatrix,
    /// Which codes black and white have.
    pub range: YuvRange,
    /// Where chroma samples lie.
    pub siting: ChromaSiting,
}

impl Yuv {
    /// HD video: BT.709, limited range, chroma to the left.
    pub const BT709: Self = Self { matrix: YuvMatrix::Bt709, range: YuvRange::Limited, siting: ChromaSiting::Left };
    /// SD video: BT.601, limited range, chroma to the left.
    pub const BT601: Self = Self { matrix: YuvMatrix::Bt601, range: YuvRange::Limited, siting: ChromaSiting::Left };
    /// JPEG and many webcams: BT.601, full range, chroma in the centre.
    pub const JPEG: Self = Self { matrix: YuvMatrix::Bt601, range: YuvRange::Full, siting: ChromaSiting::Center };
}

/// The weights of red, green and blue in luma.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum YuvMatrix {
    /// ITU-R BT.601: 0.299 of red and 0.114 of blue.
    Bt601,
    /// ITU-R BT.709: 0.2126 of red and 0.0722 of blue.
    Bt709,
}

/// Which codes black and white have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum YuvRange {
    /// Luma from 16 to 235, chroma from 16 to 240 around 128.
    Limited,
    /// Luma from 0 to 255, chroma from 0 to 255 around 128.
    Full,
}

/// Where a chroma sample lies among its 2x2 pixels. Vertically it is in the middle of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChromaSiting {
    /// In the left column: MPEG-2, H.264 and H.265 unless they say otherwise.
    Left,
    /// In the middle: MPEG-1 and JPEG.
    Center,
}
