//! Element types, by value and by Rust type.

use std::fmt;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// The type of a field's elements, in native byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Element {
    /// Unsigned bytes.
    U8,
    /// Signed bytes.
    I8,
    /// 16-bit unsigned integers.
    U16,
    /// 32-bit signed integers.
    I32,
    /// 64-bit signed integers.
    I64,
    /// 16-bit IEEE 754 floats.
    F16,
    /// The upper half of 32-bit floats.
    Bf16,
    /// 32-bit IEEE 754 floats.
    F32,
    /// One byte, 0 or 1.
    Bool,
}

impl Element {
    /// Every element type.
    pub const ALL: [Self; 9] =
        [Self::U8, Self::I8, Self::U16, Self::I32, Self::I64, Self::F16, Self::Bf16, Self::F32, Self::Bool];

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }

    /// Its name, as in Rust.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::Bool => "bool",
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that a field's elements can be written from and read as: `u8`, `i8`, `u16`, `i32`, `i64`, `f32`, and `f16` and `bf16` of the
/// crate `half`. A `bool` field is one of `u8`: a byte that is neither 0 nor 1 is no `bool`.
pub trait Scalar: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// The element type of a field of these.
    const ELEMENT: Element;

    /// Whether elements of this type are read and written as `Self`.
    #[must_use]
    fn holds(element: Element) -> bool {
        element == Self::ELEMENT || (element == Element::Bool && Self::ELEMENT == Element::U8)
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! scalars {
    ($($rust:ty: $element:ident),+) => {$(
        impl sealed::Sealed for $rust {}
        impl Scalar for $rust {
            const ELEMENT: Element = Element::$element;
        }
    )+};
}

scalars!(u8: U8, i8: I8, u16: U16, i32: I32, i64: I64, f16: F16, bf16: Bf16, f32: F32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_is_as_large_as_its_element() {
        fn check<T: Scalar>() {
            assert_eq!(size_of::<T>(), T::ELEMENT.size());
            assert!(T::holds(T::ELEMENT));
        }
        check::<u8>();
        check::<i8>();
        check::<u16>();
        check::<i32>();
        check::<i64>();
        check::<f16>();
        check::<bf16>();
        check::<f32>();
        assert!(u8::holds(Element::Bool) && !u16::holds(Element::F16) && !i32::holds(Element::Bool));
    }
}
