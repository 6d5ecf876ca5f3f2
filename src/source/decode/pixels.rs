//! Pixel conversions between decoding and resizing: bit depth, channels, orientation. All pixels are HWC, without
//! padding.

use image::metadata::Orientation;

/// Rounds native-endian 16-bit values to 8 bits, `(v + 128) / 257`, in place.
pub(super) fn narrow(pixels: &mut Vec<u8>) {
    let len = pixels.len() / 2;
    for i in 0..len {
        let value = u32::from(u16::from_ne_bytes([pixels[2 * i], pixels[2 * i + 1]]));
        pixels[i] = ((value + 128) / 257) as u8;
    }
    pixels.truncate(len);
}

/// Converts pixels of `from` channels (grey, grey and alpha, RGB, RGBA) to `to` channels (1, 3 or 4) into `out`, whose
/// contents are replaced. The two differ.
///
/// Grey is replicated, colour becomes grey as its Rec. 709 luma, alpha is kept, dropped, or added as 255.
pub(super) fn convert(pixels: &[u8], from: usize, to: usize, out: &mut Vec<u8>) {
    match (from, to) {
        (1, 3) => map(pixels, out, |[g]: [u8; 1]| [g, g, g]),
        (1, 4) => map(pixels, out, |[g]: [u8; 1]| [g, g, g, 255]),
        (2, 1) => map(pixels, out, |[g, _]: [u8; 2]| [g]),
        (2, 3) => map(pixels, out, |[g, _]: [u8; 2]| [g, g, g]),
        (2, 4) => map(pixels, out, |[g, a]: [u8; 2]| [g, g, g, a]),
        (3, 1) => map(pixels, out, |[r, g, b]: [u8; 3]| [luma(r, g, b)]),
        (3, 4) => map(pixels, out, |[r, g, b]: [u8; 3]| [r, g, b, 255]),
        (4, 1) => map(pixels, out, |[r, g, b, _]: [u8; 4]| [luma(r, g, b)]),
        (4, 3) => map(pixels, out, |[r, g, b, _]: [u8; 4]| [r, g, b]),
        _ => unreachable!("no conversion from {from} to {to} channels"),
    }
}

/// Replaces `out` by every pixel of `pixels`, changed.
fn map<const FROM: usize, const TO: usize>(pixels: &[u8], out: &mut Vec<u8>, pixel: impl Fn([u8; FROM]) -> [u8; TO]) {
    let pixels = pixels.as_chunks::<FROM>().0;
    out.resize(pixels.len() * TO, 0);
    for (to, &from) in out.as_chunks_mut::<TO>().0.iter_mut().zip(pixels) {
        *to = pixel(from);
    }
}

/// The Rec. 709 luma of stored (gamma-encoded) values, rounded down, as `to_luma` of the `image` crate.
fn luma(r: u8, g: u8, b: u8) -> u8 {
    ((2126 * u32::from(r) + 7152 * u32::from(g) + 722 * u32::from(b)) / 10_000) as u8
}

/// Turns an image of `width` x `height` pixels of `channels` channels (1, 3 or 4) upright into `out`, whose contents
/// are replaced. Returns its new width and height.
pub(super) fn orient(
    pixels: &[u8],
    (width, height): (u32, u32),
    channels: usize,
    orientation: Orientation,
    out: &mut Vec<u8>,
) -> (u32, u32) {
    match channels {
        1 => turn::<1>(pixels, (width, height), orientation, out),
        3 => turn::<3>(pixels, (width, height), orientation, out),
        _ => turn::<4>(pixels, (width, height), orientation, out),
    }
}

/// [`orient`] for pixels of `C` bytes. The source of target pixel (x, y) is `start + x * right + y * down`.
fn turn<const C: usize>(
    pixels: &[u8],
    (width, height): (u32, u32),
    orientation: Orientation,
    out: &mut Vec<u8>,
) -> (u32, u32) {
    let (w, h) = (width as isize, height as isize);
    let last = w * h - 1;
    let (start, right, down) = match orientation {
        Orientation::NoTransforms => (0, 1, w),
        Orientation::FlipHorizontal => (w - 1, -1, w),
        Orientation::Rotate180 => (last, -1, -w),
        Orientation::FlipVertical => (last - (w - 1), 1, -w),
        Orientation::Rotate90FlipH => (0, w, 1),
        Orientation::Rotate90 => (last - (w - 1), -w, 1),
        Orientation::Rotate270FlipH => (last, -w, -1),
        Orientation::Rotate270 => (w - 1, w, -1),
    };
    let (new_width, new_height) = if swaps(orientation) { (height, width) } else { (width, height) };
    let pixels = pixels.as_chunks::<C>().0;
    out.resize(pixels.len() * C, 0);
    let rows = out.as_chunks_mut::<C>().0.chunks_exact_mut(new_width as usize);
    for (y, row) in (0..).zip(rows) {
        for (x, pixel) in (0..).zip(row) {
            *pixel = pixels[(start + x * right + y * down) as usize];
        }
    }
    (new_width, new_height)
}

/// Whether width and height change places.
pub(super) fn swaps(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    matches!(orientation, Rotate90 | Rotate90FlipH | Rotate270 | Rotate270FlipH)
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, GrayImage, Pixel, RgbImage, RgbaImage};

    use super::*;

    #[test]
    fn every_orientation_is_that_of_the_image_crate() {
        for (w, h) in [(5, 3), (1, 4), (4, 1), (1, 1), (3, 3)] {
            for channels in [1, 3, 4] {
                let bytes: Vec<u8> = (0..w * h * channels).map(|i| i as u8).collect();
                for exif in 1..=8 {
                    let orientation = Orientation::from_exif(exif).expect("one of eight");
                    let mut expected: DynamicImage = match channels {
                        1 => GrayImage::from_raw(w, h, bytes.clone()).expect("grey").into(),
                        3 => RgbImage::from_raw(w, h, bytes.clone()).expect("colour").into(),
                        _ => RgbaImage::from_raw(w, h, bytes.clone()).expect("with alpha").into(),
                    };
                    expected.apply_orientation(orientation);
                    let mut out = vec![9; 500];
                    let size = orient(&bytes, (w, h), channels as usize, orientation, &mut out);
                    assert_eq!(size, (expected.width(), expected.height()), "{orientation:?}");
                    assert_eq!(out, expected.as_bytes(), "{orientation:?}");
                }
            }
        }
    }

    #[test]
    fn sixteen_bits_are_rounded_as_the_image_crate_rounds_them() {
        let values: Vec<u16> = (0..=u16::MAX).collect();
        let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        narrow(&mut bytes);
        let wide = image::ImageBuffer::<image::Luma<u16>, _>::from_raw(256, 256, values).expect("an image");
        assert_eq!(bytes, DynamicImage::from(wide).to_luma8().into_raw());
    }

    #[test]
    fn colour_becomes_the_luma_of_the_image_crate() {
        let bytes: Vec<u8> = (0..3 * 4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut out = Vec::new();
        convert(&bytes, 3, 1, &mut out);
        let colour = RgbImage::from_raw(64, 64, bytes).expect("an image");
        let expected: Vec<u8> = colour.pixels().map(|pixel| pixel.to_luma().0[0]).collect();
        assert!(out == expected, "some luma differs");
    }

    #[test]
    fn channels_are_replicated_dropped_and_added() {
        let convert = |pixels: &[u8], from, to| {
            let mut out = vec![1; 99];
            convert(pixels, from, to, &mut out);
            out
        };
        assert_eq!(convert(&[7, 8], 1, 3), [7, 7, 7, 8, 8, 8]);
        assert_eq!(convert(&[7, 8], 1, 4), [7, 7, 7, 255, 8, 8, 8, 255]);
        assert_eq!(convert(&[7, 0, 8, 1], 2, 1), [7, 8]);
        assert_eq!(convert(&[7, 0], 2, 3), [7, 7, 7]);
        assert_eq!(convert(&[7, 5], 2, 4), [7, 7, 7, 5]);
        assert_eq!(convert(&[1, 2, 3], 3, 4), [1, 2, 3, 255]);
        assert_eq!(convert(&[1, 2, 3, 0], 4, 3), [1, 2, 3]);
        assert_eq!(convert(&[255, 255, 255, 0], 4, 1), [255]);
    }
}
