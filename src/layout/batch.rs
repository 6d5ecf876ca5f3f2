//! Where a batch's fields lie.

use std::ops::Range;
use std::sync::Arc;

use super::{
    COPY_ALIGN, FIELD_ALIGN, FieldKind, HOST_ALIGN, Placement, RaggedSpan, SampleLayout, VECTOR_ALIGN, align_up,
};
use crate::error::LayoutError;

/// A batch of equal samples in staging memory. Clones are the same layout.
///
/// A slot holds the device's fields one after the other, each for all samples of the batch, which lie back to back. Fields behind the
/// first start at multiples of [`FIELD_ALIGN`] bytes. The host's fields lie likewise in memory of their own, with the row counts of all
/// ragged fields behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchLayout(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    sample: SampleLayout,
    batch_size: usize,
    spans: Vec<FieldSpan>,
    ragged: Vec<RaggedSpan>,
    slot_bytes: usize,
    host_bytes: usize,
}

/// Where a batch's elements of one field lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldSpan {
    /// In the slot, or in the host's memory.
    pub placement: Placement,
    /// The byte of that memory at which the first sample's elements start.
    pub offset: usize,
    /// Bytes of one sample's elements; of the largest, where they are ragged.
    pub bytes: usize,
}

impl FieldSpan {
    /// The bytes of these samples' elements.
    #[must_use]
    pub fn of(&self, samples: &Range<usize>) -> Range<usize> {
        let at = |sample| self.offset.saturating_add(self.bytes.saturating_mul(sample));
        at(samples.start)..at(samples.end)
    }
}

impl BatchLayout {
    /// The layout of batches of at most `batch_size` samples.
    ///
    /// # Errors
    /// [`LayoutError::Zero`] for an empty batch, [`LayoutError::Overflow`] where its bytes exceed `isize::MAX`, or the rows of a ragged
    /// field `i32::MAX`.
    pub fn new(sample: SampleLayout, batch_size: usize) -> Result<Self, LayoutError> {
        if batch_size == 0 {
            return Err(LayoutError::Zero { what: "the batch size" });
        }
        let (mut slot, mut host) = (0, 0);
        let spans = sample.fields().iter().map(|field| {
            let (end, align) = match field.placement() {
                // They are the counts that a ragged field has there in any case.
                Placement::Host if field.kind() == FieldKind::Lengths => {
                    return Some(FieldSpan { placement: Placement::Host, offset: 0, bytes: field.byte_len() });
                }
                Placement::Device => (&mut slot, FIELD_ALIGN),
                Placement::Host => (&mut host, HOST_ALIGN),
            };
            let offset = align_up(*end, align)?;
            *end = field.byte_len().checked_mul(batch_size)?.checked_add(offset)?;
            Some(FieldSpan { placement: field.placement(), offset, bytes: field.byte_len() })
        });
        let spans: Option<Vec<_>> = spans.collect();
        let (ragged, host) = RaggedSpan::all(&sample, batch_size, host)?;
        let fits = |bytes: usize| align_up(bytes, VECTOR_ALIGN).filter(|&bytes| isize::try_from(bytes).is_ok());
        let overflow = LayoutError::Overflow { what: "the batch's byte count" };
        let (Some(mut spans), Some(slot_bytes), Some(host_bytes)) = (spans, fits(slot), fits(host)) else {
            return Err(overflow);
        };
        for ragged in &ragged {
            if let Some(span) = ragged.lengths.and_then(|lengths| spans.get_mut(lengths))
                && span.placement == Placement::Host
            {
                span.offset = ragged.count(0).start;
            }
        }
        Ok(Self(Arc::new(Inner { sample, batch_size, spans, ragged, slot_bytes, host_bytes })))
    }

    /// A batch of one sample with all of its fields in host memory.
    pub(crate) fn all_on_host(sample: &SampleLayout) -> Result<Self, LayoutError> {
        Self::new(sample.all_on_host(), 1)
    }

    /// One sample.
    #[must_use]
    pub fn sample(&self) -> &SampleLayout {
        &self.0.sample
    }

    /// The largest number of samples in a batch.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.0.batch_size
    }

    /// Where each of the sample's fields lies.
    #[must_use]
    pub fn spans(&self) -> &[FieldSpan] {
        &self.0.spans
    }

    /// The row counts of the sample's ragged fields.
    #[must_use]
    pub fn ragged(&self) -> &[RaggedSpan] {
        &self.0.ragged
    }

    /// The row counts of the field with this number, where it is ragged.
    #[must_use]
    pub fn ragged_field(&self, number: usize) -> Option<&RaggedSpan> {
        self.0.ragged.iter().find(|ragged| ragged.field == number)
    }

    /// Bytes of a full batch, padded to [`VECTOR_ALIGN`]: the size of a staging slot.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.0.slot_bytes
    }

    /// Bytes of a full batch's fields in host memory, and of its ragged fields' row counts; zero where there are neither.
    #[must_use]
    pub fn host_bytes(&self) -> usize {
        self.0.host_bytes
    }

    /// Bytes of the first field of `samples` samples, without padding. `samples` is at most the batch size.
    #[must_use]
    pub fn payload(&self, samples: usize) -> usize {
        self.0.sample.first().byte_len().saturating_mul(samples.min(self.0.batch_size))
    }

    /// Bytes of a full batch's first field, padded to [`VECTOR_ALIGN`]: what kernels read of a slot.
    #[must_use]
    pub fn first_bytes(&self) -> usize {
        align_up(self.payload(self.0.batch_size), VECTOR_ALIGN).unwrap_or(self.0.slot_bytes)
    }

    /// Bytes of `samples` samples' fields on the device, without padding. `samples` is at most the batch size.
    #[must_use]
    pub fn device_bytes(&self, samples: usize) -> usize {
        self.0.sample.byte_len().saturating_mul(samples.min(self.0.batch_size))
    }

    /// Bytes to copy of a slot with `samples` samples: up to the end of their last field on the device, rounded up to [`COPY_ALIGN`].
    #[must_use]
    pub fn copy_bytes(&self, samples: usize) -> usize {
        let samples = samples.min(self.0.batch_size);
        let end = self.tail().last().map_or_else(|| self.payload(samples), |span| span.of(&(0..samples)).end);
        align_up(end, COPY_ALIGN).unwrap_or(self.0.slot_bytes)
    }

    /// The device's fields behind the first.
    pub fn tail(&self) -> impl Iterator<Item = &FieldSpan> {
        self.0.spans.iter().skip(1).filter(|span| span.placement == Placement::Device)
    }

    /// Whether two layouts are one: comparing the addresses is enough.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Splits `samples` samples into at most `parts` runs of nearly equal length. Empty runs are left out.
    pub fn runs(&self, samples: usize, parts: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let per_run = samples.div_ceil(parts.max(1)).max(1);
        (0..samples).step_by(per_run).map(move |start| start..start.saturating_add(per_run).min(samples))
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]
mod tests {
    use super::super::{Element, Field};
    use super::*;

    fn batch(h: usize, w: usize, c: usize, n: usize) -> BatchLayout {
        BatchLayout::new(SampleLayout::image(h, w, c).unwrap(), n).unwrap()
    }

    #[test]
    fn a_batch_of_one_field_is_its_samples_back_to_back_with_padding_at_the_end_only() {
        let layout = batch(31, 17, 3, 3);
        assert_eq!(layout.payload(3), 4743);
        assert_eq!(layout.copy_bytes(3), 4744);
        assert_eq!((layout.slot_bytes(), layout.host_bytes()), (4752, 0));
    }

    #[test]
    fn fields_follow_each_other_aligned_and_the_hosts_lie_elsewhere() {
        let sample = SampleLayout::image(31, 17, 3)
            .and_then(|sample| sample.with_label(Element::I64))
            .and_then(|sample| sample.with(Field::array("mask", Element::U8, &[31, 17])?))
            .and_then(|sample| sample.with_host("name", Element::U8, &[5]))
            .and_then(|sample| sample.with(Field::array("depth", Element::F32, &[3])?))
            .unwrap();
        let layout = BatchLayout::new(sample, 3).unwrap();
        let offsets: Vec<_> = layout.spans().iter().map(|span| (span.offset, span.bytes)).collect();
        assert_eq!(offsets, [(0, 1581), (0, 8), (4864, 527), (24, 5), (6656, 12)]);
        assert_eq!((layout.slot_bytes(), layout.host_bytes()), (6704, 48));
        assert_eq!(layout.tail().map(|span| span.of(&(1..2))).collect::<Vec<_>>(), [5391..5918, 6668..6680]);
        assert_eq!((layout.payload(2), layout.first_bytes()), (2 * 1581, 4752));
        assert_eq!((layout.device_bytes(2), layout.copy_bytes(2)), (2 * (1581 + 527 + 12), 6680));
    }

    #[test]
    fn row_counts_lie_behind_the_hosts_fields_and_lengths_among_the_devices() {
        let sample = SampleLayout::new([
            Field::ragged("tokens", Element::I64, 5, &[]).unwrap(),
            Field::ragged("boxes", Element::F32, 2, &[4]).unwrap().on_host(),
            Field::array("mask", Element::U8, &[3]).unwrap(),
        ]);
        let layout = BatchLayout::new(sample.unwrap(), 3).unwrap();
        let offsets: Vec<_> = layout.spans().iter().map(|span| (span.offset, span.bytes)).collect();
        assert_eq!(offsets, [(0, 40), (0, 32), (256, 3), (512, 4)]);
        let [tokens, boxes] = layout.ragged() else { panic!("two ragged fields") };
        assert_eq!((tokens.field, tokens.lengths, tokens.row_bytes), (0, Some(3), 8));
        assert_eq!((boxes.field, boxes.lengths, boxes.row_bytes), (1, None, 16));
        assert_eq!((tokens.offsets(3), boxes.offsets(2), boxes.count(2)), (96..112, 112..124, 124..128));
        assert_eq!((layout.host_bytes(), layout.copy_bytes(2)), (128, 520));
        let alone = BatchLayout::all_on_host(layout.sample()).unwrap();
        assert_eq!(alone.spans()[3].offset, alone.ragged()[0].count(0).start, "a length lies where it is counted");
    }

    #[test]
    fn offsets_of_more_rows_than_an_i32_counts_are_refused() {
        let sample = SampleLayout::new([Field::ragged("tokens", Element::U8, 1 << 20, &[]).unwrap()]).unwrap();
        assert!(BatchLayout::new(sample.clone(), 2047).is_ok());
        assert!(matches!(BatchLayout::new(sample, 2048), Err(LayoutError::Overflow { .. })));
    }

    #[test]
    fn runs_cover_every_sample_once_and_keep_every_worker_busy() {
        // 225x225x3 is odd: at a batch of 8 no other sample starts at a multiple of 8 bytes.
        for (h, w, c) in [(1, 1, 1), (31, 17, 3), (225, 225, 3)] {
            for samples in 1..40 {
                for parts in 1..9 {
                    let runs: Vec<_> = batch(h, w, c, 40).runs(samples, parts).collect();
                    assert!(runs.iter().flat_map(Clone::clone).eq(0..samples));
                    assert!(runs.len() <= parts);
                    let longest = runs.iter().map(Range::len).max().unwrap();
                    assert_eq!(longest, samples.div_ceil(parts), "nobody has more to do than a fair share");
                }
            }
        }
    }

    #[test]
    fn nothing_overflows_silently() {
        let sample = SampleLayout::bytes(&[usize::MAX / 4]).unwrap();
        assert!(matches!(BatchLayout::new(sample, 3), Err(LayoutError::Overflow { .. })));
        let sample = SampleLayout::bytes(&[1]).unwrap().with_host("h", Element::U8, &[usize::MAX / 4]).unwrap();
        assert!(matches!(BatchLayout::new(sample, 3), Err(LayoutError::Overflow { .. })));
        assert!(BatchLayout::new(SampleLayout::bytes(&[4]).unwrap(), 0).is_err());
    }
}
