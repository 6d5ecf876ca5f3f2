//! The end of a sample: every field is whole, and ragged ones end behind their last row.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::{Fields, SampleWriter, rows};
use crate::layout::{BatchLayout, Field, FieldSpan, Placement, RaggedSpan};

/// A field that was not written whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShortField {
    pub(crate) name: String,
    pub(crate) written: usize,
    pub(crate) expected: usize,
}

impl SampleWriter<'_> {
    /// Ends the sample: what is behind the rows of ragged fields becomes zeros on the device, and their lengths are written there.
    ///
    /// # Errors
    /// The first field that is not whole, or ends within a row.
    pub(crate) fn finish(&mut self) -> Result<(), ShortField> {
        if let Fields::Of(layout) = self.fields {
            layout.ragged().iter().try_for_each(|ragged| self.end_rows(layout, ragged))?;
        }
        self.short_field().map_or(Ok(()), Err)
    }

    /// Ends a ragged field, which is whole then.
    fn end_rows(&mut self, layout: &BatchLayout, ragged: &RaggedSpan) -> Result<(), ShortField> {
        let (written, span) = (self.written[ragged.field], layout.spans()[ragged.field]);
        if !written.is_multiple_of(ragged.row_bytes) {
            return Err(self.short(ragged.field, written.next_multiple_of(ragged.row_bytes)));
        }
        if let (Placement::Device, Some(slot)) = (span.placement, self.slot) {
            let own = self.position..self.position + 1;
            // SAFETY: within the sample's bytes of the field, of which no more are written than there are, by the promise of `new`.
            let rest = unsafe { slot.add(span.of(&own).start + written) };
            // SAFETY: as above.
            unsafe { rest.write_bytes(0, span.bytes - written) };
            if let Some(lengths) = ragged.lengths {
                let length = rows::count(written, ragged).to_ne_bytes();
                // SAFETY: the field of the lengths is one of the sample's on the device too, and as large as one of them.
                let at = unsafe { slot.add(layout.spans()[lengths].of(&own).start) };
                // SAFETY: as above.
                unsafe { at.copy_from_nonoverlapping(NonNull::from(&length).cast(), length.len()) };
            }
        }
        for number in [Some(ragged.field), ragged.lengths].into_iter().flatten() {
            self.written[number] = layout.spans()[number].bytes;
        }
        Ok(())
    }

    /// The first field that is not whole.
    fn short_field(&self) -> Option<ShortField> {
        let spans = self.fields.spans().iter().zip(&self.written);
        // What the device reads by itself is written by nobody.
        let is_short = |(span, written): (&FieldSpan, &usize)| {
            *written < span.bytes && (span.placement == Placement::Host || self.slot.is_some())
        };
        let number = spans.map(is_short).position(|short| short)?;
        Some(self.short(number, self.fields.spans().get(number).map_or(0, |span| span.bytes)))
    }

    #[cold]
    fn short(&self, number: usize, expected: usize) -> ShortField {
        let name = match self.fields {
            Fields::Of(layout) => layout.sample().fields().get(number).map(Field::name),
            Fields::One(_) => None,
        };
        ShortField { name: name.unwrap_or("data").to_owned(), written: self.written[number], expected }
    }
}
