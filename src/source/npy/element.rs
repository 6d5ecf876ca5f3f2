//! The element types of `.npy` files.

use crate::layout;

/// An element type that some part of gpufeed reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
}

/// Where the most significant byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl Element {
    pub(super) const INTEGERS: [Self; 9] =
        [Self::Bool, Self::I8, Self::U8, Self::I16, Self::U16, Self::I32, Self::U32, Self::I64, Self::U64];

    /// What samples can be made of.
    pub(super) const SAMPLES: [Self; 7] = [Self::U8, Self::Bool, Self::U16, Self::F16, Self::I32, Self::F32, Self::I64];

    /// The element of a field, where there are fields of this type.
    pub(super) fn of_field(self) -> Option<layout::Element> {
        Some(match self {
            Self::Bool => layout::Element::Bool,
            Self::U8 => layout::Element::U8,
            Self::U16 => layout::Element::U16,
            Self::I32 => layout::Element::I32,
            Self::I64 => layout::Element::I64,
            Self::F16 => layout::Element::F16,
            Self::F32 => layout::Element::F32,
            Self::I8 | Self::I16 | Self::U32 | Self::U64 => return None,
        })
    }

    /// Bytes of one element.
    pub(super) const fn bytes(self) -> u64 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 => 8,
        }
    }

    /// The element of one of NumPy's names: `<f4` as it writes them, and `float32` or `f` as it reads them.
    pub(super) fn of(descr: &str) -> Option<(Self, ByteOrder)> {
        let (name, order) = match descr.split_at_checked(1)? {
            (">", name) => (name, ByteOrder::Big),
            ("<" | "|", name) => (name, ByteOrder::Little),
            ("=", name) => (name, NATIVE),
            _ => (descr, NATIVE),
        };
        let element = match name {
            "b1" | "?" | "bool" => Self::Bool,
            "i1" | "b" | "int8" => Self::I8,
            "u1" | "B" | "uint8" => Self::U8,
            "i2" | "h" | "int16" => Self::I16,
            "u2" | "H" | "uint16" => Self::U16,
            "i4" | "i" | "int32" => Self::I32,
            "u4" | "I" | "uint32" => Self::U32,
            "i8" | "q" | "int64" => Self::I64,
            "u8" | "Q" | "uint64" => Self::U64,
            "f2" | "e" | "float16" => Self::F16,
            "f4" | "f" | "float32" => Self::F32,
            _ => return None,
        };
        // A single byte has no order, whatever its name says.
        Some((element, if element.bytes() == 1 { ByteOrder::Little } else { order }))
    }

    /// Little- or big-endian integers as i64; `Err` is the position of the first that does not fit.
    pub(super) fn integers(self, bytes: &[u8], order: ByteOrder) -> Result<Vec<i64>, usize> {
        let width = self.bytes() as usize;
        let value = |(position, bytes): (usize, &[u8])| self.integer(bytes, order).ok_or(position);
        bytes.chunks_exact(width).enumerate().map(value).collect()
    }

    fn integer(self, bytes: &[u8], order: ByteOrder) -> Option<i64> {
        // The value in the low bytes of eight, least significant first.
        let mut wide = [0; 8];
        let low = &mut wide[..bytes.len()];
        low.copy_from_slice(bytes);
        if order == ByteOrder::Big {
            low.reverse();
        }
        let (value, unused) = (u64::from_le_bytes(wide), 64 - 8 * bytes.len());
        match self {
            Self::Bool => Some(i64::from(value != 0)),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Some((value << unused).cast_signed() >> unused),
            _ => i64::try_from(value).ok(),
        }
    }
}

const NATIVE: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_numpy_and_of_its_users_are_known() {
        let little = |element| Some((element, ByteOrder::Little));
        assert_eq!(Element::of("<f4"), little(Element::F32));
        assert_eq!(Element::of("|u1"), little(Element::U8));
        assert_eq!(Element::of(">u1"), little(Element::U8));
        assert_eq!(Element::of("uint8"), little(Element::U8));
        assert_eq!(Element::of("?"), little(Element::Bool));
        assert_eq!(Element::of(">i8"), Some((Element::I64, ByteOrder::Big)));
        assert_eq!(Element::of("=f4"), Some((Element::F32, NATIVE)));
        assert_eq!(Element::of("<f2"), little(Element::F16));
        for other in ["", "<", "<f8", "|O", "|S4", "<c8", "u1 ", "é"] {
            assert_eq!(Element::of(other), None, "{other}");
        }
    }

    #[test]
    fn samples_have_elements_of_the_same_size_as_the_file() {
        for element in Element::SAMPLES {
            let field = element.of_field().expect("a field can have it");
            assert_eq!(field.size() as u64, element.bytes(), "{element:?}");
        }
    }

    #[test]
    fn integers_widen_with_their_sign_in_either_order() {
        let integers = |element: Element, bytes: &[u8], order| element.integers(bytes, order);
        assert_eq!(integers(Element::I8, &[0x80, 0x7f], ByteOrder::Little), Ok(vec![-128, 127]));
        assert_eq!(integers(Element::U16, &[0xfe, 0xff], ByteOrder::Little), Ok(vec![0xfffe]));
        assert_eq!(integers(Element::I16, &[0xff, 0xfe], ByteOrder::Big), Ok(vec![-2]));
        assert_eq!(integers(Element::U32, &[0, 0, 1, 2], ByteOrder::Big), Ok(vec![258]));
        assert_eq!(integers(Element::Bool, &[0, 1, 7], ByteOrder::Little), Ok(vec![0, 1, 1]));
        assert_eq!(integers(Element::I64, &i64::MIN.to_be_bytes(), ByteOrder::Big), Ok(vec![i64::MIN]));
        let large = [1u64.to_le_bytes(), (1u64 << 63).to_le_bytes()].concat();
        assert_eq!(integers(Element::U64, &large, ByteOrder::Little), Err(1));
    }
}
