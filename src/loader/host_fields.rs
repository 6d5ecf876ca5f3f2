//! What a batch holds in host memory: labels, and whatever else a layout places there.

use std::ops::Range;

use crate::error::DeviceError;
use crate::layout::{BatchLayout, Element, FieldKey, Placement, Scalar};
use crate::staging::HostMemory;

/// A batch's fields on the host; used again for every batch.
#[derive(Debug)]
pub(super) struct HostFields {
    layout: BatchLayout,
    /// None where the samples have no such fields.
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

    /// Whether the samples have no such fields.
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
        for span in self.layout.spans().iter().filter(|span| span.placement == Placement::Host) {
            to[span.of(run)].copy_from_slice(&from[span.of(run)]);
        }
    }

    /// The number of a field, wherever it is.
    pub(super) fn position(&self, field: impl FieldKey) -> Option<usize> {
        self.layout.sample().position(field)
    }

    /// The elements of a field of the first `samples` samples; `None` if there is no such field here, or its elements are of another type.
    pub(super) fn values<T: Scalar>(&self, field: impl FieldKey, samples: usize) -> Option<&[T]> {
        let (element, bytes) = self.bytes(field, samples)?;
        T::holds(element).then(|| bytemuck::cast_slice(bytes))
    }

    /// As [`values`](Self::values), whatever the elements are.
    pub(super) fn bytes(&self, field: impl FieldKey, samples: usize) -> Option<(Element, &[u8])> {
        let number = self.layout.sample().position(field)?;
        let (field, span) = (&self.layout.sample().fields()[number], &self.layout.spans()[number]);
        match (span.placement, &self.memory) {
            (Placement::Host, Some(memory)) => Some((field.element(), &memory[span.of(&(0..samples))])),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SampleLayout;

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
}
