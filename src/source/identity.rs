//! Which file a path leads to.

use std::io;
use std::path::Path;

/// Which file a path leads to, whatever the path is called: links of both kinds and roundabout paths to one file are
/// equal.
///
/// On Unix this is the device and the inode, on Windows the volume and the file's index, for which the file is held open.
/// Elsewhere it is the path without links, so that two hard links to one file differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity(Identity);

#[cfg(unix)]
type Identity = (u64, u64);
// Indices of files that nobody has open may be given to others.
#[cfg(windows)]
type Identity = std::sync::Arc<same_file::Handle>;
#[cfg(not(any(unix, windows)))]
type Identity = std::path::PathBuf;

impl FileIdentity {
    /// The file or folder at `path`. Links are followed.
    ///
    /// # Errors
    /// What the system says: there is nothing there, or it cannot be looked at.
    #[cfg(unix)]
    pub fn of(path: impl AsRef<Path>) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path)?;
        Ok(Self((metadata.dev(), metadata.ino())))
    }

    /// The file or folder at `path`. Links are followed.
    ///
    /// # Errors
    /// What the system says: there is nothing there, or it cannot be looked at.
    #[cfg(windows)]
    pub fn of(path: impl AsRef<Path>) -> io::Result<Self> {
        same_file::Handle::from_path(path).map(|handle| Self(handle.into()))
    }

    /// The file or folder at `path`. Links are followed.
    ///
    /// # Errors
    /// What the system says: there is nothing there, or it cannot be looked at.
    #[cfg(not(any(unix, windows)))]
    pub fn of(path: impl AsRef<Path>) -> io::Result<Self> {
        std::fs::canonicalize(path).map(Self)
    }
}

#[cfg(all(test, any(unix, windows), not(miri)))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_way_to_one_file_has_one_identity() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "1").expect("written");
        fs::write(at("b"), "1").expect("written");
        fs::hard_link(at("a"), at("hard")).expect("linked");
        #[cfg(unix)]
        std::os::unix::fs::symlink("a", at("soft")).expect("linked");
        fs::create_dir(at("sub")).expect("created");
        let of = |name: &str| FileIdentity::of(at(name)).expect("it is there");
        for same in ["hard", "sub/../a"].into_iter().chain(cfg!(unix).then_some("soft")) {
            assert_eq!(of(same), of("a"), "{same}");
        }
        assert_ne!(of("b"), of("a"));
        assert!(FileIdentity::of(at("none")).is_err());
    }
}
