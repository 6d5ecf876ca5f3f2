//! `.npy` files, read a sample at a time.

mod error;
mod header;
mod write;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use self::error::NpyError;
use self::header::{Element, Header};
pub use self::write::{NpyType, write_npy};
use super::column::Labels;
use super::mapped::MappedFile;
use super::stamp::Stamp;
use super::{Direct, OutOfRange, SampleContext, Source};
use crate::error::{LayoutError, SourceError};
use crate::layout::SampleLayout;
use crate::staging::SampleWriter;

/// The samples of a `.npy` file (versions 1 to 3, C order): one sample for each index of the first dimension.
///
/// | array | samples |
/// |---|---|
/// | u8, (N, H, W, C) with C of 1, 3 or 4 | images of H x W x C |
/// | u8, (N, H, W) | images of H x W x 1 |
/// | u8, any other shape (N, ...) | u8 arrays of the other dimensions |
/// | little-endian f32, (N, ...) | f32 arrays of the other dimensions |
///
/// The file stays open, and each read goes from its place in the file straight to staging memory, so the file may be
/// larger than memory. It must not change while it is open: after each read, and before each batch that a device reads by itself, its
/// length and its time of modification are compared with what they were, and a file that was changed is an error that names it.
/// (What a device is reading at the very moment cannot be told apart. A *software* device, whose reads of a file that is cut short
/// would end the process, does not read it by itself.)
#[derive(Debug)]
pub struct NpySource {
    file: Arc<WatchedFile>,
    /// Where the first sample starts.
    offset: u64,
    layout: SampleLayout,
    len: u64,
    labels: Option<Labels>,
    /// Mapped when a strategy first asks for it.
    mapped: OnceLock<Option<Arc<MappedFile>>>,
}

/// An open file, and what it looked like when it was opened.
#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    file: File,
    stamp: Stamp,
}

impl WatchedFile {
    fn unchanged(&self) -> Result<(), SourceError> {
        match self.stamp.is_of(&self.file) {
            Ok(true) => Ok(()),
            Ok(false) => Err(NpyError::Changed { path: self.path.clone() }.into()),
            Err(source) => Err(NpyError::Io { path: self.path.clone(), source }.into()),
        }
    }
}

impl NpySource {
    /// Opens a `.npy` file. Only its header is read.
    ///
    /// # Errors
    /// [`NpyError`], which names the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, NpyError> {
        let path = path.as_ref();
        let (file, header) = header::open(path, &[Element::U8, Element::F32], "`|u1` and `<f4`")?;
        if header.element == Element::F32 && cfg!(target_endian = "big") {
            return Err(NpyError::HostEndian { path: path.into() });
        }
        let layout = sample_layout(&header).map_err(|source| NpyError::Layout { path: path.into(), source })?;
        let stamp = Stamp::of(&file).map_err(|source| NpyError::Io { path: path.into(), source })?;
        Ok(Self {
            file: Arc::new(WatchedFile { path: path.into(), file, stamp }),
            offset: header.offset,
            layout,
            len: header.shape[0],
            labels: None,
            mapped: OnceLock::new(),
        })
    }

    /// The same source with labels from another `.npy` file: one dimension with one element a sample, of little-endian
    /// i64 or i32, or u8. They are held in memory, and become i64.
    ///
    /// # Errors
    /// [`NpyError`], which names the file with the labels.
    pub fn with_labels_npy(mut self, path: impl AsRef<Path>) -> Result<Self, NpyError> {
        let path = path.as_ref();
        let labels = Labels::new(&read_labels(path)?, self.len)
            .map_err(|source| NpyError::LabelCount { path: path.into(), source })?;
        self.layout = labels.add_to(&self.layout).map_err(|source| NpyError::Layout { path: path.into(), source })?;
        self.labels = Some(labels);
        Ok(self)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

impl Source for NpySource {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = sample.index;
        if index >= self.len {
            return Err(OutOfRange { index, len: self.len }.into());
        }
        // Opening checked that the end of the last sample fits a u64.
        let bytes = self.layout.byte_len();
        let offset = self.offset + index * bytes as u64;
        out.read_file(&self.file.file, offset, bytes).map_err(|source| NpyError::Read {
            path: self.file.path.clone(),
            index,
            source,
        })?;
        self.labels.as_ref().map_or(Ok(()), |labels| labels.write(index, out))?;
        self.file.unchanged()
    }

    /// The whole file, mapped shared and read-only. Only devices read the mapping; [`read`](Self::read) does not.
    fn direct(&self) -> Option<Direct> {
        let map = || {
            let mapped = MappedFile::new(&self.file.file);
            mapped
                .map(Arc::new)
                .inspect_err(|error| log::error!("{} cannot be mapped: {error}", self.file.path.display()))
                .ok()
        };
        let mapped = self.mapped.get_or_init(map).clone()?;
        let (file, offset, bytes) = (Arc::clone(&self.file), self.offset, self.layout.byte_len() as u64);
        let direct = Direct::new(mapped, move |index| offset.saturating_add(index.saturating_mul(bytes)));
        let direct = direct.with_check(move || file.unchanged());
        Some(match self.labels.clone() {
            Some(labels) => direct.with_host_fields(move |sample, out| labels.write(sample.index, out)),
            None => direct,
        })
    }
}

/// What one index of the first dimension is.
fn sample_layout(header: &Header) -> Result<SampleLayout, LayoutError> {
    let dims = header.shape[1..]
        .iter()
        .map(|&dim| usize::try_from(dim).map_err(|_| LayoutError::Overflow { what: "a sample's dimension" }))
        .collect::<Result<Vec<_>, _>>()?;
    match (header.element, &dims[..]) {
        (Element::U8, &[height, width, channels @ (1 | 3 | 4)]) => SampleLayout::image(height, width, channels),
        (Element::U8, &[height, width]) => SampleLayout::image(height, width, 1),
        (Element::F32, dims) => SampleLayout::f32(dims),
        (_, dims) => SampleLayout::bytes(dims),
    }
}

/// A whole list of labels. The file has exactly the length its header promises, so the list is no larger than that.
fn read_labels(path: &Path) -> Result<Vec<i64>, NpyError> {
    let wanted = [Element::I64, Element::I32, Element::U8];
    let (file, header) = header::open(path, &wanted, "`<i8`, `<i4` and `|u1` for labels")?;
    if header.shape.len() != 1 {
        return Err(NpyError::LabelRank { path: path.into(), rank: header.shape.len() });
    }
    // A file that grows meanwhile is not followed.
    let promised = header.shape[0].saturating_mul(header.element.bytes());
    let mut bytes = Vec::new();
    file.take(promised).read_to_end(&mut bytes).map_err(|source| NpyError::Io { path: path.into(), source })?;
    Ok(match header.element {
        Element::U8 => bytes.iter().map(|&label| label.into()).collect(),
        Element::I32 => bytes.as_chunks().0.iter().map(|&label| i32::from_le_bytes(label).into()).collect(),
        _ => bytes.as_chunks().0.iter().map(|&label| i64::from_le_bytes(label)).collect(),
    })
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::staging::SampleBuffer;

    /// A folder with one file in it: this array, followed by as many bytes as asked for.
    fn saved(dtype: NpyType, shape: &[usize], bytes: &[u8]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("samples.npy");
        write_npy(&path, dtype, shape, bytes).expect("written");
        (folder, path)
    }

    fn layout_of(dtype: NpyType, shape: &[usize]) -> SampleLayout {
        let bytes = vec![0; shape.iter().product::<usize>() * dtype.bytes()];
        let (_folder, path) = saved(dtype, shape, &bytes);
        NpySource::open(path).expect("a source").layout()
    }

    fn label(source: &NpySource, index: u64) -> Option<i64> {
        let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
        source.read(&SampleContext::of(index), &mut sample.writer()).expect("there");
        sample.label()
    }

    fn resize(path: &Path, change: i64) {
        let file = fs::OpenOptions::new().write(true).open(path).expect("the file");
        let len = file.metadata().expect("its length").len();
        file.set_len(len.checked_add_signed(change).expect("a length")).expect("resized");
    }

    #[test]
    fn the_shape_and_type_say_what_a_sample_is() {
        assert_eq!(layout_of(NpyType::U8, &[2, 5, 6, 3]), SampleLayout::image(5, 6, 3).expect("an image"));
        assert_eq!(layout_of(NpyType::U8, &[2, 5, 6, 2]), SampleLayout::bytes(&[5, 6, 2]).expect("bytes"));
        assert_eq!(layout_of(NpyType::U8, &[2, 5, 6]), SampleLayout::image(5, 6, 1).expect("grey"));
        assert_eq!(layout_of(NpyType::U8, &[2, 5]), SampleLayout::bytes(&[5]).expect("bytes"));
        assert_eq!(layout_of(NpyType::U8, &[2]), SampleLayout::bytes(&[]).expect("scalars"));
        assert_eq!(layout_of(NpyType::F32, &[2, 5, 6]), SampleLayout::f32(&[5, 6]).expect("floats"));
    }

    #[test]
    fn a_truncated_file_is_refused_with_its_missing_bytes() {
        let (_folder, path) = saved(NpyType::U8, &[10, 2, 2, 3], &[0; 120]);
        resize(&path, -7);
        let error = NpySource::open(&path).expect_err("truncated").to_string();
        assert!(error.contains("samples.npy: truncated: 7 of 248 bytes are missing"), "{error}");
    }

    #[test]
    fn bytes_after_the_end_are_refused() {
        let (_folder, path) = saved(NpyType::F32, &[10, 2], &[0; 80]);
        resize(&path, 3);
        let error = NpySource::open(&path).expect_err("too long").to_string();
        assert!(error.contains("3 bytes after the array's end"), "{error}");
    }

    #[test]
    fn a_file_that_shrinks_while_open_names_the_sample_and_the_file() {
        let (_folder, path) = saved(NpyType::U8, &[10, 4], &[9; 40]);
        let source = NpySource::open(&path).expect("whole");
        resize(&path, -6);
        let mut memory = [0; 4];
        let error =
            source.read(&SampleContext::of(7), &mut SampleWriter::over(&mut memory)).expect_err("changed").to_string();
        assert!(error.contains("samples.npy: the file was changed after it was opened"), "{error}");
        let error =
            source.read(&SampleContext::of(8), &mut SampleWriter::over(&mut memory)).expect_err("cut off").to_string();
        assert!(error.contains("samples.npy: reading sample 8:") && error.contains("2 bytes early"), "{error}");
    }

    #[test]
    fn labels_come_from_a_second_file_of_the_same_length() {
        let (folder, path) = saved(NpyType::U8, &[3, 4], &[0; 12]);
        let labels = folder.path().join("labels.npy");
        let open = || NpySource::open(&path).expect("a source").with_labels_npy(&labels);
        assert!(open().expect_err("no such file").to_string().contains("labels.npy"));
        let bytes = [-1i64, 1 << 40, 3].map(i64::to_le_bytes).concat();
        write_npy(&labels, NpyType::I64, &[3], &bytes).expect("written");
        let source = open().expect("three labels");
        assert_eq!([0, 1, 2].map(|index| label(&source, index)), [Some(-1), Some(1 << 40), Some(3)]);
        write_npy(&labels, NpyType::U8, &[3], &[7, 8, 255]).expect("written");
        assert_eq!(label(&open().expect("three labels"), 2), Some(255));
        write_npy(&labels, NpyType::U8, &[2], &[7, 8]).expect("written");
        assert!(open().expect_err("too few").to_string().contains("2 labels were given for 3 samples"));
        write_npy(&labels, NpyType::U8, &[3, 1], &[7, 8, 9]).expect("written");
        assert!(open().expect_err("a table").to_string().contains("one dimension, not 2"));
        write_npy(&labels, NpyType::F32, &[3], &[0; 12]).expect("written");
        assert!(open().expect_err("floats").to_string().contains("`<f4`"));
    }

    #[test]
    fn i32_labels_are_widened() {
        let (folder, path) = saved(NpyType::U8, &[2], &[0; 2]);
        let labels = folder.path().join("labels.npy");
        npyz::to_file_1d(&labels, [-5i32, 6]).expect("written");
        let source = NpySource::open(&path).expect("a source").with_labels_npy(&labels).expect("two labels");
        assert_eq!([label(&source, 0), label(&source, 1)], [Some(-5), Some(6)]);
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = NpySource::open(folder.path()).expect_err("a folder").to_string();
        assert!(error.contains("not a regular file"), "{error}");
        let error = NpySource::open(folder.path().join("none.npy")).expect_err("nothing there").to_string();
        assert!(error.contains("none.npy"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_sample_is_its_row_of_the_array(len in 1usize..9, dims in prop::collection::vec(1usize..5, 0..4)) {
            let row: usize = dims.iter().product();
            let bytes: Vec<u8> = (0..len * row).map(|i| (i * 31 % 251) as u8).collect();
            let shape: Vec<usize> = [&[len], &dims[..]].concat();
            let (_folder, path) = saved(NpyType::U8, &shape, &bytes);
            let source = NpySource::open(path).expect("a source");
            prop_assert_eq!(source.len(), len as u64);
            for (index, expected) in bytes.chunks_exact(row).enumerate() {
                let mut memory = vec![0; row];
                source.read(&SampleContext::of(index as u64), &mut SampleWriter::over(&mut memory)).expect("read");
                prop_assert_eq!(&memory[..], expected);
            }
        }
    }
}
