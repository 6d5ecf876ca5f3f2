//! Where samples come from.
//!
//! A [`Source`] is random access by index, and several threads read it at once. gpufeed brings sources for memory, `.npy`
//! files, folders of images and tar shards; anything else is a small `impl Source` (see the example `02-custom-source`).

mod column;
mod context;
#[cfg(feature = "images")]
mod decode;
#[cfg(any(feature = "images", feature = "npy"))]
mod digest;
mod direct;
#[cfg(feature = "images")]
mod folder;
mod identity;
#[cfg(feature = "images")]
mod left_out;
mod memory;
#[cfg(feature = "npy")]
mod npy;
mod open;
mod ragged;
#[cfg(any(feature = "images", feature = "npy"))]
mod record_file;
mod shown;
mod summary;
mod synthetic;
#[cfg(feature = "images")]
mod tar;

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{LayoutError, SourceError};
use crate::layout::SampleLayout;
use crate::staging::SampleWriter;

pub use context::SampleContext;
#[cfg(feature = "images")]
pub use decode::{
    Damaged, DamagedImage, DamagedImages, DecodeOptions, Decoder, DecoderUnavailable, Fit, ImageError, ImageOptions,
    ImageProblem, UnknownDecoder,
};
pub use direct::Direct;
#[cfg(feature = "images")]
pub use folder::{FolderError, FolderOptions, FolderSource};
pub use identity::FileIdentity;
pub use memory::MemorySource;
#[cfg(feature = "npy")]
pub use npy::{ChannelOrder, NpyError, NpyOptions, NpySource, NpyType, write_npy, write_npy_to};
pub use open::{OpenOptions, SourceOpenError, open_path};
pub use ragged::RaggedError;
#[cfg(any(feature = "images", feature = "npy"))]
pub use record_file::FileError;
pub use summary::{Class, LeftOut, LeftOutReason, SourceSummary};
pub use synthetic::{SyntheticSource, random_images};
#[cfg(feature = "images")]
pub use tar::{TarError, TarLabels, TarOptions, TarProblem, TarSampleError, TarSource};

/// A sample was asked for that the source does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sample {index} does not exist: the source has {len}")]
pub struct OutOfRange {
    /// The index asked for.
    pub index: u64,
    /// The number of samples.
    pub len: u64,
}

/// The number of labels is not the number of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{labels} labels were given for {samples} samples")]
pub struct LabelCount {
    /// The number of labels given.
    pub labels: u64,
    /// The number of samples.
    pub samples: u64,
}

/// Labels do not fit their samples.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// There are more or fewer than samples.
    #[error(transparent)]
    Count(#[from] LabelCount),
    /// The samples have a field of that name already.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// A set of equal samples that can be read in any order, from several threads at once.
///
/// ```
/// use gpufeed::{SampleContext, SampleLayout, SampleWriter, Source, SourceError};
///
/// /// A thousand grey squares, each darker than the one before.
/// struct Squares(SampleLayout);
///
/// impl Source for Squares {
///     fn layout(&self) -> SampleLayout {
///         self.0.clone()
///     }
///     fn len(&self) -> u64 {
///         1000
///     }
///     fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
///         let grey = 255 - (sample.index * 255 / 1000) as u8;
///         out.write(&vec![grey; out.len()])?;
///         Ok(())
///     }
/// }
/// # let squares = Squares(SampleLayout::image(8, 8, 1)?);
/// # let mut memory = [0; 64];
/// # squares.read(&SampleContext::of(999), &mut SampleWriter::over(&mut memory))?;
/// # assert_eq!(memory, [1; 64]);
/// # Ok::<(), SourceError>(())
/// ```
///
/// Samples with a label, or with several fields, name them in their [layout](SampleLayout::with_label) and write each:
///
/// ```
/// # use gpufeed::{Element, SampleContext, SampleLayout, SampleWriter, Source, SourceError};
/// # struct Squares;
/// # impl Source for Squares {
/// #     fn layout(&self) -> SampleLayout {
/// #         let layout = SampleLayout::image(8, 8, 1).and_then(|layout| layout.with_label(Element::I64));
/// #         layout.expect("a valid layout")
/// #     }
/// #     fn len(&self) -> u64 {
/// #         1000
/// #     }
/// fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
///     out.write(&[0; 64])?;
///     out.label(sample.index as i64 % 10)?;
///     Ok(())
/// }
/// # }
/// ```
pub trait Source: Send + Sync {
    /// What every sample is. A loader asks once, when it is opened.
    fn layout(&self) -> SampleLayout;

    /// The number of samples. A loader asks once, when it is opened.
    fn len(&self) -> u64;

    /// Whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes a sample (its index is below [`len`](Self::len)): every field, all of it, from front to back, and of
    /// [ragged](crate::Field::ragged) ones the rows that it has. Fields may be written in any order, and in turns.
    ///
    /// Called from several threads at once. It may block; it should not wait for other samples.
    ///
    /// # Errors
    /// Anything; it reaches the user as [`LoadError::Sample`](crate::LoadError::Sample) with the index.
    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError>;

    /// The memory that all samples lie in, for strategies that let the device read it by itself; `None` where there is none.
    fn direct(&self) -> Option<Direct> {
        None
    }

    /// The names of the labels, and what was left out of the samples.
    fn summary(&self) -> SourceSummary {
        SourceSummary::default()
    }

    /// The file that sample `index` is read from, where there is one.
    fn file(&self, index: u64) -> Option<PathBuf> {
        let _ = index;
        None
    }

    /// Every file that samples are read from, each once where it is known; also one without a sample.
    fn files(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
        let mut before = None;
        let files = (0..self.len()).filter_map(|index| self.file(index));
        Box::new(files.filter(move |file| before.replace(file.clone()).as_ref() != Some(file)))
    }

    /// What sample `index` is called in its file, where several samples lie in one: an archive's member.
    fn member(&self, index: u64) -> Option<String> {
        let _ = index;
        None
    }

    /// What identifies the samples: equal for a copy of the data, different for other data. Tokens to
    /// [resume](crate::Loader::resume) keep it, and refuse other data. `None` where there is none, which equals `None`.
    ///
    /// It may read a part of the samples when it is first asked for, and should keep the answer.
    fn digest(&self) -> Option<[u8; 16]> {
        None
    }
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn layout(&self) -> SampleLayout {
        (**self).layout()
    }

    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        (**self).read(sample, out)
    }

    fn direct(&self) -> Option<Direct> {
        (**self).direct()
    }

    fn summary(&self) -> SourceSummary {
        (**self).summary()
    }

    fn file(&self, index: u64) -> Option<PathBuf> {
        (**self).file(index)
    }

    fn files(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
        (**self).files()
    }

    fn member(&self, index: u64) -> Option<String> {
        (**self).member(index)
    }

    fn digest(&self) -> Option<[u8; 16]> {
        (**self).digest()
    }
}
