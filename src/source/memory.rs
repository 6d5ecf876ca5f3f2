//! Samples held in memory.

use std::fmt;
use std::sync::Arc;

use super::column::Labels;
use super::ragged::RaggedColumn;
use super::{Direct, LabelError, OutOfRange, RaggedError, SampleContext, Source};
use crate::error::{LayoutError, SourceError};
use crate::layout::{Field, Placement, SampleLayout, Scalar};
use crate::memory::HostArena;
use crate::staging::SampleWriter;

/// Samples that lie back to back in memory, without padding: `len * layout.byte_len()` bytes. Where samples have several fields, those
/// of one sample follow each other. Labels come from a list of their own, and so do the rows of each [ragged](Field::ragged) field.
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
    /// Bytes of one sample in memory.
    sample_bytes: usize,
    /// The first fields, which lie there.
    in_memory: usize,
    columns: Vec<Column>,
}

/// A field from a list of its own.
#[derive(Clone)]
enum Column {
    Labels(Labels),
    Ragged(RaggedColumn),
}

impl Column {
    fn write(&self, index: u64, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        match self {
            Self::Labels(labels) => labels.write(index, out),
            Self::Ragged(rows) => rows.write(index, out),
        }
    }
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
    /// host, or a ragged one.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static, layout: SampleLayout) -> Result<Self, LayoutError> {
        Self::over(Bytes::Any(Box::new(bytes)), layout)
    }

    fn over(bytes: Bytes, layout: SampleLayout) -> Result<Self, LayoutError> {
        if let Some(field) = layout.fields().iter().find(|field| field.placement() == Placement::Host) {
            let reason = "samples in memory have fields on the device and labels";
            return Err(LayoutError::FieldName { name: field.name().to_owned(), reason });
        }
        if let Some(field) = layout.fields().iter().find(|field| field.is_ragged()) {
            let reason = "its rows come from a list of their own: see `with_ragged`";
            return Err(LayoutError::FieldName { name: field.name().to_owned(), reason });
        }
        let (got, sample) = (bytes.get().len(), layout.byte_len());
        let samples = got.div_ceil(sample).max(1);
        let expected = samples.saturating_mul(sample);
        if got != expected {
            return Err(LayoutError::Length { what: "the memory of whole samples", got, expected });
        }
        let in_memory = layout.fields().len();
        Ok(Self { bytes, layout, len: samples as u64, sample_bytes: sample, in_memory, columns: Vec::new() })
    }

    /// A source of samples with a single ragged field, which is on the device: `rows` has the elements of each.
    ///
    /// ```
    /// use gpufeed::{Element, Field, MemorySource, Source};
    ///
    /// let tokens = Field::ragged("tokens", Element::I64, 512, &[])?;
    /// let source = MemorySource::ragged(tokens, [vec![101i64, 7592, 102], vec![101, 102]])?;
    /// assert_eq!(source.len(), 2);
    /// # Ok::<(), gpufeed::SourceError>(())
    /// ```
    ///
    /// # Errors
    /// [`RaggedError`] for a field that is not ragged or is on the host, and for rows that do not fit it.
    pub fn ragged<T: Scalar, R: AsRef<[T]>>(
        field: Field,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self, RaggedError> {
        let rows = RaggedColumn::new(&field, rows)?;
        let len = rows.len();
        if len == 0 {
            return Err(LayoutError::Zero { what: "the number of samples" }.into());
        }
        let (bytes, columns) = (Bytes::Any(Box::new([])), vec![Column::Ragged(rows)]);
        Ok(Self { bytes, layout: SampleLayout::new([field])?, len, sample_bytes: 0, in_memory: 0, columns })
    }

    /// The same source with one label a sample, in the samples' order: a field called `label`, on the host.
    ///
    /// # Errors
    /// [`LabelError`] where there are more or fewer labels than samples, or there is such a field already.
    pub fn with_labels<T: Scalar>(mut self, labels: impl AsRef<[T]>) -> Result<Self, LabelError> {
        let labels = Labels::new(labels.as_ref(), self.len)?;
        self.layout = labels.add_to(&self.layout)?;
        self.columns.push(Column::Labels(labels));
        Ok(self)
    }

    /// The same source with a ragged field, on the device or on the host: `rows` has the elements of each sample, in the samples' order.
    ///
    /// # Errors
    /// [`RaggedError`] for a field that is not ragged or is there already, and for rows that do not fit it.
    pub fn with_ragged<T: Scalar, R: AsRef<[T]>>(
        mut self,
        field: Field,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self, RaggedError> {
        let rows = RaggedColumn::new(&field, rows)?;
        if rows.len() != self.len {
            let (field, got) = (field.name().to_owned(), rows.len());
            return Err(RaggedError::Count { field, got, samples: self.len });
        }
        self.layout = self.layout.with(field)?;
        self.columns.push(Column::Ragged(rows));
        Ok(self)
    }

    /// The bytes of sample `index`.
    fn sample(&self, index: u64) -> Option<&[u8]> {
        let bytes = self.sample_bytes;
        let start = usize::try_from(index).ok()?.checked_mul(bytes)?;
        self.bytes.get().get(start..start.checked_add(bytes)?)
    }
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySource").field("layout", &self.layout).field("len", &self.len).finish_non_exhaustive()
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
        let out_of_range = OutOfRange { index, len: self.len };
        let mut rest = self.sample(index).filter(|_| index < self.len).ok_or(out_of_range)?;
        for (number, field) in self.layout.fields().iter().take(self.in_memory).enumerate() {
            let (bytes, others) = rest.split_at(field.byte_len());
            out.field(number)?.write(bytes)?;
            rest = others;
        }
        self.columns.iter().try_for_each(|column| column.write(index, out))
    }

    fn direct(&self) -> Option<Direct> {
        let Bytes::Arena(arena) = &self.bytes else { return None };
        let (bytes, columns) = (self.sample_bytes as u64, self.columns.clone());
        let direct = Direct::new(Arc::<HostArena>::clone(arena), move |index| index.saturating_mul(bytes));
        Some(
            direct.with_host_fields(move |sample, out| {
                columns.iter().try_for_each(|column| column.write(sample.index, out))
            }),
        )
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
    fn rows_are_as_many_as_a_sample_has_beside_labels_and_what_lies_in_memory() {
        let boxes = || Field::ragged("boxes", Element::F32, 2, &[2]).expect("a field");
        let tokens = Field::ragged("tokens", Element::I64, 3, &[]).expect("a field");
        let source = MemorySource::new(vec![1, 2, 3, 4], pairs()).expect("two samples");
        let source = source.with_ragged(tokens.clone(), [&[7i64, 8, 9][..], &[]]).expect("they fit");
        let source = source.with_labels([5u8, 6]).expect("two labels");
        let source = source.with_ragged(boxes().on_host(), [vec![], vec![0.5f32, 1.5]]).expect("they fit");
        let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
        for (index, rest, count) in
            [(0, (vec![1, 2], vec![7i64, 8, 9], vec![]), 3), (1, (vec![3, 4], vec![], vec![0.5f32, 1.5]), 0)]
        {
            source.read(&SampleContext::of(index), &mut sample.writer()).expect("there");
            assert_eq!(sample.bytes(0), Some(&rest.0[..]));
            assert_eq!((sample.values("tokens"), sample.values("boxes")), (Some(&rest.1[..]), Some(&rest.2[..])));
            assert_eq!((sample.label(), sample.values("tokens.lengths")), (Some(5 + index as i64), Some(&[count][..])));
        }
        let alone = MemorySource::ragged(tokens.clone(), [[1i64, 2]]).expect("they fit");
        assert!(read(&alone, 1).is_err() && read(&alone, 0).expect("there").len() == 16);
        let refused = |error: Result<MemorySource, RaggedError>| error.expect_err("refused").to_string();
        assert_eq!(
            refused(MemorySource::ragged(boxes(), [vec![1.0f32; 4], vec![1.0; 3]])),
            "field `boxes` of sample 1 has 3 elements: at most 4 fit, in rows of 2"
        );
        assert_eq!(
            refused(MemorySource::ragged(boxes(), [[1i64, 2]])),
            "field `boxes` has elements of type f32, not i64"
        );
        assert_eq!(
            refused(alone.with_ragged(boxes(), [[1.0f32; 2]; 3])),
            "field `boxes` was given for 3 samples, and there are 1"
        );
        let mask = Field::array("mask", Element::U8, &[]).expect("a field");
        assert_eq!(refused(MemorySource::ragged(mask, [[1u8]])), "field `mask` cannot be used: it is not ragged");
        let ragged = SampleLayout::new([tokens]).expect("a layout");
        assert!(matches!(MemorySource::new(vec![0; 28], ragged), Err(LayoutError::FieldName { .. })));
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
