//! Where a source puts one sample: a writer a field.

#![allow(unsafe_code)]

mod field;
mod file;
pub(super) mod finish;
mod rows;

pub use field::FieldWriter;

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use super::Access;
use crate::layout::{BatchLayout, FieldKey, FieldKind, FieldSpan, LABEL, Placement, SampleLayout, Scalar};

/// Memory for one sample, to be written field by field.
///
/// Staging memory can be write-combined or behind a bus, where reading is a hundred times slower than writing, so there is in general
/// no way to read it back. A source writes each field from front to back until nothing [remains](FieldWriter::remaining) of it; writing
/// less is an error, so that an earlier batch's bytes never leak through. Of a [ragged](crate::Field::ragged) field it writes as many whole rows as
/// the sample has.
///
/// Most samples have one field, or one and a label. So what is called on the writer itself is for the first field, and
/// [`label`](Self::label) writes the label; [`field`](Self::field) gives any field's writer, by number or by name.
#[derive(Debug)]
pub struct SampleWriter<'a> {
    fields: Fields<'a>,
    /// The slot; `None` where the device reads its fields by itself.
    slot: Option<NonNull<u8>>,
    access: Access,
    /// The batch's fields on the host.
    host: &'a mut [u8],
    /// The sample's place in the batch.
    position: usize,
    written: [usize; SampleLayout::MAX_FIELDS],
    memory: PhantomData<&'a mut [u8]>,
}

#[derive(Clone, Copy, Debug)]
enum Fields<'a> {
    Of(&'a BatchLayout),
    /// Some memory, for using a source without a loader.
    One(FieldSpan),
}

impl Fields<'_> {
    fn spans(&self) -> &[FieldSpan] {
        match self {
            Self::Of(layout) => layout.spans(),
            Self::One(span) => slice::from_ref(span),
        }
    }
}

impl<'a> SampleWriter<'a> {
    /// # Safety
    /// For `'a`, the bytes of sample `position` of every field on the device, within the slot at `slot`, are valid for writes, and
    /// nothing else accesses them. They are what `access` says.
    pub(super) unsafe fn new(
        layout: &'a BatchLayout,
        slot: NonNull<u8>,
        access: Access,
        host: &'a mut [u8],
        position: usize,
    ) -> Self {
        Self::of(layout, Some(slot), access, host, position)
    }

    /// A writer of the fields on the host alone: the device reads the others by itself. `host` is what the batch has of them.
    pub(crate) fn on_host(layout: &'a BatchLayout, host: &'a mut [u8], position: usize) -> Self {
        Self::of(layout, None, Access::HOST, host, position)
    }

    /// The memory is as [`new`](Self::new)'s caller promised, or there is no slot.
    fn of(
        layout: &'a BatchLayout,
        slot: Option<NonNull<u8>>,
        access: Access,
        host: &'a mut [u8],
        position: usize,
    ) -> Self {
        // A ragged field that is not written has no rows.
        layout.ragged().iter().for_each(|ragged| rows::set(host, ragged, position, 0));
        Self {
            fields: Fields::Of(layout),
            slot,
            access,
            host,
            position,
            written: [0; SampleLayout::MAX_FIELDS],
            memory: PhantomData,
        }
    }

    /// A writer of a single field over ordinary memory, for using a source without a loader. For samples with several fields, or a
    /// label, see [`SampleBuffer`](super::SampleBuffer).
    #[must_use]
    pub fn over(memory: &'a mut [u8]) -> Self {
        let span = FieldSpan { placement: Placement::Host, offset: 0, bytes: memory.len() };
        Self {
            fields: Fields::One(span),
            slot: None,
            access: Access::HOST,
            host: memory,
            position: 0,
            written: [0; SampleLayout::MAX_FIELDS],
            memory: PhantomData,
        }
    }

    /// The writer of a field, by its number or its name. It goes on where an earlier one stopped.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the sample has no such field; [`io::ErrorKind::Unsupported`] if the device reads it by itself, or it is
    /// the lengths of a ragged field, which are counted.
    pub fn field(&mut self, field: impl FieldKey) -> io::Result<FieldWriter<'_>> {
        let number = match self.fields {
            Fields::Of(layout) => layout.sample().position(field),
            Fields::One(_) => field.number(),
        };
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("the sample has no field {field:?}"));
        self.at(number.ok_or_else(missing)?)?.ok_or_else(missing)
    }

    /// Writes the field called `label`, which is a single element of this type.
    ///
    /// # Errors
    /// As [`field`](Self::field) and [`FieldWriter::value`].
    pub fn label(&mut self, label: impl Scalar) -> io::Result<()> {
        self.field(LABEL)?.value(label)
    }

    fn first(&mut self) -> io::Result<FieldWriter<'_>> {
        self.at(0)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn at(&mut self, number: usize) -> io::Result<Option<FieldWriter<'_>>> {
        let Some(&span) = self.fields.spans().get(number) else { return Ok(None) };
        let (field, ragged) = match self.fields {
            Fields::Of(layout) => (layout.sample().fields().get(number), layout.ragged_field(number)),
            Fields::One(_) => (None, None),
        };
        let refused = |reason: &str| io::Error::new(io::ErrorKind::Unsupported, reason.to_owned());
        if field.is_some_and(|field| field.kind() == FieldKind::Lengths) {
            return Err(refused("a ragged field's lengths are counted, not written"));
        }
        let bytes = span.of(&(self.position..self.position + 1));
        let (base, access, rows) = match span.placement {
            Placement::Host => {
                let Some((memory, rows)) = rows::split(self.host, bytes, ragged, self.position) else {
                    return Ok(None);
                };
                (NonNull::from(memory).cast(), Access::HOST, rows)
            }
            Placement::Device => {
                let slot = self.slot.ok_or_else(|| refused("the device reads this field by itself"))?;
                let Some((_, rows)) = rows::split(self.host, 0..0, ragged, self.position) else { return Ok(None) };
                // SAFETY: `new`'s caller promised that the sample's bytes of this field lie there.
                (unsafe { slot.add(bytes.start) }, self.access, rows)
            }
        };
        // SAFETY: the memory is the writer's alone for 'a, by the promise of `new` or the borrow of `host`, and `self` is borrowed
        // mutably for as long as the field's writer lives.
        Ok(Some(unsafe { FieldWriter::new(base, span.bytes, access, field, rows, &mut self.written[number]) }))
    }

    /// Bytes of the first field.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.spans().first().map_or(0, |span| span.bytes)
    }

    /// Whether the first field has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the first field written so far.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written[0]
    }

    /// Bytes of the first field still to be written.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.len() - self.written()
    }

    /// Writes the next bytes of the first field, all of them: see [`FieldWriter::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.first()?.write(bytes)
    }

    /// Reads the next bytes of the first field from a file: see [`FieldWriter::read_file`].
    ///
    /// # Errors
    /// As there.
    pub fn read_file(&mut self, file: &File, offset: u64, len: usize) -> io::Result<()> {
        self.first()?.read_file(file, offset, len)
    }

    /// What remains of the first field, where it can be written in place: see [`FieldWriter::lend`].
    pub fn lend(&mut self) -> Option<&mut [u8]> {
        self.first().ok()?.into_lent()
    }

    /// Counts bytes of the first field that were written to what [`lend`](Self::lend) gave: see [`FieldWriter::advance`].
    ///
    /// # Errors
    /// As there.
    pub fn advance(&mut self, bytes: usize) -> io::Result<()> {
        self.first()?.advance(bytes)
    }

    /// Leaves what remains of every field as it is: zeros, or an earlier batch of the same loader. Only for measuring a loader without
    /// its source.
    pub(crate) fn leave_rest(&mut self) {
        let spans = match &self.fields {
            Fields::Of(layout) => layout.spans(),
            Fields::One(span) => slice::from_ref(span),
        };
        self.written.iter_mut().zip(spans).for_each(|(written, span)| *written = span.bytes);
        if let Fields::Of(layout) = self.fields {
            for ragged in layout.ragged() {
                rows::set(self.host, ragged, self.position, self.written[ragged.field] / ragged.row_bytes);
            }
        }
    }
}

/// Writes to the first field. Unlike the inherent [`write`](SampleWriter::write), the trait's writes what fits.
impl io::Write for SampleWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut self.first()?, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
