//! WebP files, by libwebp or by the decoder of the `image` crate.

pub(super) mod libwebp;

use std::io::Cursor;

use image::codecs::webp::WebPDecoder;
use image::{ImageDecoder, ImageError as DecodeError};

use self::libwebp::Library;
use super::error::ImageProblem;
use super::exif;
use super::scratch::Decoded;

/// Decodes a file, up to the end of its RIFF container, into `pixels`, whose contents are replaced. Of an animation the first
/// frame counts. Still images are decoded by `library` where there is one.
pub(super) fn decode(
    file: &[u8],
    library: Option<&Library>,
    limit: u64,
    pixels: &mut Vec<u8>,
) -> Result<Decoded, ImageProblem> {
    let refused = |error: DecodeError| match error {
        DecodeError::IoError(error) => ImageProblem::Io(error),
        error => ImageProblem::Decode(error.into()),
    };
    let decoder = WebPDecoder::new(Cursor::new(file)).map_err(refused)?;
    let needed = decoder.total_bytes();
    let Some(bytes) = usize::try_from(needed).ok().filter(|_| needed <= limit) else {
        return Err(ImageProblem::TooLarge { needed, limit });
    };
    let (size, channels) = (decoder.dimensions(), usize::from(decoder.color_type().channel_count()));
    // Cleared, so that nothing of the image before shows through where the decoder stops early.
    pixels.clear();
    pixels.resize(bytes, 0);
    match library.filter(|_| !decoder.has_animation()) {
        Some(library) if library.decode(file, size, channels, pixels) => {}
        Some(_) => {
            // libwebp gives no reason; the other decoder does, unless it sees none.
            decoder.read_image(pixels).map_err(refused)?;
            return Err(ImageProblem::Decode("libwebp refuses it".into()));
        }
        None => decoder.read_image(pixels).map_err(refused)?,
    }
    Ok(Decoded::whole(size, channels, exif::of_webp(file).orientation()))
}

#[cfg(all(test, not(miri)))]
mod tests;
