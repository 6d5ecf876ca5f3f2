//! The header of a `.npy` file: what is in the file, and where.
//!
//! The text of a header may lie: so its length is limited, and the shape's element count may not overflow.

use std::io::{self, Read};
use std::path::Path;

use super::NpyError;
use super::element::{ByteOrder, Element};
use super::literal::Literal;
use crate::error::LayoutError;
use crate::source::record_file::{FileError, RecordFile};
use crate::source::shown::excerpt;

/// The longest header text accepted, in bytes: NumPy's own limit.
const MAX_TEXT: usize = 10_000;
/// What every `.npy` file starts with.
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// A C-ordered array in a file.
#[derive(Debug)]
pub(super) struct Header {
    /// NumPy's name of the element type, as it stands in the file.
    pub(super) descr: String,
    pub(super) element: Element,
    pub(super) order: ByteOrder,
    /// All dimensions, outermost first: at least one, and the first is not zero.
    pub(super) shape: Vec<u64>,
    /// Where in the file the elements start.
    pub(super) offset: u64,
}

/// Opens a `.npy` file whose length is exactly what its header promises, with elements among `wanted` (`supported` are
/// their names).
pub(super) fn open(path: &Path, wanted: &[Element], supported: &'static str) -> Result<(RecordFile, Header), NpyError> {
    let mut file = RecordFile::open(path)?;
    let header = Header::read(path, file.file(), wanted, supported)?;
    let expected = header.file_bytes().ok_or_else(|| NpyError::Layout {
        path: path.into(),
        source: LayoutError::Overflow { what: "the array's byte count" },
    })?;
    let found = file.len();
    if found < expected {
        return Err(NpyError::Truncated { path: path.into(), missing: expected - found, expected });
    }
    if found > expected {
        return Err(NpyError::TrailingBytes { path: path.into(), extra: found - expected });
    }
    Ok((file.starting_at(header.offset), header))
}

impl Header {
    /// Reads the header from the start of a file. `path` is for messages only.
    pub(super) fn read(
        path: &Path,
        file: &mut dyn Read,
        wanted: &[Element],
        supported: &'static str,
    ) -> Result<Self, NpyError> {
        let raw = Raw::read(path, file)?;
        let unusable = |reason| NpyError::Header { path: path.into(), reason };
        let Literal { descr, fortran_order, shape } = Literal::parse(&raw.text).map_err(unusable)?;
        let known = Element::of(&descr).filter(|(element, _)| wanted.contains(element));
        let Some((element, order)) = known else {
            return Err(NpyError::ElementType { path: path.into(), dtype: excerpt(&descr), supported });
        };
        shape
            .iter()
            .try_fold(1u64, |product, &dim| product.checked_mul(dim.max(1)))
            .ok_or_else(|| unusable("the shape's element count overflows".to_owned()))?;
        // Unless two dimensions are longer than one both orders are the same, and NumPy marks such arrays as it likes.
        if fortran_order && shape.iter().filter(|&&dim| dim > 1).count() > 1 {
            return Err(NpyError::FortranOrder { path: path.into() });
        }
        match shape.first() {
            None => Err(NpyError::Scalar { path: path.into() }),
            Some(0) => Err(NpyError::Empty { path: path.into() }),
            Some(_) => Ok(Self { descr, element, order, shape, offset: raw.offset }),
        }
    }

    /// Bytes of the elements, or `None` on overflow.
    pub(super) fn content_bytes(&self) -> Option<u64> {
        let elements = self.shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))?;
        elements.checked_mul(self.element.bytes())
    }

    /// Bytes of the whole file, or `None` on overflow.
    fn file_bytes(&self) -> Option<u64> {
        self.content_bytes()?.checked_add(self.offset)
    }
}

/// Everything up to the first element.
struct Raw {
    text: String,
    offset: u64,
}

impl Raw {
    fn read(path: &Path, file: &mut dyn Read) -> Result<Self, NpyError> {
        let early_end = |source: io::Error| match source.kind() {
            io::ErrorKind::UnexpectedEof => NpyError::NotNpy { path: path.into(), reason: "it ends within the header" },
            _ => FileError::Open { path: path.into(), source }.into(),
        };
        let unusable = |reason| NpyError::Header { path: path.into(), reason };
        let mut start = [0; 8];
        file.read_exact(&mut start).map_err(early_end)?;
        if !start.starts_with(MAGIC) {
            return Err(NpyError::NotNpy { path: path.into(), reason: "it does not start with `\\x93NUMPY`" });
        }
        let length_bytes = match start[6..] {
            [1, 0] => 2,
            [2 | 3, 0] => 4,
            _ => return Err(unusable(format!("version {}.{} is not known", start[6], start[7]))),
        };
        let mut length = [0; 4];
        file.read_exact(&mut length[..length_bytes]).map_err(early_end)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_TEXT {
            return Err(unusable(format!("{length} bytes long, and at most {MAX_TEXT} are accepted")));
        }
        let mut text = vec![0; length];
        file.read_exact(&mut text).map_err(early_end)?;
        let offset = (start.len() + length_bytes + length) as u64;
        let text = String::from_utf8(text).map_err(|_| unusable("it is no text in UTF-8".to_owned()))?;
        Ok(Self { text, offset })
    }
}

#[cfg(all(test, not(miri)))]
#[path = "header_tests.rs"]
mod tests;
