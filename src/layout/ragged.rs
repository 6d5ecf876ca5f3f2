//! Where the row counts of a batch's ragged fields lie.

use std::ops::Range;

use super::{Field, FieldKind, HOST_ALIGN, SampleLayout, align_up};
use crate::error::LayoutError;

/// Bytes of an offset, or of a length.
const COUNT: usize = size_of::<i32>();

/// Where the row counts of a [ragged](Field::ragged) field lie.
///
/// The host's memory has one i32 more than the batch has samples, wherever the field itself is: zero, and behind it each sample's number
/// of rows while the batch is filled, and afterwards where each sample's rows end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RaggedSpan {
    /// The field's number in the sample.
    pub field: usize,
    /// The number of the field with its lengths, where it is on the device.
    pub lengths: Option<usize>,
    /// Bytes of one row.
    pub row_bytes: usize,
    /// The byte of the host's memory at which the counts start.
    pub offset: usize,
}

impl RaggedSpan {
    /// Those of a sample's ragged fields, in host memory of `host` bytes and behind it; the second value is the end.
    pub(super) fn all(
        sample: &SampleLayout,
        batch_size: usize,
        host: usize,
    ) -> Result<(Vec<Self>, usize), LayoutError> {
        let (mut all, mut end) = (Vec::new(), host);
        for (number, field) in sample.fields().iter().enumerate() {
            let Some((most, row_bytes)) = field.rows() else { continue };
            let rows = most.checked_mul(batch_size).and_then(|rows| i32::try_from(rows).ok());
            let counts = batch_size.checked_add(1).and_then(|counts| counts.checked_mul(COUNT));
            let (Some(_), Some(counts), Some(offset)) = (rows, counts, align_up(end, HOST_ALIGN)) else {
                return Err(LayoutError::Overflow { what: "the number of a ragged field's rows in a batch" });
            };
            let overflow = || LayoutError::Overflow { what: "the batch's byte count" };
            end = offset.checked_add(counts).ok_or_else(overflow)?;
            all.push(Self { field: number, lengths: lengths(sample, field), row_bytes, offset });
        }
        Ok((all, end))
    }

    /// The bytes of the count that belongs to the sample at this position.
    #[must_use]
    pub fn count(&self, position: usize) -> Range<usize> {
        let start = self.offset.saturating_add(position.saturating_add(1).saturating_mul(COUNT));
        start..start.saturating_add(COUNT)
    }

    /// The bytes of the counts of these samples.
    #[must_use]
    pub fn counts(&self, samples: &Range<usize>) -> Range<usize> {
        self.count(samples.start).start..self.count(samples.end).start
    }

    /// The bytes of the offsets of a batch of so many samples.
    #[must_use]
    pub fn offsets(&self, samples: usize) -> Range<usize> {
        self.offset..self.count(samples).start
    }
}

/// The number of the field that holds the lengths of another.
fn lengths(sample: &SampleLayout, of: &Field) -> Option<usize> {
    let is_of = |field: &Field| {
        field.kind() == FieldKind::Lengths
            && field.name().strip_prefix(of.name()).is_some_and(|rest| rest == Field::LENGTHS)
    };
    sample.fields().iter().position(is_of)
}
