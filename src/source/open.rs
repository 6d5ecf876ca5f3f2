//! A source for a path, whatever kind it is of.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Source;
use super::shown::Shown;
#[cfg(feature = "images")]
use super::{FolderError, FolderOptions, FolderSource, TarError, TarOptions, TarSource};
#[cfg(feature = "npy")]
use super::{NpyError, NpyOptions, NpySource};

/// What [`open_path`] needs to know beyond the path.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// What a folder's images become.
    #[cfg(feature = "images")]
    pub folder: FolderOptions,
    /// What tar shards become.
    #[cfg(feature = "images")]
    pub tar: TarOptions,
    /// What a `.npy` file's dimensions mean.
    #[cfg(feature = "npy")]
    pub npy: NpyOptions,
}

/// No source can be made of a path. Every message names the path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceOpenError {
    /// There is nothing at the path, or it cannot be looked at.
    #[error("{}: {source}", Shown(.path))]
    Missing {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path is of a kind that no source reads.
    #[error("{}: no source for this; supported are {supported}", Shown(.path))]
    Unsupported {
        /// The path.
        path: PathBuf,
        /// What is supported, in words.
        supported: &'static str,
    },
    /// A `.npy` file cannot be used.
    #[cfg(feature = "npy")]
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A folder of images cannot be used.
    #[cfg(feature = "images")]
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Tar shards cannot be used.
    #[cfg(feature = "images")]
    #[error(transparent)]
    Tar(#[from] TarError),
}

/// What [`open_path`] opens, in words.
const SUPPORTED: &str = match (cfg!(feature = "npy"), cfg!(feature = "images")) {
    (true, true) => ".npy files, and folders and .tar shards of JPEG, PNG and WebP images",
    (true, false) => ".npy files (folders and .tar shards of images need the feature `images`)",
    (false, true) => "folders and .tar shards of JPEG, PNG and WebP images (.npy files need the feature `npy`)",
    (false, false) => "none (.npy files need the feature `npy`, folders and .tar shards of images `images`)",
};

/// Opens what is at `path`: a folder of images as a `FolderSource`, a `.tar` file, or several that a pattern with braces names
/// (`train-{000..146}.tar`), as a `TarSource` (feature `images`), a `.npy` file as an `NpySource` (feature `npy`). If
/// `NAME.labels.npy` lies beside `NAME.npy`, it holds the labels.
///
/// # Errors
/// [`SourceOpenError`], which names the path.
pub fn open_path(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Arc<dyn Source>, SourceOpenError> {
    let path = path.as_ref();
    #[cfg(feature = "images")]
    if names_shards(path) {
        return Ok(Arc::new(TarSource::open(path, options.tar.clone())?));
    }
    let metadata = fs::metadata(path).map_err(|source| SourceOpenError::Missing { path: path.into(), source })?;
    #[cfg(feature = "images")]
    if metadata.is_dir() {
        return Ok(Arc::new(FolderSource::open(path, options.folder.clone())?));
    }
    #[cfg(feature = "npy")]
    if !metadata.is_dir() && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
        let source = NpySource::open_with(path, options.npy)?;
        let labels = path.with_extension("labels.npy");
        // A link that leads nowhere is there too: labels must not vanish in silence.
        return Ok(Arc::new(if fs::symlink_metadata(&labels).is_ok() {
            source.with_labels_npy(labels)?
        } else {
            source
        }));
    }
    let _ = (options, metadata);
    Err(SourceOpenError::Unsupported { path: path.into(), supported: SUPPORTED })
}

/// Whether a path is that of a `.tar` file, compressed ones included for their error, or a pattern with braces for several.
#[cfg(feature = "images")]
fn names_shards(path: &Path) -> bool {
    const EXTENSIONS: [&str; 5] = ["tar", "tgz", "txz", "tbz2", "tzst"];
    match fs::metadata(path) {
        Ok(metadata) => {
            let is =
                |path: &Path, extension: &str| path.extension().is_some_and(|is| is.eq_ignore_ascii_case(extension));
            let compressed = path.file_stem().is_some_and(|stem| is(stem.as_ref(), "tar"));
            metadata.is_file() && (compressed || EXTENSIONS.iter().any(|extension| is(path, extension)))
        }
        Err(_) => path.to_string_lossy().contains('{'),
    }
}

#[cfg(all(test, feature = "npy", not(miri)))]
mod tests {
    use super::*;
    use crate::source::{NpyType, SampleContext, write_npy};
    use crate::staging::SampleBuffer;

    /// Of sample 1.
    fn label(source: &dyn Source) -> Option<i64> {
        let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
        source.read(&SampleContext::of(1), &mut sample.writer()).expect("there");
        sample.label()
    }

    #[test]
    fn labels_beside_a_npy_file_are_picked_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("train.v2.NPY");
        write_npy(&path, NpyType::U8, &[2, 3], &[0; 6]).expect("written");
        let open = || open_path(&path, &OpenOptions::default());
        assert_eq!(label(&open().expect("a source")), None);
        write_npy(folder.path().join("train.v2.labels.npy"), NpyType::U8, &[2], &[4, 5]).expect("written");
        let source = open().expect("a source");
        assert_eq!((source.len(), label(&source)), (2, Some(5)));
        write_npy(folder.path().join("train.v2.labels.npy"), NpyType::U8, &[1], &[4]).expect("written");
        assert!(matches!(open(), Err(SourceOpenError::Npy(NpyError::LabelCount { .. }))));
    }

    #[test]
    fn a_missing_path_and_an_unknown_kind_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.csv");
        let say = || open_path(&path, &OpenOptions::default()).err().expect("refused").to_string();
        assert!(say().contains("data.csv"), "{}", say());
        fs::write(&path, "1,2").expect("written");
        assert!(say().contains("data.csv: no source for this; supported are .npy files"), "{}", say());
    }

    #[test]
    #[cfg(feature = "images")]
    fn a_folder_is_opened_with_its_options() {
        use crate::layout::SampleLayout;
        let folder = tempfile::tempdir().expect("a folder");
        let open = |options: &OpenOptions| open_path(folder.path(), options);
        let mut options = OpenOptions::default();
        assert!(matches!(open(&options), Err(SourceOpenError::Folder(FolderError::NoImages { .. }))));
        image::RgbImage::new(3, 2).save(folder.path().join("a.png")).expect("written");
        options.folder.images.width = 9;
        let source = open(&options).expect("a source");
        assert_eq!(source.layout(), SampleLayout::image(224, 9, 3).expect("an image"));
    }
}
