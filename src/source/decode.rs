//! One image file to one sample: decode, turn upright, convert, resize.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::metadata::Orientation;
use image::{ImageDecoder, ImageReader, Limits};

use super::folder::Fit;
use super::shown::Shown;
use super::{encoded, pixels};
use crate::error::SourceError;
use crate::staging::SampleWriter;

/// Scratch buffers above this many bytes are given back after the image that needed them.
const KEEP_SCRATCH: usize = 64 << 20;

/// An image file cannot be used. The message names the file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", Shown(.path))]
#[non_exhaustive]
pub struct ImageError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: ImageProblem,
}

/// What is wrong with an image file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageProblem {
    /// It cannot be opened or read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Its first bytes are those of another format.
    #[error("neither JPEG, PNG nor WebP")]
    Format,
    /// It ends before the image does.
    #[error("truncated")]
    Truncated,
    /// The file, or the image when decoded, has more bytes than allowed.
    #[error("{needed} bytes large, and at most {limit} are allowed")]
    TooLarge {
        /// Bytes of the file or the decoded image.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The decoder refused it.
    #[error("cannot be decoded: {0}")]
    Decode(SourceError),
    /// The resampler refused it.
    #[error("cannot be resized: {0}")]
    Resize(SourceError),
}

/// What becomes of every image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) height: u32,
    pub(super) width: u32,
    /// 1, 3 or 4.
    pub(super) channels: usize,
    pub(super) fit: Fit,
    pub(super) max_decoded_bytes: u64,
}

/// An image in [`Scratch::pixels`].
struct Decoded {
    size: (u32, u32),
    channels: usize,
    orientation: Orientation,
}

/// A thread's buffers, kept from image to image.
#[derive(Default)]
struct Scratch {
    /// The file.
    file: Vec<u8>,
    /// The image as it is.
    pixels: Vec<u8>,
    /// The image as it will be after the current step.
    next: Vec<u8>,
    resizer: Resizer,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Target {
    /// Writes the image in this file as one sample.
    pub(super) fn read(&self, path: &Path, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        SCRATCH.with_borrow_mut(|scratch| {
            let result = match scratch.load(path, self) {
                Ok(()) => out.write(&scratch.pixels).map_err(SourceError::from),
                Err(problem) => Err(ImageError { path: path.into(), problem }.into()),
            };
            scratch.give_back();
            result
        })
    }
}

impl Scratch {
    /// Leaves the sample in `pixels`.
    fn load(&mut self, path: &Path, target: &Target) -> Result<(), ImageProblem> {
        let decoded = self.decode(path, target.max_decoded_bytes)?;
        let mut size = decoded.size;
        if decoded.channels != target.channels {
            pixels::convert(&self.pixels, decoded.channels, target.channels, &mut self.next);
            self.step();
        }
        if decoded.orientation != Orientation::NoTransforms {
            size = pixels::orient(&self.pixels, size, target.channels, decoded.orientation, &mut self.next);
            self.step();
        }
        if size != (target.width, target.height) {
            let with_alpha = target.channels == 4 && matches!(decoded.channels, 2 | 4);
            self.resize(size, target, with_alpha).map_err(ImageProblem::Resize)?;
            self.step();
        }
        Ok(())
    }

    /// Decodes a file to 8 bits a channel.
    fn decode(&mut self, path: &Path, limit: u64) -> Result<Decoded, ImageProblem> {
        let decoding = |error: image::ImageError| match error {
            image::ImageError::IoError(error) => ImageProblem::Io(error),
            error => ImageProblem::Decode(error.into()),
        };
        self.read_file(path, limit)?;
        let format = encoded::format(&self.file)?;
        let mut reader = ImageReader::with_format(Cursor::new(&self.file[..]), format);
        let mut limits = Limits::default();
        limits.max_alloc = Some(limit);
        reader.limits(limits);
        let mut decoder = reader.into_decoder().map_err(decoding)?;
        let needed = decoder.total_bytes();
        let Some(bytes) = usize::try_from(needed).ok().filter(|_| needed <= limit) else {
            return Err(ImageProblem::TooLarge { needed, limit });
        };
        let (size, color) = (decoder.dimensions(), decoder.color_type());
        let orientation = decoder.orientation().map_err(decoding)?;
        // Cleared, so that nothing of the image before shows through where a decoder stops early.
        self.pixels.clear();
        self.pixels.resize(bytes, 0);
        decoder.read_image(&mut self.pixels).map_err(decoding)?;
        let channels = usize::from(color.channel_count());
        if usize::from(color.bytes_per_pixel()) == 2 * channels {
            pixels::narrow(&mut self.pixels);
        }
        Ok(Decoded { size, channels, orientation })
    }

    /// Reads a whole file of at most `limit` bytes.
    fn read_file(&mut self, path: &Path, limit: u64) -> Result<(), ImageProblem> {
        // Asked before opening, which would wait for the other end of a pipe.
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file").into());
        }
        self.file.clear();
        let mut needed = metadata.len();
        if needed <= limit {
            // A file that grows meanwhile is not followed beyond the limit.
            self.file.reserve(usize::try_from(needed).unwrap_or_default());
            File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut self.file)?;
            needed = self.file.len() as u64;
        }
        if needed > limit { Err(ImageProblem::TooLarge { needed, limit }) } else { Ok(()) }
    }

    /// Resamples `pixels` to the target's size into `next`.
    fn resize(&mut self, size: (u32, u32), target: &Target, with_alpha: bool) -> Result<(), SourceError> {
        let pixel = match target.channels {
            1 => PixelType::U8,
            3 => PixelType::U8x3,
            _ => PixelType::U8x4,
        };
        let options =
            ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear)).use_alpha(with_alpha);
        let options = match target.fit {
            Fit::Stretch => options,
            Fit::Crop => options.fit_into_destination(Some((0.5, 0.5))),
        };
        self.next.resize(target.height as usize * target.width as usize * target.channels, 0);
        let from = ImageRef::new(size.0, size.1, &self.pixels, pixel)?;
        let mut to = Image::from_slice_u8(target.width, target.height, &mut self.next, pixel)?;
        Ok(self.resizer.resize(&from, &mut to, &options)?)
    }

    /// Makes the result of a step the image.
    fn step(&mut self) {
        std::mem::swap(&mut self.pixels, &mut self.next);
    }

    /// Frees what only an unusually large image needed.
    fn give_back(&mut self) {
        for buffer in [&mut self.file, &mut self.pixels, &mut self.next] {
            if buffer.capacity() > KEEP_SCRATCH {
                *buffer = Vec::new();
            }
        }
        if self.resizer.size_of_internal_buffers() > KEEP_SCRATCH {
            self.resizer.reset_internal_buffers();
        }
    }
}

#[cfg(all(test, not(miri)))]
#[path = "decode_tests.rs"]
mod tests;
