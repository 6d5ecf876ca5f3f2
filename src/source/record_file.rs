//! A file that holds samples: opened once, read at any position, mapped when a device wants to read it, and watched for
//! changes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
#[cfg(feature = "npy")]
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

#[cfg(feature = "npy")]
use super::digest::Digest;
use super::shown::Shown;
#[cfg(feature = "npy")]
use crate::memory::{MappedFile, StableHostMemory};
use crate::staging::SampleWriter;

/// A file with samples in it cannot be opened or read. Every message names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be opened or looked at. Whether a retry can help is for the system's error to say.
    #[error("{}: cannot be opened: {source}", Shown(.path))]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a folder, a pipe or a device.
    #[error("{}: not a regular file", Shown(.path))]
    NotRegular {
        /// What is no file.
        path: PathBuf,
    },
    /// It is not what it was when it was opened: another length, or another time of modification. Open it anew.
    #[error("{}: the file was changed after it was opened", Shown(.path))]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A sample could not be read, although the file was whole when it was opened.
    #[error("{}: reading sample {index}: {source}", Shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The sample's index.
        index: u64,
        /// What the system said.
        source: io::Error,
    },
}

/// What a file looked like: its length and the time of its last modification. Who sets the time back, or changes the
/// file within the clock's resolution of its opening, goes unnoticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { len: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// An open file with samples in it, from some position on.
#[derive(Debug)]
pub(super) struct RecordFile {
    path: PathBuf,
    file: File,
    stamp: Stamp,
    /// Where the samples start.
    #[cfg(feature = "npy")]
    offset: u64,
    /// Mapped when a strategy first asks for it.
    #[cfg(feature = "npy")]
    mapped: OnceLock<Option<Arc<MappedFile>>>,
}

impl RecordFile {
    /// Opens a regular file. Its samples start at its beginning until [`starting_at`](Self::starting_at) says otherwise.
    pub(super) fn open(path: &Path) -> Result<Self, FileError> {
        let failed = |source| FileError::Open { path: path.into(), source };
        // Asked before opening, which would wait for the other end of a pipe.
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Err(FileError::NotRegular { path: path.into() });
        }
        let file = File::open(path).map_err(failed)?;
        let stamp = Stamp::of(&file).map_err(failed)?;
        Ok(Self {
            path: path.into(),
            file,
            stamp,
            #[cfg(feature = "npy")]
            offset: 0,
            #[cfg(feature = "npy")]
            mapped: OnceLock::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file when it was opened.
    pub(super) fn len(&self) -> u64 {
        self.stamp.len
    }

    /// What it looked like when it was opened.
    #[cfg(feature = "images")]
    pub(super) fn stamp(&self) -> Stamp {
        self.stamp.clone()
    }

    /// Fills `bytes` with what the file has at `offset`.
    #[cfg(feature = "images")]
    pub(super) fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let len = bytes.len();
        SampleWriter::over(bytes).read_file(&self.file, offset, len)
    }

    /// Whether the file still looks as it did when it was opened.
    pub(super) fn unchanged(&self) -> Result<(), FileError> {
        match Stamp::of(&self.file) {
            Ok(now) if now == self.stamp => Ok(()),
            Ok(_) => Err(FileError::Changed { path: self.path.clone() }),
            Err(source) => Err(FileError::Open { path: self.path.clone(), source }),
        }
    }
}

#[cfg(feature = "npy")]
impl RecordFile {
    /// The same file, whose samples start at `offset`.
    pub(super) fn starting_at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The file, read from where it stands: for headers.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Where the samples start.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads sample `index`, which is all of `bytes` bytes long as the others are, and checks that the file is what it was.
    ///
    /// Who opened the file has checked that the end of the last sample fits a u64.
    pub(super) fn read(&self, index: u64, bytes: usize, out: &mut SampleWriter<'_>) -> Result<(), FileError> {
        let offset = self.offset + index * bytes as u64;
        let failed = |source| FileError::Read { path: self.path.clone(), index, source };
        out.read_file(&self.file, offset, bytes).map_err(failed)?;
        self.unchanged()
    }

    /// The whole file, mapped shared and read-only, for devices alone to read; `None` where it cannot be mapped.
    pub(super) fn memory(&self) -> Option<Arc<dyn StableHostMemory>> {
        let map = || {
            let mapped = MappedFile::new(&self.file).map(Arc::new);
            mapped.inspect_err(|error| log::error!("{} cannot be mapped: {error}", Shown(&self.path))).ok()
        };
        self.mapped.get_or_init(map).clone().map(|mapped| mapped as Arc<dyn StableHostMemory>)
    }

    /// Adds what identifies the content: the bytes before the samples, the file's size, and a part of the samples.
    pub(super) fn digest(&self, digest: &mut Digest) -> io::Result<()> {
        let mut read = |offset: u64, bytes: usize| {
            let mut block = vec![0; bytes];
            SampleWriter::over(&mut block).read_file(&self.file, offset, bytes)?;
            digest.add(&block);
            Ok::<(), io::Error>(())
        };
        read(0, usize::try_from(self.offset).unwrap_or(usize::MAX))?;
        let content = self.len() - self.offset;
        for (offset, bytes) in Digest::sampled_blocks(content) {
            read(self.offset + offset, bytes)?;
        }
        digest.add_number(self.len());
        Ok(())
    }
}

#[cfg(all(test, feature = "npy", not(miri)))]
mod tests {
    use std::time::Duration;

    use super::*;

    fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        fs::write(&path, bytes).expect("written");
        (folder, path)
    }

    fn sample(file: &RecordFile, index: u64) -> Result<[u8; 2], FileError> {
        let mut memory = [0; 2];
        file.read(index, 2, &mut SampleWriter::over(&mut memory)).map(|()| memory)
    }

    #[test]
    fn samples_are_read_from_their_start_on() {
        let (_folder, path) = written(b"head112233");
        let file = RecordFile::open(&path).expect("a file").starting_at(4);
        assert_eq!((file.len(), file.offset(), file.path()), (10, 4, path.as_path()));
        assert_eq!(sample(&file, 0).expect("read"), *b"11");
        assert_eq!(sample(&file, 2).expect("read"), *b"33");
        assert!(matches!(sample(&file, 3), Err(FileError::Read { index: 3, .. })));
        assert_eq!(file.memory().expect("mapped").len(), 10);
    }

    #[test]
    fn another_length_or_time_is_a_change() {
        let (_folder, path) = written(b"1122");
        let file = RecordFile::open(&path).expect("a file");
        let writable = File::options().write(true).open(&path).expect("writable");
        writable.set_modified(SystemTime::now() - Duration::from_secs(9)).expect("its time is set");
        assert!(matches!(file.unchanged(), Err(FileError::Changed { .. })));
        assert!(matches!(sample(&file, 0), Err(FileError::Changed { .. })));
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(RecordFile::open(folder.path()), Err(FileError::NotRegular { .. })));
        assert!(matches!(RecordFile::open(&folder.path().join("none")), Err(FileError::Open { .. })));
    }

    #[test]
    fn a_copy_has_the_same_digest_and_other_content_another() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let digest = |bytes: &[u8]| {
            let (_folder, path) = written(bytes);
            let mut digest = Digest::new("test");
            RecordFile::open(&path).expect("a file").starting_at(100).digest(&mut digest).expect("read");
            digest.finish()
        };
        let mut other = bytes.clone();
        other[399_999] ^= 1;
        assert_eq!(digest(&bytes), digest(&bytes));
        assert_ne!(digest(&bytes), digest(&other));
        assert_ne!(digest(&bytes), digest(&bytes[..399_999]));
    }
}
