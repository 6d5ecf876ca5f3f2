//! `.npy` files, read a sample at a time.

mod element;
mod error;
mod header;
mod labels;
mod literal;
mod options;
mod planes;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use self::element::{ByteOrder, Element};
pub use self::error::NpyError;
use self::header::Header;
pub use self::options::{ChannelOrder, NpyOptions};
pub use self::write::{NpyType, write_npy, write_npy_to};
use super::column::Labels;
use super::digest::Digest;
use super::record_file::RecordFile;
use super::shown::Shown;
use super::{Direct, OutOfRange, SampleContext, Source};
use crate::error::{LayoutError, SourceError};
use crate::layout::{self, SampleLayout};
use crate::staging::SampleWriter;

/// NumPy's names of [`Element::SAMPLES`].
const SUPPORTED: &str = "`|u1`, `|b1`, `<u2`, `<f2`, `<i4`, `<f4` and `<i8`";

/// The samples of a `.npy` file (versions 1 to 3, C order): one sample for each index of the first dimension.
///
/// | array | samples |
/// |---|---|
/// | u8, (N, H, W, C) with C of 1, 3 or 4 | images of H x W x C |
/// | u8, (N, H, W) | images of H x W x 1 |
/// | u8, any other shape (N, ...) | u8 arrays of the other dimensions |
/// | bool, and little-endian u16, i32, i64, f16 and f32, (N, ...) | arrays of the other dimensions |
/// | u8, (N, C, H, W), opened [with its channels first](NpyOptions::channels_first) | images of H x W x C |
///
/// Everything else (other types, big-endian elements, Fortran order) is an error that says what to do. An array of NumPy's default type
/// f64 has to be saved as f32.
///
/// The file stays open, and each read goes from its position in the file straight to staging memory, so the file may be
/// larger than memory. It must not change while it is open: after each read, and before each batch that a device reads by
/// itself, its length and its time of modification are compared with what they were, and a file that was changed is an
/// error that names it ([`FileError::Changed`](super::FileError::Changed)). What a device is reading at that very moment
/// cannot be told apart. A *software* device, whose reads of a file that is cut short would end the process, does not read
/// it by itself.
#[derive(Debug)]
pub struct NpySource {
    /// Shared with what devices read of it.
    file: Arc<RecordFile>,
    layout: SampleLayout,
    len: u64,
    labels: Option<Labels>,
    /// The number of planes that an image is stored in, where they are put side by side.
    planes: Option<usize>,
    /// Made when it is first asked for.
    digest: OnceLock<Option<[u8; 16]>>,
}

impl NpySource {
    /// Opens a `.npy` file. Only its header is read.
    ///
    /// # Errors
    /// [`NpyError`], which names the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, NpyError> {
        Self::open_with(path, NpyOptions::default())
    }

    /// Opens a `.npy` file whose dimensions mean what the options say. Only its header is read.
    ///
    /// # Errors
    /// [`NpyError`], which names the file.
    pub fn open_with(path: impl AsRef<Path>, options: NpyOptions) -> Result<Self, NpyError> {
        let path = path.as_ref();
        let (file, mut header) = header::open(path, &Element::SAMPLES, SUPPORTED)?;
        if header.order == ByteOrder::Big {
            return Err(NpyError::BigEndian { path: path.into(), dtype: header.descr });
        }
        if header.element.bytes() > 1 && cfg!(target_endian = "big") {
            return Err(NpyError::HostEndian { path: path.into() });
        }
        let planes = match options.channels {
            ChannelOrder::Last => None,
            ChannelOrder::First => Some(channels_last(&mut header, path)?).filter(|&channels| channels > 1),
        };
        let element = header.element.of_field().ok_or_else(|| NpyError::ElementType {
            path: path.into(),
            dtype: header.descr.clone(),
            supported: SUPPORTED,
        })?;
        let layout =
            sample_layout(&header, element).map_err(|source| NpyError::Layout { path: path.into(), source })?;
        Ok(Self { file: Arc::new(file), layout, len: header.shape[0], labels: None, planes, digest: OnceLock::new() })
    }

    /// The same source with labels from another `.npy` file of shape (N,) or (N, 1), one element a sample, of any integer
    /// type or bool, in either byte order. They are held in memory, 8 bytes each.
    ///
    /// # Errors
    /// [`NpyError`], which names the file with the labels.
    pub fn with_labels_npy(self, path: impl AsRef<Path>) -> Result<Self, NpyError> {
        let path = path.as_ref();
        let labels = Labels::new(&labels::read(path)?, self.len)
            .map_err(|source| NpyError::LabelCount { path: path.into(), source })?;
        let layout = labels.add_to(&self.layout).map_err(|source| NpyError::Layout { path: path.into(), source })?;
        Ok(Self { layout, labels: Some(labels), digest: OnceLock::new(), ..self })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
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
        let bytes = self.layout.byte_len();
        match self.planes {
            None => self.file.read(index, bytes, out)?,
            Some(channels) => {
                let read = |planes: &mut [u8]| Ok(self.file.read(index, bytes, &mut SampleWriter::over(planes))?);
                planes::write(channels, bytes, read, out)?;
            }
        }
        self.labels.as_ref().map_or(Ok(()), |labels| labels.write(index, out))
    }

    /// The whole file, mapped shared and read-only. Only devices read the mapping; [`read`](Self::read) does not. `None` where the
    /// channels of images are put side by side.
    fn direct(&self) -> Option<Direct> {
        if self.planes.is_some() {
            return None;
        }
        let (file, offset, bytes) = (Arc::clone(&self.file), self.file.offset(), self.layout.byte_len() as u64);
        let direct = Direct::new(file.memory()?, move |index| offset.saturating_add(index.saturating_mul(bytes)));
        let direct = direct.with_check(move || Ok(file.unchanged()?));
        Some(match self.labels.clone() {
            Some(labels) => direct.with_host_fields(move |sample, out| labels.write(sample.index, out)),
            None => direct,
        })
    }

    fn file(&self, index: u64) -> Option<PathBuf> {
        (index < self.len).then(|| self.path().to_owned())
    }

    fn files(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
        Box::new(std::iter::once(self.path().to_owned()))
    }

    /// The header, the file's size, 4 MiB of its samples in 1,024 blocks, and all labels. A copy has the same digest.
    fn digest(&self) -> Option<[u8; 16]> {
        let make = || {
            let mut digest = Digest::new("npy");
            let read = self.file.digest(&mut digest);
            read.inspect_err(|error| log::error!("{}: no digest: {error}", Shown(self.path()))).ok()?;
            if self.planes.is_some() {
                digest.add(b"channels first");
            }
            digest.add_labels(self.labels.as_ref().map(Labels::integers));
            Some(digest.finish())
        };
        *self.digest.get_or_init(make)
    }
}

/// What one index of the first dimension is.
fn sample_layout(header: &Header, element: layout::Element) -> Result<SampleLayout, LayoutError> {
    let dims = header.shape[1..]
        .iter()
        .map(|&dim| usize::try_from(dim).map_err(|_| LayoutError::Overflow { what: "a sample's dimension" }))
        .collect::<Result<Vec<_>, _>>()?;
    match (element, &dims[..]) {
        (layout::Element::U8, &[height, width, channels @ (1 | 3 | 4)]) => SampleLayout::image(height, width, channels),
        (layout::Element::U8, &[height, width]) => SampleLayout::image(height, width, 1),
        (element, dims) => SampleLayout::array(element, dims),
    }
}

/// Makes (N, C, H, W) (N, H, W, C). Returns C.
fn channels_last(header: &mut Header, path: &Path) -> Result<usize, NpyError> {
    let refused =
        || NpyError::NotChannelsFirst { path: path.into(), dtype: header.descr.clone(), shape: header.shape.clone() };
    match (header.element, &header.shape[..]) {
        (Element::U8, &[samples, channels @ (1 | 3 | 4), height, width]) => {
            header.shape = vec![samples, height, width, channels];
            Ok(channels as usize)
        }
        _ => Err(refused()),
    }
}

#[cfg(all(test, not(miri)))]
mod numpy_tests;
#[cfg(all(test, not(miri)))]
mod tests;
