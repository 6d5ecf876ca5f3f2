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
use super::reduce::{self, Wanted};
use super::{Target, exif, format, pixels, png, resize, webp};
use crate::staging::SampleWriter;

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

/// A sample was not written.
pub(super) enum Failure {
    Image(ImageProblem),
    Write(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
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
    /// Leaves an image upright and with the sample's channels in `pixels`.
    pub(super) fn load(
        &mut self,
        load: impl FnOnce(&mut Vec<u8>) -> Result<(), ImageProblem>,
        target: &Target,
    ) -> Result<Decoded, ImageProblem> {
        let mut file = std::mem::take(&mut self.file);
        file.clear();
        let decoded = load(&mut file).and_then(|()| self.decode(&file, target));
        self.file = file;
        let mut decoded = decoded?;
        if decoded.channels != target.channels {
            pixels::convert(&self.pixels, decoded.channels, target.channels, &mut self.next);
            self.step();
        }
        if decoded.orientation != Orientation::NoTransforms {
            let (pixels, next) = (&self.pixels, &mut self.next);
            decoded.size = pixels::orient(pixels, decoded.size, target.channels, decoded.orientation, next);
            if pixels::swaps(decoded.orientation) {
                decoded.extent = (decoded.extent.1, decoded.extent.0);
            }
            self.step();
        }
        Ok(decoded)
    }

    /// Writes the image that was loaded in the sample's size: straight into the sample where its memory can be lent.
    pub(super) fn write(
        &mut self,
        image: &Decoded,
        target: &Target,
        out: &mut SampleWriter<'_>,
    ) -> Result<(), Failure> {
        if image.size == (target.width, target.height) {
            return Ok(out.write(&self.pixels)?);
        }
        let with_alpha = target.channels == 4 && matches!(image.channels, 2 | 4);
        let (resizer, pixels) = (&mut self.resizer, &self.pixels);
        let mut resize = |to: &mut [u8]| {
            let resized = resize::resize(resizer, pixels, image.size, image.extent, target, with_alpha, to);
            resized.map_err(|error| Failure::Image(ImageProblem::Resize(error)))
        };
        let bytes = target.sample_bytes();
        if let Some(lent) = out.lend().and_then(|lent| lent.get_mut(..bytes)) {
            resize(lent)?;
            return Ok(out.advance(bytes)?);
        }
        self.next.resize(bytes, 0);
        resize(&mut self.next)?;
        Ok(out.write(&self.next)?)
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
        let wanted = |width, height| {
            let (size, sample) = ((width, height), (target.width, target.height));
            let divisor = if target.options.full_size { 1 } else { reduce::divisor(size, orientation, sample) };
            Wanted::part(divisor, size, orientation, sample, target.fit)
        };
        let (memory, pixels) = (&mut self.jpeg, &mut self.pixels);
        let jpeg = jpeg::decode(file, target.decoders.jpeg, target.max_decoded_bytes, wanted, memory, pixels)?;
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
