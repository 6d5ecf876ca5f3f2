//! The element types of a pipeline's tensor.

use crate::layout::Element;

/// What a pipeline's values become.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum TensorType {
    /// 32-bit IEEE 754.
    #[default]
    F32,
    /// 16-bit IEEE 754, rounded from f32 to nearest, ties to even.
    F16,
    /// The upper half of f32, rounded to nearest, ties to even.
    Bf16,
    /// Bytes from 0 to 255.
    U8(Quantization),
    /// Bytes from -128 to 127.
    I8(Quantization),
}

/// `value = (element - zero_point) * scale`: an element is `round(value / scale) + zero_point`, ties to even, cut to its type's range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantization {
    /// The step from one element to the next; positive.
    pub scale: f64,
    /// The element that stands for zero, within the type's range.
    pub zero_point: i32,
}

impl TensorType {
    /// The element type.
    #[must_use]
    pub const fn element(self) -> Element {
        match self {
            Self::F32 => Element::F32,
            Self::F16 => Element::F16,
            Self::Bf16 => Element::Bf16,
            Self::U8(_) => Element::U8,
            Self::I8(_) => Element::I8,
        }
    }

    /// Scale and zero point, where there are any.
    #[must_use]
    pub const fn quantization(self) -> Option<Quantization> {
        match self {
            Self::U8(quantization) | Self::I8(quantization) => Some(quantization),
            _ => None,
        }
    }

    /// The least and the largest integer.
    #[must_use]
    pub(crate) const fn range(self) -> (i32, i32) {
        match self {
            Self::I8(_) => (-128, 127),
            _ => (0, 255),
        }
    }
}
