//! Write-only memory for one field of one sample.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use super::super::{Access, stream};
use super::file;
use super::rows::Rows;
use crate::layout::{Field, Scalar};

/// Memory for one field of one sample, written from front to back. See [`SampleWriter`](super::SampleWriter).
#[derive(Debug)]
pub struct FieldWriter<'w> {
    base: NonNull<u8>,
    len: usize,
    access: Access,
    field: Option<&'w Field>,
    /// Of a ragged field.
    rows: Option<Rows<'w>>,
    /// At most `len`.
    written: &'w mut usize,
    memory: PhantomData<&'w mut [u8]>,
}

impl<'w> FieldWriter<'w> {
    /// # Safety
    /// `base` is valid for writes of `len` bytes, they are what `access` says, and nothing else accesses them, for `'w`. No more than
    /// `len` are written so far.
    pub(super) unsafe fn new(
        base: NonNull<u8>,
        len: usize,
        access: Access,
        field: Option<&'w Field>,
        rows: Option<Rows<'w>>,
        written: &'w mut usize,
    ) -> Self {
        Self { base, len, access, field, rows, written, memory: PhantomData }
    }

    /// Bytes of the field; of a ragged one, the most that it may have.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the field has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes written so far.
    #[must_use]
    pub fn written(&self) -> usize {
        *self.written
    }

    /// Bytes still to be written; of a ragged field, those that still may be.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.len - *self.written
    }

    /// Writes the next bytes, all of them. (As an [`io::Write`] it writes what fits.)
    ///
    /// # Errors
    /// [`io::ErrorKind::WriteZero`] if they do not fit; nothing is written then.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let at = self.reserve(bytes.len())?;
        if self.access.streamed {
            // SAFETY: `reserve` checked that the range is within the field, whose memory is valid for writes and
            // accessed by nobody else, so it cannot overlap `bytes`.
            unsafe { stream::copy(bytes, at) };
        } else {
            // SAFETY: as above.
            unsafe { at.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
        self.count(bytes.len());
        Ok(())
    }

    /// Writes one element.
    ///
    /// # Errors
    /// As [`values`](Self::values).
    pub fn value(&mut self, value: impl Scalar) -> io::Result<()> {
        self.values(slice::from_ref(&value))
    }

    /// Writes elements.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the field has elements of another type, [`io::ErrorKind::WriteZero`] if they do not fit; nothing
    /// is written then.
    pub fn values<T: Scalar>(&mut self, values: &[T]) -> io::Result<()> {
        match self.field {
            Some(field) if !T::holds(field.element()) => {
                let (name, element) = (field.name(), field.element());
                let message = format!("field `{name}` has elements of type {element}, not {}", T::ELEMENT);
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
            _ => self.write(bytemuck::cast_slice(values)),
        }
    }

    /// Reads the next `len` bytes from `file` at `offset`, straight into the field. Short reads are continued.
    ///
    /// # Errors
    /// The file's own error; [`io::ErrorKind::UnexpectedEof`] if it ends early, [`io::ErrorKind::WriteZero`] if
    /// `len` does not fit.
    pub fn read_file(&mut self, file: &File, mut offset: u64, len: usize) -> io::Result<()> {
        self.reserve(len)?;
        let end = *self.written + len;
        while *self.written < end {
            let left = end - *self.written;
            let at = self.reserve(left)?;
            // SAFETY: `reserve` checked that `left` bytes at `at` are within the field and valid for writes.
            let read = unsafe { file::read_some(file, offset, at, left) }?;
            if read == 0 {
                let message = format!("the file ends at byte {offset}, {left} bytes early");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            self.count(read);
            offset += read as u64;
        }
        Ok(())
    }

    /// What remains of the field as a slice, for a decoder that wants one; `None` where reading the memory would be slow, or cannot be
    /// done at all. It holds zeros or bytes of an earlier batch. [`advance`](Self::advance) counts what was written.
    pub fn lend(&mut self) -> Option<&mut [u8]> {
        // SAFETY: memory that may be read is initialised, as `Access` says; the rest of the field is this writer's alone, which is
        // borrowed mutably.
        self.access.readable.then(|| unsafe { slice::from_raw_parts_mut(self.rest().as_ptr(), self.remaining()) })
    }

    /// As [`lend`](Self::lend), for as long as the writer might have lived.
    pub(super) fn into_lent(self) -> Option<&'w mut [u8]> {
        // SAFETY: as above; the writer is gone, and nobody else accesses the memory for 'w.
        self.access.readable.then(|| unsafe { slice::from_raw_parts_mut(self.rest().as_ptr(), self.remaining()) })
    }

    /// Counts the next `bytes` bytes as written, which were written to what [`lend`](Self::lend) gave. Counting what was not written
    /// delivers bytes of an earlier batch.
    ///
    /// # Errors
    /// [`io::ErrorKind::WriteZero`] if there are not as many left, [`io::ErrorKind::Unsupported`] where nothing is lent.
    pub fn advance(&mut self, bytes: usize) -> io::Result<()> {
        self.reserve(bytes)?;
        if !self.access.readable {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this memory is not lent"));
        }
        self.count(bytes);
        Ok(())
    }

    /// The next bytes are written.
    fn count(&mut self, bytes: usize) {
        *self.written += bytes;
        if let Some(rows) = &mut self.rows {
            rows.written(*self.written);
        }
    }

    /// Where the next `len` bytes go, if they fit.
    fn reserve(&self, len: usize) -> io::Result<NonNull<u8>> {
        if len > self.remaining() {
            return Err(self.too_long(len));
        }
        Ok(self.rest())
    }

    #[cold]
    fn too_long(&self, len: usize) -> io::Error {
        let name = self.field.map_or_else(String::new, |field| format!("field `{}`: ", field.name()));
        let most = self.rows.as_ref().map_or_else(String::new, |rows| {
            format!(", at most {} rows of {} bytes", self.len / rows.row_bytes(), rows.row_bytes())
        });
        let message = format!("{name}{len} bytes do not fit the {} left of {}{most}", self.remaining(), self.len);
        io::Error::new(io::ErrorKind::WriteZero, message)
    }

    fn rest(&self) -> NonNull<u8> {
        // SAFETY: written <= len, so the result is within or one past the field.
        unsafe { self.base.add(*self.written) }
    }
}

impl io::Write for FieldWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.remaining());
        FieldWriter::write(self, &bytes[..fits])?;
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
