//! Where samples come from.
//!
//! A [`Source`] is random access by index, and several threads read it at once. gpufeed brings sources for memory, `.npy`
//! files and folders of images; anything else is a small `impl Source` (see the example `02-custom-source`).

use std::sync::Arc;

use crate::error::SourceError;
use crate::layout::SampleLayout;
use crate::staging::SampleWriter;

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

    /// The label of sample `index`, where there are labels. All samples have one, or none has.
    fn label(&self, index: u64) -> Option<i64> {
        let _ = index;
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

    fn label(&self, index: u64) -> Option<i64> {
        (**self).label(index)
    }
}
