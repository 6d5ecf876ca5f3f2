//! Samples held in memory.

use std::fmt;
use std::sync::Arc;

use super::column::Labels;
use super::{Direct, LabelError, OutOfRange, SampleContext, Source};
use crate::error::{LayoutError, SourceError};
use crate::layout::{Placement, SampleLayout, Scalar};
use crate::memory::HostArena;
use crate::staging::SampleWriter;

/// Samples that lie back to back in memory, without padding: `len * layout.byte_len()` bytes. Where samples have several fields, those
/// of one sample follow each other. Labels come from a list of their own.
///
/// ```
/// use gpufeed::source::MemorySource;
/// use gpufeed::{SampleLayout, Source};
///
/// let two_images = vec![0; 2 * 8 * 8 * 3];
/// let source = MemorySource::new(two_images, SampleLayout::image(8, 8, 3)?)?.with_labels(vec![7i64, 9])?;
/// assert_eq!((source.len(), source.layout().fields()[1].name()), (2, "label"));
/// # Ok::<(), gpufeed::SourceError>(())
/// ```
pub struct MemorySource {
    bytes: Bytes,
    layout: SampleLayout,
    len: u64,
    labels: Option<Labels>,
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
    /// must not change in length; elements are in native byte order.
    ///
    /// # Errors
    /// [`LayoutError::Length`] where the bytes are empty or not a whole number of samples; [`LayoutError::FieldName`] for a field on the
    /// host.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static, layout: SampleLayout) -> Result<Self, LayoutError> {
        Self::over(Bytes::Any(Box::new(bytes)), layout)
    }

    fn over(bytes: Bytes, layout: SampleLayout) -> Result<Self, LayoutError> {
        if let Some(field) = layout.fields().iter().find(|field| field.placement() == Placement::Host) {
            let reason = "samples in memory have fields on the device and labels";
            return Err(LayoutError::FieldName { name: field.name().to_owned(), reason });
        }
        let (got, sample) = (bytes.get().len(), layout.byte_len());
        let samples = got.div_ceil(sample).max(1);
        let expected = samples.saturating_mul(sample);
        if got != expected {
            return Err(LayoutError::Length { what: "the memory of whole samples", got, expected });
        }
        Ok(Self { bytes, layout, len: samples as u64, labels: None })
    }

    /// The same source with one label a sample, in the samples' order: a field called `label`, on the host.
    ///
    /// # Errors
    /// [`LabelError`] where there are more or fewer labels than samples, or there is such a field already.
    pub fn with_labels<T: Scalar>(mut self, labels: impl AsRef<[T]>) -> Result<Self, LabelError> {
        let labels = Labels::new(labels.as_ref(), self.len)?;
        self.layout = labels.add_to(&self.layout)?;
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
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = sample.index;
        let mut rest = self.sample(index).ok_or(OutOfRange { index, len: self.len })?;
        // Labels come last, so that the fields in memory are the first ones.
        for (number, field) in self.layout.on_device().enumerate() {
            let (bytes, others) = rest.split_at(field.byte_len());
            out.field(number)?.write(bytes)?;
            rest = others;
        }
        self.labels.as_ref().map_or(Ok(()), |labels| labels.write(index, out))
    }

    fn direct(&self) -> Option<Direct> {
        let Bytes::Arena(arena) = &self.bytes else { return None };
        let bytes = self.layout.byte_len() as u64;
        let direct = Direct::new(Arc::<HostArena>::clone(arena), move |index| index.saturating_mul(bytes));
        Some(match self.labels.clone() {
            Some(labels) => direct.with_host_fields(move |sample, out| labels.write(sample.index, out)),
            None => direct,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::layout::{Element, Field};
    use crate::source::LabelCount;
    use crate::staging::SampleBuffer;

    fn pairs() -> SampleLayout {
        SampleLayout::bytes(&[2]).expect("two bytes")
    }

    fn read(source: &dyn Source, index: u64) -> Result<Vec<u8>, SourceError> {
        let mut sample = SampleBuffer::new(source.layout())?;
        source.read(&SampleContext::of(index), &mut sample.writer())?;
        Ok(sample.bytes(0).expect("the first field").to_vec())
    }

    #[test]
    fn every_sample_is_its_own_slice_of_the_memory() {
        let bytes: Arc<[u8]> = Arc::from([1, 2, 3, 4, 5, 6]);
        let source = MemorySource::new(bytes, pairs()).expect("three samples");
        assert_eq!((source.len(), source.layout()), (3, pairs()));
        assert_eq!(read(&source, 0).expect("first"), [1, 2]);
        assert_eq!(read(&source, 2).expect("last"), [5, 6]);
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
    fn labels_are_one_a_sample_of_any_type() {
        let source = || MemorySource::new(vec![0; 4], pairs()).expect("two samples");
        let labelled = source().with_labels(vec![-1i64, 5]).expect("two labels");
        let mut sample = SampleBuffer::new(labelled.layout()).expect("a few bytes");
        labelled.read(&SampleContext::of(1), &mut sample.writer()).expect("there");
        assert_eq!((sample.label(), sample.values::<i64>("label")), (Some(5), Some(&[5][..])));
        let floats = source().with_labels([0.5f32, 1.5]).expect("two labels");
        assert_eq!(floats.layout(), pairs().with_label(Element::F32).expect("a label"));
        let error = source().with_labels([1u8]).expect_err("one label for two samples");
        assert_eq!(error, LabelCount { labels: 1, samples: 2 }.into());
        assert!(matches!(labelled.with_labels([1u8, 2]), Err(LabelError::Layout(LayoutError::FieldName { .. }))));
    }

    #[test]
    fn fields_of_one_sample_follow_each_other() {
        let layout = pairs().with(Field::array("mask", Element::U8, &[]).expect("a field")).expect("a sample");
        let source = MemorySource::new(vec![1, 2, 3, 4, 5, 6], layout.clone()).expect("two samples");
        let mut sample = SampleBuffer::new(layout).expect("a few bytes");
        source.read(&SampleContext::of(1), &mut sample.writer()).expect("there");
        assert_eq!((sample.bytes("data"), sample.bytes("mask")), (Some(&[4, 5][..]), Some(&[6][..])));
        let hosted = pairs().with_label(Element::U8).expect("a sample");
        assert!(matches!(MemorySource::new(vec![0; 2], hosted), Err(LayoutError::FieldName { .. })));
    }
}
