//! The same images as PNG files, as lossless WebP files and as one `.npy` file, and a reader of `.npy` files.

use std::fs;
use std::path::{Path, PathBuf};

use gpufeed::source::{NpyType, write_npy};
use tempfile::TempDir;

pub const IMAGES: usize = 7;
pub const HEIGHT: usize = 9;
pub const WIDTH: usize = 13;
pub const BYTES: usize = HEIGHT * WIDTH * 3;

/// A folder with data in it, which goes with the value.
pub struct Data {
    pub folder: TempDir,
    /// What `gpufeed run` is given.
    pub path: PathBuf,
}

impl Data {
    pub fn arg(&self) -> &str {
        self.path.to_str().expect("a path in ASCII")
    }
}

/// Bytes in which no two pixels in a row are equal; the pixels of all images, HWC.
pub fn pixels() -> Vec<u8> {
    (0..IMAGES * BYTES).map(|place| (place * 151 % 256) as u8 ^ (place / 256) as u8).collect()
}

/// The first four images are of class 0, the others of class 1.
pub fn label(index: usize) -> i64 {
    i64::from(index >= 4)
}

/// The images as files of this extension, in a folder a class.
pub fn folder_of(extension: &str) -> Data {
    let folder = tempfile::tempdir().expect("a folder");
    for (index, image) in pixels().chunks_exact(BYTES).enumerate() {
        let class = folder.path().join(["cat", "dog"][usize::from(index >= 4)]);
        fs::create_dir_all(&class).expect("a class");
        let image = image::RgbImage::from_raw(WIDTH as u32, HEIGHT as u32, image.to_vec()).expect("an image");
        image.save(class.join(format!("{index}.{extension}"))).expect("saved");
    }
    let path = folder.path().to_owned();
    Data { folder, path }
}

/// The images as an array, with their labels beside it.
pub fn array() -> Data {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("images.npy");
    write_npy(&path, NpyType::U8, &[IMAGES, HEIGHT, WIDTH, 3], &pixels()).expect("written");
    let labels: Vec<u8> = (0..IMAGES).flat_map(|index| label(index).to_le_bytes()).collect();
    write_npy(folder.path().join("images.labels.npy"), NpyType::I64, &[IMAGES], &labels).expect("written");
    Data { folder, path }
}

/// `samples` equal samples of `bytes` bytes.
#[cfg(unix)]
pub fn blank(samples: usize, bytes: usize) -> Data {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("blank.npy");
    write_npy(&path, NpyType::U8, &[samples, bytes], &vec![7; samples * bytes]).expect("written");
    Data { folder, path }
}

/// A saved array: NumPy's name of its type, its shape, and its bytes.
pub struct Array {
    pub dtype: String,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Array {
    /// Reads version 1.0, written in C order, by the format's description and not by the library's reader.
    pub fn read(path: &Path) -> Self {
        let file = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(file[..8], *b"\x93NUMPY\x01\x00", "{}", path.display());
        let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        let header = std::str::from_utf8(&file[10..end]).expect("a header");
        assert!(header.contains("'fortran_order': False"), "{header}");
        let between = |from: &str, to: &str| {
            let rest = header.split_once(from).expect("the key").1;
            rest.split_once(to).expect("its end").0.to_owned()
        };
        let dims = between("'shape': (", ")");
        let shape = dims.split(',').filter(|dim| !dim.trim().is_empty());
        let shape = shape.map(|dim| dim.trim().parse().expect("a dimension")).collect();
        Self { dtype: between("'descr': '", "'"), shape, bytes: file[end..].to_vec() }
    }

    pub fn i64s(&self) -> Vec<i64> {
        assert_eq!(self.dtype, "<i8");
        self.bytes.as_chunks().0.iter().map(|&value| i64::from_le_bytes(value)).collect()
    }

    pub fn floats(&self) -> Vec<f64> {
        match self.dtype.as_str() {
            "<f4" => self.bytes.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value).into()).collect(),
            "<f2" => self.bytes.as_chunks().0.iter().map(|&value| half::f16::from_le_bytes(value).into()).collect(),
            other => panic!("{other} are no floats"),
        }
    }
}
