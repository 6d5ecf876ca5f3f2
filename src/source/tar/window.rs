//! Small reads at rising positions of a file, several from one call of the system.

use std::io;

use crate::source::record_file::RecordFile;

/// Bytes read at once: the headers and labels between two images of usual size, and no more.
const WINDOW: usize = 4096;

/// The part of a file that was read last.
pub(super) struct Window<'a> {
    pub(super) file: &'a RecordFile,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a RecordFile) -> Self {
        Self { file, start: 0, bytes: Vec::new() }
    }

    /// The `len` bytes at `at`, or as many as there are.
    pub(super) fn get(&mut self, at: u64, len: usize) -> io::Result<&[u8]> {
        let there = |want: usize| (want as u64).min(self.file.len().saturating_sub(at)) as usize;
        let len = there(len);
        let within = |start: u64, bytes: usize| at >= start && at + len as u64 <= start + bytes as u64;
        if !within(self.start, self.bytes.len()) {
            let wanted = there(len.max(WINDOW));
            // Emptied first, so that nothing is taken for read after an error.
            self.bytes.clear();
            self.bytes.resize(wanted, 0);
            if let Err(error) = self.file.read_at(at, &mut self.bytes) {
                self.bytes.clear();
                return Err(error);
            }
            self.start = at;
        }
        let from = (at - self.start) as usize;
        Ok(&self.bytes[from..from + len])
    }
}
