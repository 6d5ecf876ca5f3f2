//! Where samples come from.
//!
//! A [`Source`] is random access by index, and several threads read it at once. gpufeed brings sources for memory, `.npy`
//! files and folders of images; anything else is a small `impl Source` (see the example `02-custom-source`).

#[cfg(feature = "images")]
mod decode;
#[cfg(any(feature = "images", feature = "npy"))]
mod digest;
#[cfg(feature = "images")]
mod folder;
mod identity;
mod memory;
#[cfg(feature = "npy")]
mod npy;
mod open;
#[cfg(feature = "npy")]
mod record_file;
mod shown;
mod summary;
mod synthetic;

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::SourceError;
use crate::layout::SampleLayout;
use crate::memory::StableHostMemory;
use crate::staging::SampleWriter;

#[cfg(feature = "images")]
pub use decode::{
    Damaged, DamagedImage, DamagedImages, DecodeOptions, Decoder, DecoderUnavailable, ImageError, ImageProblem,
    UnknownDecoder,
};
#[cfg(feature = "images")]
pub use folder::{Fit, FolderError, FolderOptions, FolderSource};
pub use identity::FileIdentity;
pub use memory::MemorySource;
#[cfg(feature = "npy")]
pub use npy::{NpyError, NpySource, NpyType, write_npy, write_npy_to};
pub use open::{OpenOptions, SourceOpenError, open_path};
#[cfg(feature = "npy")]
pub use record_file::FileError;
pub use summary::{Class, LeftOut, LeftOutReason, SourceSummary};
pub use synthetic::{SyntheticSource, random_images};

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

/// A set of equal samples that can be read in any order, from several threads at once.
///
/// ```
/// use gpufeed::{SampleLayout, SampleWriter, Source, SourceError};
///
/// /// A thousand grey squares, each darker than the one before.
/// struct Squares(SampleLayout);
///
/// impl Source for Squares {
///     fn layout(&self) -> SampleLayout {
///         self.0
///     }
///     fn len(&self) -> u64 {
///         1000
///     }
///     fn read(&self, index: u64, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
///         let grey = 255 - (index * 255 / 1000) as u8;
///         out.write(&vec![grey; out.len()])?;
///         Ok(())
///     }
/// }
/// # let squares = Squares(SampleLayout::image(8, 8, 1)?);
/// # let mut memory = [0; 64];
/// # squares.read(999, &mut SampleWriter::over(&mut memory))?;
/// # assert_eq!(memory, [1; 64]);
/// # Ok::<(), SourceError>(())
/// ```
pub trait Source: Send + Sync {
    /// What every sample is. Constant for the life of the source.
    fn layout(&self) -> SampleLayout;

    /// The number of samples. Constant for the life of the source.
    fn len(&self) -> u64;

    /// Whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes sample `index` (below [`len`](Self::len)), all of it, from front to back.
    ///
    /// Called from several threads at once. It may block; it should not wait for other samples.
    ///
    /// # Errors
    /// Anything; it reaches the user as [`LoadError::Sample`](crate::LoadError::Sample) with the index.
    fn read(&self, index: u64, out: &mut SampleWriter<'_>) -> Result<(), SourceError>;

    /// The memory that all samples lie in, for strategies that let the device read it by itself; `None` where there is none.
    fn memory(&self) -> Option<Arc<dyn StableHostMemory>> {
        None
    }

    /// The byte offset of sample `index` in [`memory`](Self::memory). Asked only where there is such memory.
    fn position(&self, index: u64) -> u64 {
        index.saturating_mul(self.layout().byte_len() as u64)
    }

    /// Called before each batch that a device reads from [`memory`](Self::memory): checks that it still holds what it did.
    ///
    /// # Errors
    /// Anything; the batch is not sent.
    fn check(&self) -> Result<(), SourceError> {
        Ok(())
    }

    /// The label of sample `index`, where there are labels. All samples have one, or none has.
    fn label(&self, index: u64) -> Option<i64> {
        let _ = index;
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

    fn read(&self, index: u64, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        (**self).read(index, out)
    }

    fn memory(&self) -> Option<Arc<dyn StableHostMemory>> {
        (**self).memory()
    }

    fn position(&self, index: u64) -> u64 {
        (**self).position(index)
    }

    fn check(&self) -> Result<(), SourceError> {
        (**self).check()
    }

    fn label(&self, index: u64) -> Option<i64> {
        (**self).label(index)
    }

    fn summary(&self) -> SourceSummary {
        (**self).summary()
    }

    fn file(&self, index: u64) -> Option<PathBuf> {
        (**self).file(index)
    }

    fn digest(&self) -> Option<[u8; 16]> {
        (**self).digest()
    }
}

/// The label of sample `index` in a list with one label a sample, or none at all.
fn label_at(labels: Option<&[i64]>, index: u64) -> Option<i64> {
    labels?.get(usize::try_from(index).ok()?).copied()
}

/// Checks that there is one label a sample.
fn one_label_each(labels: &[i64], samples: u64) -> Result<(), LabelCount> {
    let labels = labels.len() as u64;
    if labels == samples { Ok(()) } else { Err(LabelCount { labels, samples }) }
}
