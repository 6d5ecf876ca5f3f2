//! Labels from a `.npy` file.

use std::io::Read;
use std::path::Path;

use super::element::Element;
use super::{NpyError, header};
use crate::source::FileError;

/// A whole list of labels, of any integer type in either byte order. The file has exactly the length its header promises,
/// so the list is no larger than that.
pub(super) fn read(path: &Path) -> Result<Vec<i64>, NpyError> {
    let (mut file, header) = header::open(path, &Element::INTEGERS, "all integers and `|b1` for labels")?;
    if !matches!(header.shape[..], [_] | [_, 1]) {
        return Err(NpyError::LabelShape { path: path.into(), shape: header.shape });
    }
    // A file that grows meanwhile is not followed.
    let promised = header.content_bytes().unwrap_or_default();
    let mut bytes = Vec::new();
    let read = file.file().take(promised).read_to_end(&mut bytes);
    read.map_err(|source| FileError::Open { path: path.into(), source })?;
    let labels = header.element.integers(&bytes, header.order);
    labels.map_err(|index| NpyError::LabelValue { path: path.into(), index })
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::fs;

    use super::*;

    fn labels(descr: &str, fortran: &str, shape: &str, bytes: &[u8]) -> Result<Vec<i64>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("labels.npy");
        let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let file = [b"\x93NUMPY\x01\0", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), bytes].concat();
        fs::write(&path, file).expect("written");
        read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn every_integer_type_in_either_order_widens() {
        assert_eq!(labels("|i1", "False", "(2,)", &[0xff, 3]), Ok(vec![-1, 3]));
        assert_eq!(labels("|b1", "False", "(2,)", &[0, 1]), Ok(vec![0, 1]));
        assert_eq!(labels("<i2", "False", "(2,)", &[0xfe, 0xff, 1, 0]), Ok(vec![-2, 1]));
        assert_eq!(labels(">u2", "False", "(2,)", &[0xfe, 0xff, 1, 0]), Ok(vec![0xfeff, 256]));
        assert_eq!(labels("<i4", "False", "(1,)", &(-5i32).to_le_bytes()), Ok(vec![-5]));
        assert_eq!(labels("<u4", "False", "(1,)", &u32::MAX.to_le_bytes()), Ok(vec![0xffff_ffff]));
        assert_eq!(labels(">i8", "False", "(1,)", &i64::MIN.to_be_bytes()), Ok(vec![i64::MIN]));
        assert_eq!(labels("<u8", "False", "(1,)", &7u64.to_le_bytes()), Ok(vec![7]));
    }

    #[test]
    fn a_column_is_a_list_in_either_order_and_a_table_is_none() {
        for fortran in ["True", "False"] {
            assert_eq!(labels("|u1", fortran, "(3, 1)", &[7, 8, 9]), Ok(vec![7, 8, 9]));
        }
        let error = labels("|u1", "False", "(1, 3)", &[7, 8, 9]).expect_err("a row");
        assert!(error.contains("labels.npy: labels have the shape (N,) or (N, 1), not [1, 3]"), "{error}");
    }

    #[test]
    fn what_no_i64_holds_is_named() {
        let error = labels("<u8", "False", "(2,)", &[7u64, 1 << 63].map(u64::to_le_bytes).concat()).expect_err("large");
        assert!(error.contains("labels.npy: label 1 is larger than any i64"), "{error}");
        let error = labels("<f4", "False", "(1,)", &[0; 4]).expect_err("floats");
        assert!(error.contains("labels.npy: elements of type `<f4`; supported are all integers"), "{error}");
    }
}
