//! Samples held in memory.

use std::fmt;
use std::sync::Arc;

use super::{LabelCount, OutOfRange, Source, label_at, one_label_each};
use crate::error::{LayoutError, SourceError};
use crate::layout::SampleLayout;
use crate::memory::{HostArena, StableHostMemory};
use crate::staging::SampleWriter;

/// Samples that lie back to back in memory, without padding: `len * layout.byte_len()` bytes.
///
/// ```
/// use gpufeed::source::MemorySource;
/// use gpufeed::{SampleLayout, Source};
///
/// let two_images = vec![0; 2 * 8 * 8 * 3];
/// let source = MemorySource::new(two_images, SampleLayout::image(8, 8, 3)?)?.with_labels(vec![7, 9])?;
/// assert_eq!((source.len(), source.label(1)), (2, Some(9)));
/// # Ok::<(), gpufeed::SourceError>(())
/// ```
pub struct MemorySource {
    bytes: Bytes,
    layout: SampleLayout,
    len: u64,
    labels: Option<Vec<i64>>,
}

/// Who owns the bytes.
enum Bytes {
    Any(Box<dyn AsRef<[u8]> + Send + Sync>),
    Arena(Arc<HostArena>),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Self::Any(bytes) => (**bytes).as_ref(),
            Self::Arena(arena) => arena.bytes(),
        }
    }
}

impl MemorySource {
    /// A source over memory that devices may also read by themselves: what `registered` and `imported` need.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_arena(arena: Arc<HostArena>, layout: SampleLayout) -> Result<Self, LayoutError> {
        Self::over(Bytes::Arena(arena), layout)
    }

    /// A source over anything that owns bytes and can be shared: a `Vec<u8>`, an `Arc<[u8]>`, a memory map. The bytes
    /// must not change in length; f32 samples are in native byte order.
    ///
    /// # Errors
    /// [`LayoutError::Length`] where the bytes are empty or not a whole number of samples.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static, layout: SampleLayout) -> Result<Self, LayoutError> {
        Self::over(Bytes::Any(Box::new(bytes)), layout)
    }

    fn over(bytes: Bytes, layout: SampleLayout) -> Result<Self, LayoutError> {
        let (got, sample) = (bytes.get().len(), layout.byte_len());
        let samples = got.div_ceil(sample).max(1);
        let expected = samples.saturating_mul(sample);
        if got != expected {
            return Err(LayoutError::Length { what: "the memory of whole samples", got, expected });
        }
        Ok(Self { bytes, layout, len: samples as u64, labels: None })
    }

    /// The same source with one label a sample, in the samples' order.
    ///
    /// # Errors
    /// [`LabelCount`] where there are more or fewer labels than samples.
    pub fn with_labels(mut self, labels: Vec<i64>) -> Result<Self, LabelCount> {
        one_label_each(&labels, self.len)?;
        self.labels = Some(labels);
        Ok(self)
    }

    /// The bytes of sample `index`.
    fn sample(&self, index: u64) -> Option<&[u8]> {
        let bytes = self.layout.byte_len();
        let start = usize::try_from(index).ok()?.checked_mul(bytes)?;
        self.bytes.get().get(start..start.checked_add(bytes)?)
    }
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySource")
            .field("layout", &self.layout)
            .field("len", &self.len)
            .field("labels", &self.labels.is_some())
            .finish_non_exhaustive()
    }
}

impl Source for MemorySource {
    fn layout(&self) -> SampleLayout {
        self.layout
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, index: u64, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let sample = self.sample(index).ok_or(OutOfRange { index, len: self.len })?;
        Ok(out.write(sample)?)
    }

    fn memory(&self) -> Option<Arc<dyn StableHostMemory>> {
        match &self.bytes {
            Bytes::Any(_) => None,
            Bytes::Arena(arena) => Some(Arc::<HostArena>::clone(arena)),
        }
    }

    fn label(&self, index: u64) -> Option<i64> {
        label_at(self.labels.as_deref(), index)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn pairs() -> SampleLayout {
        SampleLayout::bytes(&[2]).expect("two bytes")
    }

    fn read(source: &dyn Source, index: u64) -> Result<Vec<u8>, SourceError> {
        let mut memory = vec![0; source.layout().byte_len()];
        source.read(index, &mut SampleWriter::over(&mut memory))?;
        Ok(memory)
    }

    #[test]
    fn every_sample_is_its_own_slice_of_the_memory() {
        let bytes: Arc<[u8]> = Arc::from([1, 2, 3, 4, 5, 6]);
        let source = MemorySource::new(bytes, pairs()).expect("three samples");
        assert_eq!((source.len(), source.layout()), (3, pairs()));
        assert_eq!(read(&source, 0).expect("first"), [1, 2]);
        assert_eq!(read(&source, 2).expect("last"), [5, 6]);
        assert_eq!(source.label(0), None);
    }

    #[test]
    fn bytes_that_are_no_whole_number_of_samples_are_refused() {
        let refused = |bytes: Vec<u8>| MemorySource::new(bytes, pairs()).expect_err("refused");
        let expected = |got, expected| LayoutError::Length { what: "the memory of whole samples", got, expected };
        assert_eq!(refused(vec![0; 5]), expected(5, 6));
        assert_eq!(refused(vec![]), expected(0, 2));
    }

    #[test]
    fn an_index_past_the_end_is_an_error_that_names_it() {
        let source = MemorySource::new(vec![0; 4], pairs()).expect("two samples");
        for index in [2, u64::MAX, u64::MAX / 2] {
            let error = read(&source, index).expect_err("past the end");
            assert_eq!(error.to_string(), format!("sample {index} does not exist: the source has 2"));
        }
    }

    #[test]
    fn labels_are_one_a_sample() {
        let source = || MemorySource::new(vec![0; 4], pairs()).expect("two samples");
        let labelled = source().with_labels(vec![-1, 5]).expect("two labels");
        assert_eq!([labelled.label(0), labelled.label(1), labelled.label(2)], [Some(-1), Some(5), None]);
        let error = source().with_labels(vec![1]).expect_err("one label for two samples");
        assert_eq!(error, LabelCount { labels: 1, samples: 2 });
    }
}
