//! A thread's buffers, and the way of an image through them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use fast_image_resize::Resizer;
use image::ImageFormat;
use image::metadata::Orientation;

use super::decoder::Damaged;
use super::error::ImageProblem;
use super::jpeg::{self, Damage};
use super::{Target, exif, format, pixels, png, reduce, resize, webp};

/// Scratch buffers above this many bytes are given back after the image that needed them.
const KEEP_SCRATCH: usize = 64 << 20;

/// An image in [`Scratch::pixels`].
pub(super) struct Decoded {
    pub(super) size: (u32, u32),
    /// What the pixels show, in their unit: less than `size` where the last column or row is a fraction of a pixel.
    pub(super) extent: (f64, f64),
    pub(super) channels: usize,
    pub(super) orientation: Orientation,
    pub(super) damage: Option<Damage>,
}

impl Decoded {
    /// A whole image as it is stored.
    pub(super) fn whole(size: (u32, u32), channels: usize, orientation: Orientation) -> Self {
        Self { size, extent: (size.0.into(), size.1.into()), channels, orientation, damage: None }
    }
}

/// A thread's buffers, kept from image to image.
#[derive(Default)]
pub(super) struct Scratch {
    /// The file.
    file: Vec<u8>,
    /// The image as it is.
    pixels: Vec<u8>,
    /// The image as it will be after the current step.
    next: Vec<u8>,
    /// EXIF data of several segments.
    exif: Vec<u8>,
    jpeg: jpeg::Memory,
    resizer: Resizer,
}

impl Scratch {
    /// The sample that was loaded.
    pub(super) fn sample(&self) -> &[u8] {
        &self.pixels
    }

    /// Leaves the sample in `pixels`. Returns what was wrong with the image.
    pub(super) fn load(
        &mut self,
        load: impl FnOnce(&mut Vec<u8>) -> Result<(), ImageProblem>,
        target: &Target,
    ) -> Result<Option<Damage>, ImageProblem> {
        let mut file = std::mem::take(&mut self.file);
        file.clear();
        let decoded = load(&mut file).and_then(|()| self.decode(&file, target));
        self.file = file;
        let decoded = decoded?;
        let (mut size, mut extent) = (decoded.size, decoded.extent);
        if decoded.channels != target.channels {
            pixels::convert(&self.pixels, decoded.channels, target.channels, &mut self.next);
            self.step();
        }
        if decoded.orientation != Orientation::NoTransforms {
            size = pixels::orient(&self.pixels, size, target.channels, decoded.orientation, &mut self.next);
            if pixels::swaps(decoded.orientation) {
                extent = (extent.1, extent.0);
            }
            self.step();
        }
        if size != (target.width, target.height) {
            let with_alpha = target.channels == 4 && matches!(decoded.channels, 2 | 4);
            self.next.resize(target.sample_bytes(), 0);
            resize::resize(&mut self.resizer, &self.pixels, size, extent, target, with_alpha, &mut self.next)
                .map_err(ImageProblem::Resize)?;
            self.step();
        }
        Ok(decoded.damage)
    }

    /// Decodes a file to 8 bits a channel.
    fn decode(&mut self, file: &[u8], target: &Target) -> Result<Decoded, ImageProblem> {
        let limit = target.max_decoded_bytes;
        match format::of(file)? {
            (ImageFormat::Jpeg, file) => self.decode_jpeg(file, target),
            (ImageFormat::Png, file) => png::decode(file, limit, &mut self.pixels),
            (_, file) => webp::decode(file, target.decoders.webp, limit, &mut self.pixels),
        }
    }

    fn decode_jpeg(&mut self, file: &[u8], target: &Target) -> Result<Decoded, ImageProblem> {
        let orientation = exif::of_jpeg(file, &mut self.exif).orientation();
        let divisor = |width, height| {
            if target.options.full_size {
                return 1;
            }
            reduce::divisor((width, height), orientation, (target.width, target.height))
        };
        let (memory, pixels) = (&mut self.jpeg, &mut self.pixels);
        let jpeg = jpeg::decode(file, target.decoders.jpeg, target.max_decoded_bytes, divisor, memory, pixels)?;
        let damage = Some(jpeg.damage).filter(Damage::is_harmful);
        if let Some(damage) = damage.filter(|damage| damage.is_fatal() || target.options.damaged == Damaged::Refuse) {
            return Err(ImageProblem::Damaged(damage.to_string()));
        }
        let shown = |side: u32| f64::from(side) / f64::from(jpeg.divisor);
        let extent = (shown(jpeg.full_size.0), shown(jpeg.full_size.1));
        Ok(Decoded { size: jpeg.size, extent, channels: jpeg.channels, orientation, damage })
    }

    /// Makes the result of a step the image.
    fn step(&mut self) {
        std::mem::swap(&mut self.pixels, &mut self.next);
    }

    /// Frees what only an unusually large image needed.
    pub(super) fn give_back(&mut self) {
        for buffer in [&mut self.file, &mut self.pixels, &mut self.next] {
            if buffer.capacity() > KEEP_SCRATCH {
                *buffer = Vec::new();
            }
        }
        if self.jpeg.pure.bytes() > KEEP_SCRATCH {
            self.jpeg.pure = jpeg::pure::Memory::default();
        }
        if self.resizer.size_of_internal_buffers() > KEEP_SCRATCH {
            self.resizer.reset_internal_buffers();
        }
    }
}

/// Reads a whole file of at most `limit` bytes into an empty buffer.
pub(super) fn read_file(path: &Path, limit: u64, bytes: &mut Vec<u8>) -> Result<(), ImageProblem> {
    // Asked before opening, which would wait for the other end of a pipe.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file").into());
    }
    let mut needed = metadata.len();
    if needed <= limit {
        // A file that grows meanwhile is not followed beyond the limit.
        bytes.reserve(usize::try_from(needed).unwrap_or_default());
        File::open(path)?.take(limit.saturating_add(1)).read_to_end(bytes)?;
        needed = bytes.len() as u64;
    }
    if needed > limit { Err(ImageProblem::TooLarge { needed, limit }) } else { Ok(()) }
}
