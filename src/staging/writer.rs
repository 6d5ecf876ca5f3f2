//! Where a source puts one sample: write-only memory with a length.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::stream;

/// Write-only memory for one sample.
///
/// Staging memory can be write-combined or behind a bus, where reading is a hundred times slower than writing, so there
/// is no way to read it back. A source writes from front to back until [`remaining`](Self::remaining) is zero; writing
/// less than the whole sample is an error, so that an earlier batch's bytes never leak through.
#[derive(Debug)]
pub struct SampleWriter<'a> {
    base: NonNull<u8>,
    len: usize,
    written: usize,
    streamed: bool,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> SampleWriter<'a> {
    /// # Safety
    /// `base` is valid for writes of `len` bytes, and nothing else accesses them, for `'a`.
    pub(crate) unsafe fn new(base: NonNull<u8>, len: usize, streamed: bool) -> Self {
        Self { base, len, written: 0, streamed, memory: PhantomData }
    }

    /// A writer over ordinary memory, for using a source without a loader.
    #[must_use]
    pub fn over(memory: &'a mut [u8]) -> Self {
        let len = memory.len();
        // SAFETY: the slice is borrowed mutably for 'a.
        unsafe { Self::new(NonNull::from(memory).cast(), len, false) }
    }

    /// Bytes of the sample.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the sample has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes written so far.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written
    }

    /// Bytes still to be written.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.len - self.written
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::WriteZero`] if they do not fit; nothing is written then.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let at = self.reserve(bytes.len())?;
        if self.streamed {
            // SAFETY: `reserve` checked that the range is within the sample, whose memory is valid for writes and
            // accessed by nobody else, so it cannot overlap `bytes`.
            unsafe { stream::copy(bytes, at) };
        } else {
            // SAFETY: as above.
            unsafe { at.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
        self.written += bytes.len();
        Ok(())
    }

    /// Reads the next `len` bytes from `file` at `offset`, straight into staging memory. Short reads are continued.
    ///
    /// # Errors
    /// The file's own error; [`io::ErrorKind::UnexpectedEof`] if it ends early, [`io::ErrorKind::WriteZero`] if
    /// `len` does not fit.
    pub fn read_file(&mut self, file: &File, mut offset: u64, len: usize) -> io::Result<()> {
        self.reserve(len)?;
        let end = self.written + len;
        while self.written < end {
            let read = self.read_some(file, offset, end - self.written)?;
            if read == 0 {
                let message = format!("the file ends at byte {offset}, {} bytes early", end - self.written);
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            self.written += read;
            offset += read as u64;
        }
        Ok(())
    }

    /// Leaves the rest of the sample as it is: zeros, or an earlier batch of the same loader. Only for measuring a
    /// loader without its source.
    pub(crate) fn leave_rest(&mut self) {
        self.written = self.len;
    }

    /// Where the next `len` bytes go, if they fit.
    fn reserve(&self, len: usize) -> io::Result<NonNull<u8>> {
        if len > self.remaining() {
            let message = format!("{len} bytes do not fit the {} left of a {}-byte sample", self.remaining(), self.len);
            return Err(io::Error::new(io::ErrorKind::WriteZero, message));
        }
        // SAFETY: written <= len, so the result is within or one past the sample.
        Ok(unsafe { self.base.add(self.written) })
    }

    /// One positioned read by raw pointer: `read_at` of the standard library wants a `&mut [u8]`, which memory that
    /// must not be read cannot be.
    #[cfg(unix)]
    fn read_some(&mut self, file: &File, offset: u64, most: usize) -> io::Result<usize> {
        use std::os::fd::AsRawFd;
        let at = self.reserve(most)?;
        let offset = libc::off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        loop {
            // SAFETY: `reserve` checked that `most` bytes at `at` are within the sample and valid for writes; the
            // descriptor is open as long as `file` is borrowed.
            let read = unsafe { libc::pread(file.as_raw_fd(), at.as_ptr().cast(), most, offset) };
            match usize::try_from(read) {
                Ok(read) => return Ok(read),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Elsewhere: through a small scratch buffer.
    #[cfg(windows)]
    fn read_some(&mut self, file: &File, offset: u64, most: usize) -> io::Result<usize> {
        use std::os::windows::fs::FileExt;
        let mut scratch = [0; 16 << 10];
        let most = most.min(scratch.len());
        let read = file.seek_read(&mut scratch[..most], offset)?;
        let at = self.reserve(read)?;
        // SAFETY: `reserve` checked that `read` bytes at `at` are within the sample and valid for writes; the
        // scratch buffer is another object.
        unsafe { at.copy_from_nonoverlapping(NonNull::from(&scratch[..]).cast(), read) };
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bytes_that_do_not_fit_are_refused_whole() {
        let mut memory = [9; 4];
        let mut writer = SampleWriter::over(&mut memory);
        writer.write(&[1, 2]).expect("fits");
        assert_eq!(writer.write(&[3, 4, 5]).expect_err("too long").kind(), io::ErrorKind::WriteZero);
        assert_eq!((writer.written(), writer.remaining()), (2, 2));
        assert_eq!(memory, [1, 2, 9, 9]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn a_file_is_read_from_its_offset_and_its_end_is_an_error() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&(0..100).collect::<Vec<u8>>()).expect("written");
        let mut memory = [0; 40];
        let mut writer = SampleWriter::over(&mut memory);
        writer.read_file(&file, 50, 30).expect("within the file");
        let error = writer.read_file(&file, 95, 10).expect_err("past the end");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("5 bytes early"), "{error}");
        assert_eq!(memory[..30], (50..80).collect::<Vec<u8>>());
    }
}
