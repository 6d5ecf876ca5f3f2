//! Frames that are pushed as bytes: their fields on the device, one after the other.

use super::{Field, Placement, SampleLayout};

impl SampleLayout {
    /// The fields of a frame that is pushed as bytes, one after the other, without those that are given by name: whether a field is, by
    /// its number.
    fn pushed(&self, named: &[bool]) -> impl Iterator<Item = &Field> {
        let is_named = |number: usize| named.get(number).is_some_and(|named| *named);
        let fields = self.written().enumerate().filter(move |(number, _)| !is_named(*number));
        fields.map(|(_, field)| field).filter(|field| field.placement() == Placement::Device)
    }

    /// Bytes of a frame: the fields that are written, on the device, one after the other. Of a ragged one those of its most rows.
    #[must_use]
    pub(crate) fn pushed_bytes(&self, named: &[bool]) -> usize {
        self.pushed(named).fold(0, |sum: usize, field| sum.saturating_add(field.byte_len()))
    }

    /// Whether a frame may have so many bytes: where the last field is ragged it may end behind any of its rows.
    #[must_use]
    pub(crate) fn is_pushed_as(&self, bytes: usize, named: &[bool]) -> bool {
        let Some(missing) = self.pushed_bytes(named).checked_sub(bytes) else { return false };
        let ragged = self.pushed(named).filter(|field| field.is_ragged()).count();
        match self.pushed(named).last().and_then(Field::rows) {
            None => missing == 0 && ragged == 0,
            Some((rows, row)) => ragged == 1 && missing.is_multiple_of(row) && missing <= rows.saturating_mul(row),
        }
    }
}
