//! Where a closure writes a frame: its fields in the slot, and its tag.

use std::io;
use std::ops::{Deref, DerefMut};

use super::error::{FeedError, FieldProblem};
use crate::layout::{FieldKey, Scalar};
use crate::staging::{FieldWriter, SampleWriter, ShortField};

/// Where a closure writes one frame, straight into the slot: the [`SampleWriter`] of its fields, and its tag.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    sample: SampleWriter<'a>,
    position: usize,
    tag: &'a mut u64,
}

impl<'a> FrameWriter<'a> {
    pub(super) fn new(sample: SampleWriter<'a>, position: usize, tag: &'a mut u64) -> Self {
        Self { sample, position, tag }
    }

    /// The frame's position in the batch, from zero.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Gives the frame a number of the caller's own, which comes with the batch: see [`Batch::tags`](crate::Batch::tags).
    pub fn set_tag(&mut self, tag: u64) {
        *self.tag = tag;
    }

    /// Writes the next bytes of the first field, all of them: see [`FieldWriter::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sample.write(bytes)
    }

    /// Writes the field called `label`: see [`SampleWriter::label`].
    ///
    /// # Errors
    /// As there.
    pub fn label(&mut self, label: impl Scalar) -> io::Result<()> {
        self.sample.label(label)
    }

    /// The writer of a field, by its number or its name: see [`SampleWriter::field`].
    ///
    /// # Errors
    /// As there.
    pub fn field(&mut self, field: impl FieldKey) -> io::Result<FieldWriter<'_>> {
        self.sample.field(field)
    }

    /// Writes the next rows of the first field from memory in which each row starts `pitch` bytes after the one before: `row` bytes
    /// of each are written. The last row may end where its bytes do.
    ///
    /// ```
    /// use gpufeed::backend::host::HostBackend;
    /// use gpufeed::{Feeder, FeederOptions, SampleLayout};
    ///
    /// let mut feeder = Feeder::new(&HostBackend::new(), SampleLayout::image(2, 3, 1)?, FeederOptions::default())?;
    /// let padded = [1, 2, 3, 0, 4, 5, 6];
    /// let batch = feeder.feed_with(1, |frame| frame.write_rows(&padded, 3, 4))?;
    /// assert_eq!(batch.read()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a row of no bytes, or one longer than the pitch; [`io::ErrorKind::UnexpectedEof`] where the
    /// memory ends within a row, and [`io::ErrorKind::WriteZero`] where the rows do not fit.
    pub fn write_rows(&mut self, memory: &[u8], row: usize, pitch: usize) -> io::Result<()> {
        if row == 0 || row > pitch {
            let message = format!("a row of {row} bytes does not fit a pitch of {pitch}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        for line in memory.chunks(pitch) {
            let bytes = line.get(..row).ok_or_else(|| {
                let message = format!("the last row has {} of {row} bytes", line.len());
                io::Error::new(io::ErrorKind::UnexpectedEof, message)
            })?;
            self.write(bytes)?;
        }
        Ok(())
    }

    /// Ends the frame.
    ///
    /// # Errors
    /// The first field that is not whole.
    pub(super) fn finish(&mut self) -> Result<(), FeedError> {
        self.sample.finish().map_err(|ShortField { name, written, expected }| {
            let problem = FieldProblem::Short { got: written, expected };
            FeedError::Field { frame: self.position, field: name, problem }
        })
    }
}

/// Writes to the first field. Unlike the inherent [`write`](FrameWriter::write), the trait's writes what fits.
impl io::Write for FrameWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut self.sample, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// For what a sample's writer offers beside.
impl<'a> Deref for FrameWriter<'a> {
    type Target = SampleWriter<'a>;

    fn deref(&self) -> &SampleWriter<'a> {
        &self.sample
    }
}

impl DerefMut for FrameWriter<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.sample
    }
}
