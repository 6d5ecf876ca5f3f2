//! A file mapped into memory, for devices to read.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::NonNull;

use memmap2::Mmap;

use super::StableHostMemory;

/// A shared, read-only mapping of a whole file. The CPU never touches it: a file that shrinks would end the process with a signal.
#[derive(Debug)]
pub(crate) struct MappedFile {
    map: Mmap,
    base: NonNull<u8>,
}

// SAFETY: the mapping is owned, has no thread affinity, and is only read, by devices.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: no reference into the mapping is ever made, so that a file which changes underneath breaks no rule of the
        // language; the source checks before each batch that the file is what it was.
        let map = unsafe { Mmap::map(file)? };
        let base = NonNull::new(map.as_ptr().cast_mut()).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Self { map, base })
    }
}

// SAFETY: the mapping stays where it is, with this length, until it is dropped. That nobody writes the file is what its user
// was told to see to; the source notices most who do.
unsafe impl StableHostMemory for MappedFile {
    fn address(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn is_mapped_read_only(&self) -> bool {
        true
    }
}
