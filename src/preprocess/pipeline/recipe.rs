//! The steps of a pipeline, each with its parameters.

/// How a frame is turned before anything else, named by what is done to the stored pixels to see them upright.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Orientation {
    /// Not at all: EXIF's 1.
    #[default]
    Upright,
    /// Left and right change places: EXIF's 2.
    MirrorHorizontal,
    /// By 180 degrees: EXIF's 3.
    Rotate180,
    /// Top and bottom change places: EXIF's 4.
    MirrorVertical,
    /// Rows become columns: EXIF's 5.
    Transpose,
    /// By 90 degrees clockwise: EXIF's 6.
    Rotate90,
    /// Rows become columns, from the other corner: EXIF's 7.
    Transverse,
    /// By 270 degrees clockwise: EXIF's 8.
    Rotate270,
}

impl Orientation {
    /// All of them, in the order of EXIF's numbers, which start at 1.
    pub const ALL: [Self; 8] = [
        Self::Upright,
        Self::MirrorHorizontal,
        Self::Rotate180,
        Self::MirrorVertical,
        Self::Transpose,
        Self::Rotate90,
        Self::Transverse,
        Self::Rotate270,
    ];

    /// The one of EXIF's tag 0x0112; `None` for numbers that the tag does not have.
    #[must_use]
    pub fn from_exif(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Whether rows become columns.
    #[must_use]
    pub const fn transposes(self) -> bool {
        matches!(self, Self::Transpose | Self::Rotate90 | Self::Transverse | Self::Rotate270)
    }

    /// Whether the upright image's x and its y run backwards along the stored axis that they lie on.
    pub(super) const fn mirrors(self) -> [bool; 2] {
        match self {
            Self::Upright | Self::Transpose => [false, false],
            Self::MirrorHorizontal | Self::Rotate90 => [true, false],
            Self::MirrorVertical | Self::Rotate270 => [false, true],
            Self::Rotate180 | Self::Transverse => [true, true],
        }
    }
}

/// What is cut out of the upright frame before it is resized. Nothing outside of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Crop {
    /// All of it stays.
    #[default]
    None,
    /// This rectangle, which lies inside of the frame.
    Rect {
        /// The first column.
        left: usize,
        /// The first row.
        top: usize,
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// The middle, of at most the frame's size.
    Center {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// Another rectangle for each sample, as torchvision's `RandomResizedCrop` draws it: its area is a share of the frame's and its
    /// width over its height is a ratio, uniform in its logarithm. After ten draws that do not fit, the largest in the middle whose
    /// ratio is in the range.
    Random {
        /// The least and the largest share of the frame's area.
        scale: (f64, f64),
        /// The least and the largest ratio of width to height.
        ratio: (f64, f64),
    },
}

impl Crop {
    /// torchvision's defaults: shares from 0.08 to 1, ratios from 3/4 to 4/3.
    pub const RANDOM: Self = Self::Random { scale: (0.08, 1.0), ratio: (3.0 / 4.0, 4.0 / 3.0) };
}

/// What size the crop becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Resize {
    /// It stays as it is.
    #[default]
    None,
    /// This size, whatever that does to the aspect ratio.
    Exact {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// The shorter side becomes so long, and the longer one follows, rounded down, as torchvision's `Resize` of one number.
    ShorterSide(usize),
    /// The largest of the same aspect ratio that fits this size, filled up to it: a letterbox.
    Letterbox {
        /// Rows of the whole.
        height: usize,
        /// Columns of the whole.
        width: usize,
        /// Where the image lies.
        anchor: Anchor,
    },
}

/// Where a letterbox has its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Anchor {
    /// In the middle; of an odd rest the larger half is below or to the right.
    #[default]
    Center,
    /// In the upper left corner.
    TopLeft,
}

/// How pixels between pixels are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Filter {
    /// The pixel in which the centre falls.
    Nearest,
    /// A triangle of one pixel to each side.
    #[default]
    Bilinear,
    /// Catmull and Rom's cubic (a = -0.5) of two pixels to each side, as Pillow's `BICUBIC` and torchvision's with `antialias=True`.
    Bicubic,
}

impl Filter {
    /// Pixels to each side that it reaches.
    #[must_use]
    pub const fn support(self) -> f64 {
        match self {
            Self::Nearest => 0.5,
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
        }
    }

    /// The weight of a pixel at this distance.
    #[must_use]
    pub fn weight(self, distance: f64) -> f64 {
        let d = distance.abs();
        match self {
            Self::Nearest => f64::from(u8::from(d <= 0.5)),
            Self::Bilinear => (1.0 - d).max(0.0),
            Self::Bicubic if d < 1.0 => (1.5 * d - 2.5) * d * d + 1.0,
            Self::Bicubic if d < 2.0 => ((-0.5 * d + 2.5) * d - 4.0) * d + 2.0,
            Self::Bicubic => 0.0,
        }
    }
}

/// The channels of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ChannelOrder {
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Blue, green, red, as OpenCV has them.
    Bgr,
    /// One channel: 0.299 of red, 0.587 of green and 0.114 of blue, as Pillow's `L`.
    Gray,
}

impl ChannelOrder {
    /// How many there are.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Gray => 1,
        }
    }
}

/// Random changes of colour, drawn for each sample as torchvision's `ColorJitter` names them, and made as one linear map in this order:
/// brightness, contrast, saturation, hue. Values are cut to 0..=255 once, behind the last.
///
/// Two things are unlike torchvision's: contrast is about middle grey (127.5) and not about the image's own mean, and hue turns colours
/// about the grey axis of YIQ instead of the circle of HSV.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// The least and the largest factor of all channels.
    pub brightness: (f64, f64),
    /// The least and the largest factor of the distance from middle grey.
    pub contrast: (f64, f64),
    /// The least and the largest factor of the distance from the pixel's own grey.
    pub saturation: (f64, f64),
    /// The least and the largest turn, in parts of a full one; at most half a turn either way.
    pub hue: (f64, f64),
}

impl Jitter {
    /// Colours as they are.
    pub const NONE: Self =
        Self { brightness: (1.0, 1.0), contrast: (1.0, 1.0), saturation: (1.0, 1.0), hue: (0.0, 0.0) };

    /// Factors from `1 - strength` (at least 0) to `1 + strength`, and turns from `-hue` to `hue`: the numbers that torchvision's
    /// `ColorJitter` takes.
    #[must_use]
    pub fn new(brightness: f64, contrast: f64, saturation: f64, hue: f64) -> Self {
        let about = |strength: f64| ((1.0 - strength).max(0.0), 1.0 + strength);
        Self {
            brightness: about(brightness),
            contrast: about(contrast),
            saturation: about(saturation),
            hue: (-hue, hue),
        }
    }
}

impl Default for Jitter {
    fn default() -> Self {
        Self::NONE
    }
}

/// How often samples are mirrored, behind everything else that is done to their geometry.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Flip {
    /// The probability that left and right change places.
    pub horizontal: f64,
    /// The probability that top and bottom do.
    pub vertical: f64,
}
