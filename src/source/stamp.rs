//! Whether an open file is still what it was.

use std::fs::File;
use std::io;
use std::time::SystemTime;

/// What a file looked like: its length and the time of its last modification. Who sets the time back, or changes the file within
/// the clock's resolution of its opening, goes unnoticed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { len: metadata.len(), modified: metadata.modified().ok() })
    }

    /// Whether the file still looks so.
    pub(super) fn is_of(&self, file: &File) -> io::Result<bool> {
        Ok(Self::of(file)? == *self)
    }
}
