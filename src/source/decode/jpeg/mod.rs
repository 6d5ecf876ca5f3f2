//! JPEG files, by libjpeg-turbo or by this crate's own decoder.

mod damage;
mod header;
pub(super) mod pure;
pub(super) mod refusal;
mod tables;
pub(super) mod turbo;
mod version;

pub(super) use damage::Damage;
use header::{Coding, ColorSpace, Segments};
use refusal::Refusal;
use turbo::{Format, Outcome, Turbo};

use super::decoder::Chosen;
use super::error::ImageProblem;
use super::reduce::Wanted;

/// From this fraction of an image's size on the entropy decoder is most of the work, where the built-in decoder is the faster one
/// (docs/performance.md).
const BUILT_IN_FROM: u32 = 4;

/// What the decoders keep from image to image.
#[derive(Default)]
pub(super) struct Memory {
    turbo: Option<Turbo>,
    pub(super) pure: pure::Memory,
}

/// What was decoded.
pub(super) struct Decoded {
    pub(super) size: (u32, u32),
    /// 1 (grey), 3 (RGB) or, as stored, 4 (CMYK).
    pub(super) channels: usize,
    /// Of the image's size at most this fraction was decoded: 1, 2, 4 or 8.
    pub(super) divisor: u32,
    pub(super) full_size: (u32, u32),
    pub(super) damage: Damage,
}

/// Decodes a file to grey or RGB into `pixels`, whose contents are replaced. `wanted` chooses by the image's width and height
/// at which fraction of its size, and how much of it.
pub(super) fn decode(
    file: &[u8],
    chosen: Chosen,
    limit: u64,
    wanted: impl FnOnce(u32, u32) -> Wanted,
    memory: &mut Memory,
    pixels: &mut Vec<u8>,
) -> Result<Decoded, ImageProblem> {
    let mut decoded = decode_stored(file, chosen, limit, wanted, memory, pixels)?;
    if decoded.channels == 4 {
        cmyk_to_rgb(pixels);
        decoded.channels = 3;
    }
    Ok(decoded)
}

/// [`decode`], but CMYK stays as it is stored.
#[expect(clippy::too_many_lines, reason = "one decision after the other")]
fn decode_stored(
    file: &[u8],
    chosen: Chosen,
    limit: u64,
    wanted: impl FnOnce(u32, u32) -> Wanted,
    memory: &mut Memory,
    pixels: &mut Vec<u8>,
) -> Result<Decoded, ImageProblem> {
    let mut segments = Segments::new(file);
    let first = segments.next_scan().map_err(refused)?;
    let (Some(first), Some(frame)) = (first, segments.frame) else { return Err(refused(Refusal::NoScan)) };
    let format = match segments.color_space(&frame) {
        ColorSpace::Grey => Format::Grey,
        ColorSpace::YCbCr | ColorSpace::Rgb => Format::Rgb,
        ColorSpace::Cmyk | ColorSpace::Ycck => Format::Cmyk,
    };
    let channels = frame.components().len();
    let needed = u64::from(frame.width) * u64::from(frame.height) * channels as u64;
    if needed > limit {
        return Err(ImageProblem::TooLarge { needed, limit });
    }
    let full_size = (u32::from(frame.width), u32::from(frame.height));
    let wanted = wanted(full_size.0, full_size.1);
    let divisor = wanted.divisor;
    let scaled = |side: u16| side.div_ceil(divisor as u16);
    let (width, height) = (scaled(frame.width), scaled(frame.height));
    pixels.resize(usize::from(width) * usize::from(height) * channels, 0);
    let library = match chosen {
        Chosen::Rust => None,
        Chosen::Turbo(library) => Some(library),
        Chosen::Fastest(library) => (divisor < BUILT_IN_FROM || frame.coding != Coding::Sequential).then_some(library),
    };
    let mut damage = None;
    if let Some(library) = library {
        if memory.turbo.is_none() {
            memory.turbo = Turbo::new(library);
        }
        let out_of_memory = || ImageProblem::Decode("libjpeg-turbo has no memory".into());
        let turbo = memory.turbo.as_mut().ok_or_else(out_of_memory)?;
        if turbo.size(file) != (i32::from(frame.width), i32::from(frame.height)) {
            return Err(ImageProblem::Decode("libjpeg-turbo reads another size from the header".into()));
        }
        match turbo.decode(file, (width, height), format, pixels) {
            Outcome::Whole => damage = Some(Damage::default()),
            // What is wrong, the other decoder can say in full. Its pixels are the same.
            Outcome::Warned => {}
            Outcome::Failed(reason) => return Err(ImageProblem::Decode(reason.into())),
        }
    }
    let damage = match damage {
        Some(damage) => damage,
        None => {
            let working = pure::working_bytes(&frame, divisor as usize).map_err(refused)?;
            if working > limit.saturating_mul(4) {
                return Err(ImageProblem::TooLarge { needed: working, limit: limit.saturating_mul(4) });
            }
            pure::decode(&mut segments, first, &wanted, &mut memory.pure, pixels).map_err(refused)?
        }
    };
    Ok(Decoded { size: (width.into(), height.into()), channels, divisor, full_size, damage })
}

fn refused(refusal: Refusal) -> ImageProblem {
    match refusal {
        Refusal::EndsInHeader => ImageProblem::Truncated,
        refusal => ImageProblem::Decode(refusal.into()),
    }
}

/// Turns CMYK as JPEG stores it (inverted) into RGB in place, as Pillow does.
fn cmyk_to_rgb(pixels: &mut Vec<u8>) {
    let count = pixels.len() / 4;
    for i in 0..count {
        let [c, m, y, k] = [0, 1, 2, 3].map(|channel| u32::from(pixels[4 * i + channel]));
        let rgb = [c, m, y].map(|ink| {
            let product = (255 - ink) * k + 128;
            k.saturating_sub(((product >> 8) + product) >> 8) as u8
        });
        pixels[3 * i..3 * i + 3].copy_from_slice(&rgb);
    }
    pixels.truncate(3 * count);
}

#[cfg(all(test, not(miri)))]
mod damage_tests;
#[cfg(all(test, not(miri)))]
mod tests;
