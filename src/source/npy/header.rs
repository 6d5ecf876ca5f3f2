//! The header of a `.npy` file: what is in the file, and where.
//!
//! The text of a header is a Python expression, parsed by `npyz`. It may lie: so its length is limited, and expressions
//! that would cost the parser more than linear time or overflow its arithmetic never reach it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, TypeStr};

use super::NpyError;
use crate::error::LayoutError;

/// The longest header text accepted, in bytes: NumPy's own limit.
const MAX_TEXT: usize = 10_000;
/// What every `.npy` file starts with.
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The element types that some part of gpufeed reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    U8,
    I32,
    I64,
    F32,
}

impl Element {
    /// Bytes of one element.
    pub(super) const fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }

    /// The element of a NumPy type in little-endian order, if it is one of ours.
    fn of(ty: &TypeStr) -> Option<Self> {
        match (ty.type_char(), ty.size_field(), ty.endianness()) {
            (TypeChar::Uint, 1, _) => Some(Self::U8),
            (TypeChar::Int, 4, Endianness::Little) => Some(Self::I32),
            (TypeChar::Int, 8, Endianness::Little) => Some(Self::I64),
            (TypeChar::Float, 4, Endianness::Little) => Some(Self::F32),
            _ => None,
        }
    }
}

/// A C-ordered, little-endian array in a file.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) element: Element,
    /// All dimensions, outermost first: at least one, and the first is not zero.
    pub(super) shape: Vec<u64>,
    /// Where in the file the elements start.
    pub(super) offset: u64,
}

/// Opens a `.npy` file whose length is exactly what its header promises, with elements among `wanted` (`supported` are
/// their names).
pub(super) fn open(path: &Path, wanted: &[Element], supported: &'static str) -> Result<(File, Header), NpyError> {
    let io_error = |source| NpyError::Io { path: path.into(), source };
    // Asked before opening, which would wait for the other end of a pipe.
    if !fs::metadata(path).map_err(io_error)?.is_file() {
        return Err(NpyError::NotNpy { path: path.into(), reason: "not a regular file" });
    }
    let mut file = File::open(path).map_err(io_error)?;
    let header = Header::read(path, &mut file, wanted, supported)?;
    let expected = header.file_bytes().ok_or_else(|| NpyError::Layout {
        path: path.into(),
        source: LayoutError::Overflow { what: "the array's byte count" },
    })?;
    let found = file.metadata().map_err(io_error)?.len();
    if found < expected {
        return Err(NpyError::Truncated { path: path.into(), missing: expected - found, expected });
    }
    if found > expected {
        return Err(NpyError::TrailingBytes { path: path.into(), extra: found - expected });
    }
    Ok((file, header))
}

impl Header {
    /// Reads the header from the start of a file. `path` is for messages only.
    pub(super) fn read(
        path: &Path,
        file: &mut dyn Read,
        wanted: &[Element],
        supported: &'static str,
    ) -> Result<Self, NpyError> {
        let raw = read_raw(path, file)?;
        let unusable = |reason| NpyError::Header { path: path.into(), reason };
        let header = NpyHeader::from_reader(&raw[..]).map_err(|error| unusable(shorten(&error.to_string())))?;
        let DType::Plain(ty) = header.dtype() else {
            return Err(unusable("a structured element type".into()));
        };
        let element = Element::of(&ty).filter(|element| wanted.contains(element));
        let dtype = ty.to_string();
        let element = match element {
            Some(element) => element,
            None if ty.endianness() == Endianness::Big => {
                return Err(NpyError::BigEndian { path: path.into(), dtype });
            }
            None => return Err(NpyError::ElementType { path: path.into(), dtype, supported }),
        };
        // With one dimension both orders are the same, and NumPy marks such arrays as it likes.
        if header.order() == Order::Fortran && header.shape().len() > 1 {
            return Err(NpyError::FortranOrder { path: path.into() });
        }
        match header.shape().first() {
            None => Err(NpyError::Scalar { path: path.into() }),
            Some(0) => Err(NpyError::Empty { path: path.into() }),
            Some(_) => Ok(Self { element, shape: header.shape().to_vec(), offset: raw.len() as u64 }),
        }
    }

    /// Bytes of the whole file, or `None` on overflow.
    fn file_bytes(&self) -> Option<u64> {
        let elements = self.shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))?;
        elements.checked_mul(self.element.bytes())?.checked_add(self.offset)
    }
}

/// Everything up to the first element, checked to be harmless to parse.
fn read_raw(path: &Path, file: &mut dyn Read) -> Result<Vec<u8>, NpyError> {
    let early_end = |source: io::Error| match source.kind() {
        io::ErrorKind::UnexpectedEof => NpyError::NotNpy { path: path.into(), reason: "it ends within the header" },
        _ => NpyError::Io { path: path.into(), source },
    };
    let unusable = |reason| NpyError::Header { path: path.into(), reason };
    let mut raw = vec![0; 8];
    file.read_exact(&mut raw).map_err(early_end)?;
    if !raw.starts_with(MAGIC) {
        return Err(NpyError::NotNpy { path: path.into(), reason: "it does not start with `\\x93NUMPY`" });
    }
    let length_bytes = match raw[6..] {
        [1, 0] => 2,
        [2 | 3, 0] => 4,
        _ => return Err(unusable(format!("version {}.{} is not known", raw[6], raw[7]))),
    };
    let mut length = [0; 4];
    file.read_exact(&mut length[..length_bytes]).map_err(early_end)?;
    raw.extend_from_slice(&length[..length_bytes]);
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_TEXT {
        return Err(unusable(format!("{length} bytes long, and at most {MAX_TEXT} are accepted")));
    }
    let start = raw.len();
    raw.resize(start + length, 0);
    file.read_exact(&mut raw[start..]).map_err(early_end)?;
    check_text(&raw[start..]).map_err(unusable)?;
    Ok(raw)
}

/// Refuses what the parser must not see: deep nesting, where it takes exponential time, and shapes whose product
/// overflows. What passes has at most a dictionary with one tuple of plain numbers in it.
fn check_text(text: &[u8]) -> Result<(), String> {
    let brackets = text.iter().filter(|byte| b"{[(".contains(byte)).count();
    if brackets > 2 || text.contains(&b'[') {
        return Err("not a plain array (structured element types are not supported)".into());
    }
    let shape = text
        .split(|&byte| byte == b'(')
        .nth(1)
        .and_then(|rest| rest.iter().position(|&byte| byte == b')').map(|end| &rest[..end]))
        .ok_or("it has no shape")?;
    let mut product = 1u64;
    for dim in shape.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|dim| !dim.is_empty()) {
        let dim: u64 = std::str::from_utf8(dim)
            .ok()
            .filter(|dim| dim.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|dim| dim.parse().ok())
            .ok_or_else(|| format!("`{}` is no usable dimension", shorten(&String::from_utf8_lossy(dim))))?;
        product = product.checked_mul(dim.max(1)).ok_or("the shape's element count overflows")?;
    }
    Ok(())
}

/// At most the first hundred characters, as the parser quotes the whole header.
fn shorten(message: &str) -> String {
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(100).collect()
}

#[cfg(all(test, not(miri)))]
#[path = "header_tests.rs"]
mod tests;
