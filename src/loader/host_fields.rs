//! What a batch holds in host memory: labels, and whatever else a layout places there, and where the rows of ragged fields are.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::DeviceError;
use crate::layout::{BatchLayout, Element, FieldKey, LABEL, Placement, RaggedSpan, Scalar};
use crate::staging::{HostMemory, as_integers};

/// A batch's fields on the host; used again for every batch.
///
/// While a batch is filled each sample's fields lie where the layout says. [`pack`](Self::pack) then moves the rows of ragged ones together.
#[derive(Debug)]
pub(super) struct HostFields {
    layout: BatchLayout,
    /// None where the samples have no such fields, and no ragged ones.
    memory: Option<HostMemory>,
}

impl HostFields {
    /// Room for the batches of a layout.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn new(layout: &BatchLayout) -> Result<Self, DeviceError> {
        let memory = match layout.host_bytes() {
            0 => None,
            bytes => Some(HostMemory::new(bytes)?),
        };
        Ok(Self { layout: layout.clone(), memory })
    }

    /// Bytes of so many.
    pub(super) fn footprint(layout: &BatchLayout, number: usize) -> u64 {
        (layout.host_bytes() as u64).saturating_mul(number as u64)
    }

    /// Whether the samples have no such fields, and no ragged ones.
    pub(super) fn is_empty(&self) -> bool {
        self.memory.is_none()
    }

    /// The memory, laid out as the layout says.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_deref_mut().unwrap_or_default()
    }

    /// Takes over the samples of a run.
    pub(super) fn copy_run(&mut self, from: &Self, run: &Range<usize>) {
        let (Some(to), Some(from)) = (&mut self.memory, &from.memory) else { return };
        for (number, span) in self.layout.spans().iter().enumerate() {
            match (span.placement, self.layout.ragged_field(number)) {
                (Placement::Host, None) => to[span.of(run)].copy_from_slice(&from[span.of(run)]),
                (Placement::Host, Some(ragged)) => {
                    for position in run.clone() {
                        let start = span.of(&(position..position)).start;
                        let rows = start..start + rows(from, ragged, position) * ragged.row_bytes;
                        to[rows.clone()].copy_from_slice(&from[rows]);
                    }
                }
                (Placement::Device, _) => {}
            }
        }
        for ragged in self.layout.ragged() {
            to[ragged.counts(run)].copy_from_slice(&from[ragged.counts(run)]);
        }
    }

    /// Moves the rows of ragged fields together, once all of the batch's samples are there, and turns their counts into offsets.
    pub(super) fn pack(&mut self, samples: usize) {
        let Some(memory) = &mut self.memory else { return };
        for ragged in self.layout.ragged() {
            let (span, row_bytes) = (self.layout.spans()[ragged.field], ragged.row_bytes);
            let mut end = 0;
            for position in 0..samples {
                let count = rows(memory, ragged, position);
                if span.placement == Placement::Host {
                    let start = span.of(&(position..position)).start;
                    memory.copy_within(start..start + count * row_bytes, span.offset + end * row_bytes);
                }
                end += count;
                // No batch has more rows than an i32 counts: its layout saw to it.
                let offset = i32::try_from(end).unwrap_or(i32::MAX);
                memory[ragged.count(position)].copy_from_slice(&offset.to_ne_bytes());
            }
        }
    }

    /// Where the rows of each sample begin, and where those of the last end; `None` if there is no such field, or it is not ragged.
    pub(super) fn offsets(&self, field: impl FieldKey, samples: usize) -> Option<&[i32]> {
        let ragged = self.layout.ragged_field(self.position(field)?)?;
        Some(bytemuck::cast_slice(&self.memory.as_deref()?[ragged.offsets(samples)]))
    }

    /// The elements of one sample of a ragged field.
    pub(super) fn rows_of<T: Scalar>(&self, field: impl FieldKey, position: usize, samples: usize) -> Option<&[T]> {
        let number = self.position(field)?;
        let elements = self.layout.ragged_field(number)?.row_bytes / size_of::<T>();
        let all = self.values(number, samples)?;
        let ends = self.offsets(number, samples)?.get(position..position + 2)?;
        let at = |end: i32| usize::try_from(end).ok()?.checked_mul(elements);
        all.get(at(ends[0])?..at(ends[1])?)
    }

    /// The number of a field, wherever it is.
    pub(super) fn position(&self, field: impl FieldKey) -> Option<usize> {
        self.layout.sample().position(field)
    }

    /// The elements of a field of all of the batch's `samples` samples, of a ragged one those of its rows; `None` if there is no such field here, or its elements are of another type.
    pub(super) fn values<T: Scalar>(&self, field: impl FieldKey, samples: usize) -> Option<&[T]> {
        let (element, bytes) = self.bytes(field, samples)?;
        T::holds(element).then(|| bytemuck::cast_slice(bytes))
    }

    /// The labels of the first `samples` samples as integers, where there are any.
    pub(super) fn labels(&self, samples: usize) -> Option<Cow<'_, [i64]>> {
        if self.offsets(LABEL, samples).is_some() {
            return None;
        }
        if let Some(labels) = self.values(LABEL, samples) {
            return Some(Cow::Borrowed(labels));
        }
        let (element, bytes) = self.bytes(LABEL, samples)?;
        Some(Cow::Owned(as_integers(element, bytes).collect()))
    }

    /// As [`values`](Self::values), whatever the elements are.
    pub(super) fn bytes(&self, field: impl FieldKey, samples: usize) -> Option<(Element, &[u8])> {
        let number = self.position(field)?;
        let (field, span) = (&self.layout.sample().fields()[number], &self.layout.spans()[number]);
        match (span.placement, &self.memory) {
            (Placement::Host, Some(memory)) => {
                let bytes = match self.layout.ragged_field(number) {
                    None => span.of(&(0..samples)),
                    Some(ragged) => span.offset..span.offset + offset(memory, ragged, samples) * ragged.row_bytes,
                };
                Some((field.element(), &memory[bytes]))
            }
            _ => None,
        }
    }
}

/// The count of a sample: its rows while a batch is filled, and afterwards where they end.
fn rows(memory: &[u8], ragged: &RaggedSpan, position: usize) -> usize {
    let count: i32 = bytemuck::pod_read_unaligned(&memory[ragged.count(position)]);
    usize::try_from(count).unwrap_or_default()
}

/// Where the rows of the first `samples` samples end.
fn offset(memory: &[u8], ragged: &RaggedSpan, samples: usize) -> usize {
    samples.checked_sub(1).map_or(0, |last| rows(memory, ragged, last))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::host::HostBackend;
    use crate::layout::{Field, SampleLayout};
    use crate::loader::{Loader, LoaderOptions};
    use crate::source::SyntheticSource;
    use crate::staging::SampleWriter;

    #[test]
    fn rows_are_taken_over_by_their_number_and_packed_in_order() {
        let sample = SampleLayout::new([
            Field::ragged("tokens", Element::I64, 3, &[]).expect("a field"),
            Field::ragged("boxes", Element::U16, 2, &[2]).expect("a field").on_host(),
        ]);
        let layout = BatchLayout::new(sample.expect("a sample"), 3).expect("a batch");
        let (mut to, mut from) = (HostFields::new(&layout).expect("memory"), HostFields::new(&layout).expect("memory"));
        // Twice: nothing of the batch before is left.
        for batch in 0..2u16 {
            let counts = if batch == 0 { [2, 1, 2] } else { [1, 0, 2] };
            for run in [2..3, 0..2] {
                for at in run.clone() {
                    let rows: Vec<u16> =
                        (0..2 * counts[at]).map(|value| 100 * batch + 10 * at as u16 + value).collect();
                    let mut writer = SampleWriter::on_host(&layout, from.bytes_mut(), at);
                    writer.field("boxes").and_then(|mut boxes| boxes.values(&rows)).expect("they fit");
                }
                to.copy_run(&from, &run);
            }
            to.pack(3);
        }
        assert_eq!(to.offsets("boxes", 3), Some(&[0, 1, 1, 3][..]));
        assert_eq!(to.values::<u16>("boxes", 3), Some(&[100, 101, 120, 121, 122, 123][..]));
        assert_eq!(to.rows_of::<u16>("boxes", 2, 3), Some(&[120, 121, 122, 123][..]));
        assert_eq!(to.rows_of::<u16>("boxes", 1, 3), Some(&[][..]));
        assert_eq!((to.rows_of::<u16>("boxes", 3, 3), to.rows_of::<i32>("boxes", 0, 3)), (None, None));
        assert_eq!((to.offsets("tokens", 3), to.values::<i64>("tokens", 3)), (Some(&[0; 4][..]), None));
    }

    #[test]
    fn a_run_is_taken_over_field_by_field_and_nothing_else() {
        let sample = SampleLayout::bytes(&[3]).and_then(|sample| sample.with_label(Element::I64));
        let sample = sample.and_then(|sample| sample.with_host("pair", Element::U16, &[2])).expect("a sample");
        let layout = BatchLayout::new(sample, 3).expect("a batch");
        let (mut to, mut from) = (HostFields::new(&layout).expect("memory"), HostFields::new(&layout).expect("memory"));
        from.bytes_mut().fill(1);
        to.copy_run(&from, &(1..2));
        let one = i64::from_ne_bytes([1; 8]);
        assert_eq!(to.values::<i64>("label", 3), Some(&[0, one, 0][..]));
        assert_eq!(to.values::<u16>(2, 2), Some(&[0, 0, 0x0101, 0x0101][..]));
        assert_eq!(
            (to.values::<i32>("label", 3), to.values::<u8>(0, 3), to.values::<u8>("none", 3)),
            (None, None, None)
        );
    }

    #[test]
    fn without_such_fields_there_is_no_memory() {
        let layout = BatchLayout::new(SampleLayout::bytes(&[3]).expect("a sample"), 3).expect("a batch");
        let mut fields = HostFields::new(&layout).expect("nothing");
        assert!(fields.is_empty() && fields.bytes_mut().is_empty());
    }

    #[test]
    fn what_they_take_is_in_the_footprint_and_in_the_budget() {
        let sample = SampleLayout::bytes(&[1]).and_then(|sample| sample.with_host("text", Element::U8, &[1000]));
        let source = Arc::new(SyntheticSource::new(sample.expect("a sample"), 40));
        let options = LoaderOptions { batch_size: 4, workers: 2, slots: 3, outputs: 5, ..LoaderOptions::default() };
        let open = |budget| {
            let options = LoaderOptions { byte_budget: budget, ..options.clone() };
            Loader::new(&HostBackend::new(), Arc::clone(&source), options)
        };
        let planned = open(None).expect("a loader").footprint();
        assert_eq!(planned.host, 4000 * (2 + 3 + 5), "each worker, slot and output has those of a batch");
        assert_eq!(open(Some(planned.total())).expect("it fits").memory().expect("it runs").held, planned);
        let refused = open(Some(planned.total() - 1)).err().expect("over the budget").to_string();
        assert!(refused.contains("40000 host"), "{refused}");
    }
}
