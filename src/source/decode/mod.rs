//! One image file to one sample: decode, turn upright, convert, resize.

mod damaged;
mod decoder;
mod error;
mod exif;
mod format;
mod jpeg;
mod options;
mod pixels;
mod png;
mod reduce;
mod resize;
mod scratch;
mod shared_library;
mod webp;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use damaged::{DamagedImage, DamagedImages};
pub use decoder::{Damaged, DecodeOptions, Decoder, DecoderUnavailable, UnknownDecoder};
pub use error::{ImageError, ImageProblem};
pub(super) use format::EXTENSIONS;
pub use options::{Fit, ImageOptions};

use decoder::Decoders;
use scratch::{Failure, Scratch};

use crate::error::SourceError;
use crate::staging::SampleWriter;

/// What becomes of every image.
#[derive(Clone, Debug)]
pub(super) struct Target {
    height: u32,
    width: u32,
    /// 1, 3 or 4.
    channels: usize,
    fit: Fit,
    max_decoded_bytes: u64,
    options: DecodeOptions,
    decoders: Decoders,
    damaged: Arc<DamagedImages>,
}

/// Where an image is from.
pub(super) struct Origin {
    /// The file, or the archive.
    pub(super) path: PathBuf,
    /// The image's name in the archive.
    pub(super) member: Option<String>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Target {
    /// # Errors
    /// [`DecoderUnavailable`].
    pub(super) fn new(
        (height, width): (u32, u32),
        channels: usize,
        fit: Fit,
        max_decoded_bytes: u64,
        options: DecodeOptions,
    ) -> Result<Self, DecoderUnavailable> {
        let decoders = options.decoder.resolve()?;
        let damaged = Arc::default();
        Ok(Self { height, width, channels, fit, max_decoded_bytes, options, decoders, damaged })
    }

    /// What the bytes of a sample depend on beside the file and the sample's shape: the decoders and their versions, whether
    /// JPEG files are decoded at a fraction of their size, what becomes of damaged ones (a mended image is other data than a
    /// refused one), and the fit.
    pub(super) fn decoder_id(&self) -> String {
        let size = if self.options.full_size { "at full size" } else { "large images at a fraction of their size" };
        let damaged = match self.options.damaged {
            Damaged::Recover => "damaged ones as far as possible",
            Damaged::Refuse => "damaged ones refused",
        };
        let fit = match self.fit {
            Fit::Crop => "cropped",
            Fit::Stretch => "stretched",
        };
        let Decoders { jpeg, .. } = self.decoders;
        format!("JPEG by {jpeg}, {size}, {damaged}; WebP by {}; {fit}", self.decoders.webp_name())
    }

    /// The damaged images that were delivered nevertheless.
    pub(super) fn damaged(&self) -> &DamagedImages {
        &self.damaged
    }

    /// Bytes of a sample.
    fn sample_bytes(&self) -> usize {
        self.height as usize * self.width as usize * self.channels
    }

    /// The most bytes that an image's file may have.
    pub(super) fn max_bytes(&self) -> u64 {
        self.max_decoded_bytes
    }

    /// Writes the image in this file as one sample.
    pub(super) fn read(&self, path: &Path, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let origin = || Origin { path: path.into(), member: None };
        self.read_from(origin, |bytes| scratch::read_file(path, self.max_decoded_bytes, bytes), out)
    }

    /// Writes an image as one sample. `load` puts its file's bytes into an empty buffer; `origin` says whose they are.
    pub(super) fn read_from(
        &self,
        origin: impl Fn() -> Origin,
        load: impl FnOnce(&mut Vec<u8>) -> Result<(), ImageProblem>,
        out: &mut SampleWriter<'_>,
    ) -> Result<(), SourceError> {
        SCRATCH.with_borrow_mut(|scratch| {
            let result = match scratch.load(load, self) {
                Ok(image) => {
                    if let Some(damage) = image.damage {
                        self.damaged.add(origin(), &damage);
                    }
                    scratch.write(&image, self, out)
                }
                Err(problem) => Err(Failure::Image(problem)),
            };
            scratch.give_back();
            result.map_err(|failure| match failure {
                Failure::Image(problem) => {
                    let Origin { path, member } = origin();
                    ImageError { path, member, problem }.into()
                }
                Failure::Write(error) => error.into(),
            })
        })
    }
}

#[cfg(all(test, not(miri)))]
mod option_tests;
#[cfg(all(test, not(miri)))]
mod pillow_tests;
#[cfg(all(test, not(miri)))]
mod tests;
