//! Writing `.npy` files.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// The element type of a `.npy` file to be written; all are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NpyType {
    /// 8-bit unsigned integers.
    U8,
    /// One byte, 0 or 1.
    Bool,
    /// 16-bit unsigned integers.
    U16,
    /// 16-bit IEEE 754 floats.
    F16,
    /// 32-bit signed integers.
    I32,
    /// 32-bit IEEE 754 floats.
    F32,
    /// 64-bit signed integers.
    I64,
    /// 64-bit unsigned integers.
    U64,
}

impl NpyType {
    /// NumPy's name of the type.
    #[must_use]
    pub const fn descr(self) -> &'static str {
        match self {
            Self::U8 => "|u1",
            Self::Bool => "|b1",
            Self::U16 => "<u2",
            Self::F16 => "<f2",
            Self::I32 => "<i4",
            Self::F32 => "<f4",
            Self::I64 => "<i8",
            Self::U64 => "<u8",
        }
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::Bool => 1,
            Self::U16 | Self::F16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::U64 => 8,
        }
    }
}

/// Writes a C-ordered array as a `.npy` file (version 1.0), replacing the file if it exists.
///
/// `bytes` are the elements in little-endian order: `shape`'s product times [`NpyType::bytes`]. An empty `shape` is a
/// single value.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] where `bytes` has another length than `shape` asks for (nothing is written then);
/// otherwise what the system says.
pub fn write_npy(path: impl AsRef<Path>, dtype: NpyType, shape: &[usize], bytes: &[u8]) -> io::Result<()> {
    let header = header(dtype, shape, bytes)?;
    let mut file = File::create(path)?;
    file.write_all(&header)?;
    file.write_all(bytes)
}

/// Writes the same to anything that takes bytes.
///
/// # Errors
/// As [`write_npy`].
pub fn write_npy_to(mut out: impl Write, dtype: NpyType, shape: &[usize], bytes: &[u8]) -> io::Result<()> {
    out.write_all(&header(dtype, shape, bytes)?)?;
    out.write_all(bytes)
}

/// Everything before the elements, padded so that they start at a multiple of 64 bytes.
fn header(dtype: NpyType, shape: &[usize], bytes: &[u8]) -> io::Result<Vec<u8>> {
    const BEFORE_TEXT: usize = 10;
    let needed = shape.iter().try_fold(dtype.bytes(), |product, &dim| product.checked_mul(dim));
    if needed != Some(bytes.len()) {
        let message = format!("{} bytes are no array of {shape:?} elements `{}`", bytes.len(), dtype.descr());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // A trailing comma, as a tuple of one needs it.
    let dims: String = shape.iter().map(|dim| format!("{dim},")).collect();
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({dims}), }}", dtype.descr());
    let padded = (BEFORE_TEXT + text.len() + 1).next_multiple_of(64) - BEFORE_TEXT;
    text.extend(std::iter::repeat_n(' ', padded - text.len() - 1));
    text.push('\n');
    let length = u16::try_from(text.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "too many dimensions for a .npy header"))?;
    Ok([b"\x93NUMPY\x01\x00", &length.to_le_bytes()[..], text.as_bytes()].concat())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::layout::SampleLayout;
    use crate::source::{NpySource, Source};

    #[test]
    fn every_type_is_written_as_numpy_names_it_and_aligned() {
        for (dtype, shape, dims) in [
            (NpyType::U8, &[2, 1][..], "(2,1,)"),
            (NpyType::Bool, &[3], "(3,)"),
            (NpyType::U16, &[1, 2], "(1,2,)"),
            (NpyType::F16, &[1], "(1,)"),
            (NpyType::I32, &[2], "(2,)"),
            (NpyType::F32, &[], "()"),
            (NpyType::I64, &[0, 3], "(0,3,)"),
            (NpyType::U64, &[2], "(2,)"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("a.npy");
            let bytes: Vec<u8> = (0..(shape.iter().product::<usize>() * dtype.bytes()) as u8).collect();
            write_npy(&path, dtype, shape, &bytes).expect("written");
            let file = std::fs::read(&path).expect("read");
            let start = file.len() - bytes.len();
            assert_eq!((start % 64, &file[start..]), (0, &bytes[..]), "the elements are aligned");
            let text = String::from_utf8_lossy(&file[10..start]);
            let descr = dtype.descr();
            assert_eq!(text.trim_end(), format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}"));
        }
    }

    #[test]
    fn what_was_written_is_a_source() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        write_npy(&path, NpyType::U8, &[5, 2, 2, 3], &[1; 60]).expect("written");
        let source = NpySource::open(&path).expect("a source");
        assert_eq!((source.len(), source.layout()), (5, SampleLayout::image(2, 2, 3).expect("an image")));
    }

    #[test]
    fn bytes_of_another_length_than_the_shape_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        for shape in [&[3][..], &[usize::MAX, 2], &[]] {
            let error = write_npy(&path, NpyType::F32, shape, &[0; 8]).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        assert!(!path.exists());
    }
}
