//! Folders of JPEG, PNG and WebP files.

mod classes;
mod error;
mod listing;
mod options;
mod paths;
mod walk;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use self::error::FolderError;
pub use self::options::FolderOptions;
use self::paths::PathList;
use super::decode::{DamagedImages, Target};
#[cfg(doc)]
use super::decode::{DecodeOptions, Decoder};
use super::digest::{Digest, sampled};
use super::{Class, OutOfRange, SampleContext, Source, SourceSummary};
use crate::error::SourceError;
use crate::layout::{Element, SampleLayout};
use crate::staging::SampleWriter;

/// How many files' sizes are part of the digest.
const SIZES: u64 = 1024;

/// The images of a folder and the folders below it, decoded as they are read.
///
/// **Files.** Files ending in `.jpg`, `.jpeg`, `.jpe`, `.jfif`, `.jif`, `.png`, `.apng` or `.webp`, in any case, are images; what
/// is really in them is told by their first bytes. A file without an extension, or with that of another kind of picture
/// (`.bmp`, `.tif`, `.gif` and the like), is an image if its first bytes are those of one. Links are followed. Names that
/// start with a dot are left out, and so are the folders that systems keep for themselves (`lost+found`, `@eaDir`,
/// `__MACOSX`), folders that cannot be listed and links that lead back; [`summary`](Source::summary) counts all that was
/// left out. The order is that of the paths, compared folder by folder and byte by byte: an index means the same image as
/// long as no file comes or goes. A link that leads nowhere and is named like an image keeps its index: it is a sample that
/// cannot be read.
///
/// **Labels.** If the images lie in sub-folders, the sub-folders with images in or below them are the
/// [`classes`](Self::classes), in the order of their names, and an image's label, an i64, is the index of its class. A list of
/// classes can be given instead ([`FolderOptions::classes`]). Images beside each other have no labels.
///
/// **Memory.** A file takes the bytes of its name and four more, and while the folder is opened up to twice that: a million files named as
/// ImageNet's take 27 MB, and open in some two seconds once the system has their folders in memory (`cargo bench --bench open`).
///
/// **Pixels.** In this order:
///
/// 1. Decoding: 16-bit values are rounded to 8 bits, `(v + 128) / 257`; CMYK becomes RGB, `ink * black / 255` of the
///    values as JPEG stores them (inverted); of an animation the first frame counts. Colour profiles are ignored.
/// 2. Channels: grey is replicated. Colour becomes grey as Rec. 709 luma of the stored values,
///    `(2126 R + 7152 G + 722 B) / 10000`, rounded down. Alpha is kept for 4 channels, where images without it get 255;
///    for 1 and 3 it is dropped and the colours stay as they are stored, whatever was transparent.
/// 3. The orientation in EXIF or XMP metadata is applied, by the rules of Pillow's `ImageOps.exif_transpose`.
/// 4. Resizing to the sample's size as [`Fit`](super::Fit) says, by convolution with a triangle filter that widens when shrinking
///    (bilinear with antialiasing). With 4 channels, colours are weighted by their alpha. An image that has the
///    sample's size already is not resampled: its bytes are as decoded.
///
/// **JPEG** is decoded by the system's libjpeg-turbo or by this crate's own decoder, to the same bytes, by default by the faster one
/// ([`Decoder`]). A large
/// image is decoded at a half, a quarter or an eighth of its size where that is at least twice the sample's size each way
/// ([`DecodeOptions::full_size`] is the way out). What is damaged inside is decoded as far as possible, as libjpeg does, and
/// counted in [`damaged`](Self::damaged), or refused ([`DecodeOptions::damaged`]). Still **WebP** images are decoded by the
/// system's libwebp or by the decoder that is built in, to the same bytes.
///
/// Errors while reading are [`ImageError`](super::ImageError)s, which name the file. A truncated file is one of them; damage
/// within a lossy WebP's data can go unnoticed, as it has no checksums.
///
/// ```no_run
/// use gpufeed::source::{FolderSource, ImageOptions};
/// use gpufeed::Source;
///
/// let images = ImageOptions { height: 256, width: 256, ..Default::default() };
/// let source = FolderSource::open("imagenet/val", images.into())?;
/// println!("{} images of {} classes", source.len(), source.classes().len());
/// # Ok::<(), gpufeed::SourceError>(())
/// ```
#[derive(Debug)]
pub struct FolderSource {
    paths: PathList,
    summary: SourceSummary,
    layout: SampleLayout,
    target: Target,
    /// Made when it is first asked for.
    digest: OnceLock<[u8; 16]>,
}

impl FolderSource {
    /// Finds the images of a folder. None is decoded yet.
    ///
    /// # Errors
    /// [`FolderError`]; its message names the folder.
    pub fn open(path: impl AsRef<Path>, options: FolderOptions) -> Result<Self, FolderError> {
        let (layout, target) = options.images.prepare::<FolderError>()?;
        let (paths, summary) = classes::find(path.as_ref(), options.classes)?;
        let layout = if summary.classes.is_empty() { layout } else { layout.with_label(Element::I64)? };
        Ok(Self { paths, summary, layout, target, digest: OnceLock::new() })
    }

    /// The classes by label; empty without classes.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.summary.classes
    }

    /// What the bytes of a sample depend on beside the files and their layout: the decoders with their versions and options, as
    /// in "JPEG by libjpeg-turbo 2.1.5 and gpufeed 0.1.0, large images at a fraction of their size, damaged ones as far as possible;
    /// WebP by libwebp 1.2.4; cropped". A token to resume keeps it: a mended image is other data than a refused one.
    #[must_use]
    pub fn decoder_id(&self) -> String {
        self.target.decoder_id()
    }

    /// The damaged images that were delivered nevertheless.
    #[must_use]
    pub fn damaged(&self) -> &DamagedImages {
        self.target.damaged()
    }

    /// The file of sample `index`.
    #[must_use]
    pub fn path(&self, index: u64) -> Option<PathBuf> {
        self.paths.path(usize::try_from(index).ok()?)
    }

    /// The label of sample `index`, where there are classes.
    #[must_use]
    pub fn label(&self, index: u64) -> Option<i64> {
        self.paths.label(usize::try_from(index).ok()?).map(i64::from)
    }

    fn make_digest(&self) -> [u8; 16] {
        let mut digest = Digest::new("folder");
        digest.add_number(self.len());
        for index in 0..self.paths.len() {
            digest.add(&self.paths.relative(index).unwrap_or_default());
        }
        for at in 0..SIZES.min(self.len()) {
            let index = if self.len() <= SIZES { at } else { sampled(at, self.len()) };
            let metadata = self.path(index).map(fs::metadata);
            digest.add_number(metadata.and_then(Result::ok).map_or(u64::MAX, |metadata| metadata.len()));
        }
        // The labels follow from the paths and from these.
        self.classes().iter().for_each(|class| digest.add(class.name.as_bytes()));
        digest.finish()
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
        if let Some(label) = self.label(index) {
            out.label(label)?;
        }
        self.target.read(&path, out)
    }

    fn summary(&self) -> SourceSummary {
        SourceSummary { decoder: Some(self.decoder_id()), damaged: self.damaged().count(), ..self.summary.clone() }
    }

    fn file(&self, index: u64) -> Option<PathBuf> {
        self.path(index)
    }

    /// The number of files, their paths within the folder, the sizes of 1,024 of them, and the classes. A copy has the same
    /// digest.
    fn digest(&self) -> Option<[u8; 16]> {
        Some(*self.digest.get_or_init(|| self.make_digest()))
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
