//! Folders of JPEG, PNG and WebP files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use super::column::Labels;
use super::decode::Target;
use super::{OutOfRange, SampleContext, Source};
use crate::error::{LayoutError, SourceError};
use crate::layout::SampleLayout;
use crate::staging::SampleWriter;

/// How an image of another shape becomes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Fit {
    /// The whole image, stretched to the sample's height and width.
    Stretch,
    /// The largest centred part with the sample's proportions: scaled so that the shorter side fits, then cropped.
    #[default]
    Crop,
}

/// What a [`FolderSource`] makes of its images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderOptions {
    /// Rows of a sample. Default 224.
    pub height: usize,
    /// Columns of a sample. Default 224.
    pub width: usize,
    /// Channels of a sample: 1 (grey), 3 (RGB) or 4 (RGBA). Default 3.
    pub channels: usize,
    /// How an image of another shape becomes a sample. Default [`Fit::Crop`].
    pub fit: Fit,
    /// The most bytes that one image may have, as a file and when decoded at its own size. A larger one is an error, so
    /// that a small file cannot claim all memory. A decoder may need a few times as much. Default 512 MiB.
    pub max_decoded_bytes: u64,
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self { height: 224, width: 224, channels: 3, fit: Fit::default(), max_decoded_bytes: 512 << 20 }
    }
}

/// A folder cannot be used as a source. Every message names the folder or file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A folder cannot be listed, or an image's link leads nowhere.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no image.
    #[error("{}: no images (.jpg, .jpeg, .png, .webp) in this folder or below", .path.display())]
    NoImages {
        /// The folder.
        path: PathBuf,
    },
    /// Some images lie in sub-folders, which are classes, and some do not.
    #[error("{} has no class: images lie either all in sub-folders or all beside each other", .path.display())]
    Mixed {
        /// The first image outside the sub-folders.
        path: PathBuf,
    },
    /// A link leads back to a folder that it lies in.
    #[error("{}: this link leads back to a folder around it", .path.display())]
    Loop {
        /// The link.
        path: PathBuf,
    },
    /// The options make no usable samples.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// The images of a folder and the folders below it, decoded as they are read.
///
/// **Files.** Files ending in `.jpg`, `.jpeg`, `.png` or `.webp`, in any case, are images; what is really in them is
/// told by their first bytes. Names that start with a dot are skipped, links are followed. The order is that of the
/// paths, compared folder by folder and byte by byte: an index means the same image as long as no file comes or goes.
///
/// **Labels.** If the images lie in sub-folders, the sub-folders' sorted names are the [`classes`](Self::classes) (one
/// without images too, so that the parts of a data set agree), and an image's label, an i64, is the index of its class. Images
/// beside each other have no labels.
///
/// **Pixels.** In this order:
///
/// 1. Decoding: 16-bit values are rounded to 8 bits, `(v + 128) / 257`; CMYK becomes RGB, `ink * black / 255` of the
///    values as JPEG stores them (inverted); of an animation the first frame counts. Colour profiles are ignored.
/// 2. Channels: grey is replicated. Colour becomes grey as Rec. 709 luma of the stored values,
///    `(2126 R + 7152 G + 722 B) / 10000`, rounded down. Alpha is kept for 4 channels, where images without it get 255;
///    for 1 and 3 it is dropped and the colours stay as they are stored, whatever was transparent.
/// 3. The EXIF orientation is applied.
/// 4. Resizing to the sample's size as [`Fit`] says, by convolution with a triangle filter that widens when shrinking
///    (bilinear with antialiasing). With 4 channels, colours are weighted by their alpha. An image that has the
///    sample's size already is not resampled: its bytes are as decoded.
///
/// Errors while reading are [`ImageError`](super::ImageError)s, which name the file. A truncated file is one of them;
/// damage within a JPEG's or lossy WebP's data can go unnoticed, as these formats have no checksums.
///
/// ```no_run
/// use gpufeed::source::{FolderOptions, FolderSource};
/// use gpufeed::Source;
///
/// let source = FolderSource::open("imagenet/val", FolderOptions { height: 256, width: 256, ..Default::default() })?;
/// println!("{} images of {} classes", source.len(), source.classes().len());
/// # Ok::<(), gpufeed::SourceError>(())
/// ```
#[derive(Debug)]
pub struct FolderSource {
    paths: Vec<PathBuf>,
    /// The class of each image; none without classes.
    labels: Option<Labels>,
    classes: Vec<String>,
    layout: SampleLayout,
    target: Target,
}

impl FolderSource {
    /// Finds the images of a folder. None is opened yet.
    ///
    /// # Errors
    /// [`FolderError`]; its message names the folder.
    #[expect(clippy::needless_pass_by_value, reason = "options are given away, as everywhere")]
    pub fn open(path: impl AsRef<Path>, options: FolderOptions) -> Result<Self, FolderError> {
        let root = path.as_ref();
        let FolderOptions { height, width, channels, fit, max_decoded_bytes } = options;
        let layout = SampleLayout::image(height, width, channels)?;
        let side = |side| u32::try_from(side).map_err(|_| LayoutError::Overflow { what: "an image's side" });
        let target = Target { height: side(height)?, width: side(width)?, channels, fit, max_decoded_bytes };
        let mut paths = Vec::new();
        collect(root, &mut Vec::new(), &mut paths)?;
        paths.sort_unstable();
        let (labels, classes) = label(root, &paths)?;
        // One label an image, where there are any.
        let labels = Labels::new(&labels, paths.len() as u64).ok();
        let layout = labels.as_ref().map_or(Ok(layout.clone()), |labels| labels.add_to(&layout))?;
        Ok(Self { paths, labels, classes, layout, target })
    }

    /// The classes' names by label; empty without classes. Characters that are not Unicode are replaced.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The file of sample `index`.
    #[must_use]
    pub fn path(&self, index: u64) -> Option<&Path> {
        self.paths.get(usize::try_from(index).ok()?).map(PathBuf::as_path)
    }
}

impl Source for FolderSource {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        self.paths.len() as u64
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = sample.index;
        let path = self.path(index).ok_or(OutOfRange { index, len: self.len() })?;
        self.target.read(path, out)?;
        self.labels.as_ref().map_or(Ok(()), |labels| labels.write(index, out))
    }
}

/// Whether a file is an image by its name.
fn is_image(path: &Path) -> bool {
    let known = |extension: &OsStr| ["jpg", "jpeg", "png", "webp"].iter().any(|e| extension.eq_ignore_ascii_case(e));
    path.extension().is_some_and(known)
}

/// The visible entries of a folder, in no order.
fn entries(folder: &Path) -> Result<Vec<DirEntry>, FolderError> {
    let listed = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = listed.map_err(|source| FolderError::Io { path: folder.into(), source })?;
    entries.retain(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    Ok(entries)
}

/// Adds the images in and below `folder` to `found`. `around` are the real paths of the folders it lies in.
fn collect(folder: &Path, around: &mut Vec<PathBuf>, found: &mut Vec<PathBuf>) -> Result<(), FolderError> {
    let real = fs::canonicalize(folder).map_err(|source| FolderError::Io { path: folder.into(), source })?;
    if around.contains(&real) {
        return Err(FolderError::Loop { path: folder.into() });
    }
    around.push(real);
    for entry in entries(folder)? {
        let path = entry.path();
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => fs::metadata(&path).map(|metadata| metadata.file_type()),
            kind => kind,
        };
        match kind {
            Ok(kind) if kind.is_dir() => collect(&path, around, found)?,
            Ok(kind) if kind.is_file() && is_image(&path) => found.push(path),
            Err(source) if is_image(&path) => return Err(FolderError::Io { path, source }),
            _ => {}
        }
    }
    around.pop();
    Ok(())
}

/// The label of each image and the names of the classes; neither where all images lie directly in `root`.
fn label(root: &Path, paths: &[PathBuf]) -> Result<(Vec<i64>, Vec<String>), FolderError> {
    let direct = |path: &&PathBuf| path.parent() == Some(root);
    match paths.iter().filter(direct).count() {
        _ if paths.is_empty() => return Err(FolderError::NoImages { path: root.into() }),
        0 => {}
        all if all == paths.len() => return Ok((Vec::new(), Vec::new())),
        _ => {
            let path = paths.iter().find(direct).cloned().unwrap_or_default();
            return Err(FolderError::Mixed { path });
        }
    }
    let mut classes: Vec<OsString> =
        entries(root)?.iter().filter(|entry| entry.path().is_dir()).map(DirEntry::file_name).collect();
    classes.sort_unstable();
    let class_of = |path: &PathBuf| {
        let class = path.strip_prefix(root).ok()?.components().next()?;
        classes.binary_search_by(|name| name.as_os_str().cmp(class.as_os_str())).ok()
    };
    // A class that went away since its images were found leaves the folder without them.
    let labels = paths.iter().map(|path| class_of(path).map(|class| class as i64)).collect::<Option<_>>();
    let labels = labels.ok_or_else(|| FolderError::NoImages { path: root.into() })?;
    Ok((labels, classes.iter().map(|name| name.to_string_lossy().into_owned()).collect()))
}

#[cfg(all(test, not(miri)))]
#[path = "folder_tests.rs"]
mod tests;
