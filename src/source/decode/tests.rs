//! One test a policy of the decoder.

use std::borrow::Borrow;
use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use image::metadata::Orientation;
use image::{DynamicImage, GrayImage, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use tempfile::TempDir;

use super::*;

/// A CMYK JPEG of 16 x 8 pixels: the left half (200, 20, 40, 30), the right half (10, 180, 90, 80).
const CMYK: &[u8] = include_bytes!("../testdata/cmyk.jpg");

fn target(width: u32, height: u32, channels: usize) -> Target {
    Target::new((height, width), channels, Fit::Stretch, 1 << 20, DecodeOptions::default()).expect("a decoder")
}

pub(super) fn encode(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.into().write_to(&mut Cursor::new(&mut bytes), format).expect("encoded");
    bytes
}

fn png(image: impl Into<DynamicImage>) -> Vec<u8> {
    encode(image, ImageFormat::Png)
}

fn saved(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.image");
    fs::write(&path, bytes).expect("written");
    (folder, path)
}

pub(super) fn read(bytes: &[u8], target: impl Borrow<Target>) -> Result<Vec<u8>, SourceError> {
    let (target, (_folder, path)) = (target.borrow(), saved(bytes));
    let mut memory = vec![0; target.width as usize * target.height as usize * target.channels];
    let mut out = SampleWriter::over(&mut memory);
    target.read(&path, &mut out)?;
    assert_eq!(out.remaining(), 0, "the whole sample");
    Ok(memory)
}

pub(super) fn sample(bytes: &[u8], target: impl Borrow<Target>) -> Vec<u8> {
    read(bytes, target).expect("a sample")
}

/// Nine by seven pixels, all different.
fn colourful() -> RgbImage {
    RgbImage::from_fn(9, 7, |x, y| Rgb([x as u8 * 20, y as u8 * 30, (x * y) as u8]))
}

/// A JPEG with this EXIF orientation: an APP1 segment right after the start of the image.
fn with_orientation(jpeg: &[u8], exif: u8) -> Vec<u8> {
    let tiff = [b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", &[exif][..], b"\0\0\0\0\0\0"].concat();
    let length = (2 + 6 + tiff.len()) as u16;
    [&jpeg[..2], b"\xff\xe1", &length.to_be_bytes(), b"Exif\0\0", &tiff, &jpeg[2..]].concat()
}

#[test]
fn an_image_of_the_samples_size_is_not_resampled() {
    let image = colourful();
    for fit in [Fit::Stretch, Fit::Crop] {
        let target = Target { fit, ..target(9, 7, 3) };
        assert_eq!(sample(&png(image.clone()), &target), image.as_raw()[..]);
        assert_eq!(sample(&encode(image.clone(), ImageFormat::WebP), &target), image.as_raw()[..]);
    }
    let jpeg = encode(image, ImageFormat::Jpeg);
    let decoded = image::load_from_memory(&jpeg).expect("a JPEG");
    let got = sample(&jpeg, target(9, 7, 3));
    // The `image` crate's decoder rounds its own way.
    assert!(got.iter().zip(decoded.as_bytes()).all(|(a, b)| a.abs_diff(*b) <= 2), "{got:?}");
}

#[test]
fn the_exif_orientation_is_applied() {
    let jpeg = encode(colourful(), ImageFormat::Jpeg);
    let upright = RgbImage::from_raw(9, 7, sample(&jpeg, target(9, 7, 3))).expect("as large");
    let upright = DynamicImage::from(upright);
    for exif in 1..=8 {
        let mut expected = upright.clone();
        expected.apply_orientation(Orientation::from_exif(exif).expect("one of eight"));
        let got = sample(&with_orientation(&jpeg, exif), target(expected.width(), expected.height(), 3));
        assert_eq!(got, expected.as_bytes(), "orientation {exif}");
    }
}

#[test]
fn the_orientation_is_applied_before_cropping() {
    // Lying: black left of white. Turned upright (6: a quarter turn clockwise), black is above white.
    let lying = GrayImage::from_fn(64, 16, |x, _| Luma([if x < 32 { 0 } else { 255 }]));
    let jpeg = with_orientation(&encode(lying, ImageFormat::Jpeg), 6);
    let got = sample(&jpeg, Target { fit: Fit::Crop, ..target(8, 8, 1) });
    assert!(got[..8].iter().all(|&grey| grey < 20), "{got:?}");
    assert!(got[56..].iter().all(|&grey| grey > 235), "{got:?}");
}

#[test]
fn grey_is_replicated_and_colour_becomes_luma() {
    let grey = png(GrayImage::from_pixel(2, 1, Luma([77])));
    assert_eq!(sample(&grey, target(2, 1, 1)), [77, 77]);
    assert_eq!(sample(&grey, target(2, 1, 3)), [77; 6]);
    assert_eq!(sample(&grey, target(2, 1, 4)), [77, 77, 77, 255, 77, 77, 77, 255]);
    let colour = png(RgbImage::from_pixel(1, 1, Rgb([200, 100, 50])));
    assert_eq!(sample(&colour, target(1, 1, 1)), [117], "(2126 * 200 + 7152 * 100 + 722 * 50) / 10000 = 117.65");
}

#[test]
fn alpha_is_kept_for_four_channels_and_dropped_for_fewer() {
    let image = RgbaImage::from_pixel(1, 1, Rgba([200, 100, 50, 0]));
    for bytes in [png(image.clone()), encode(image, ImageFormat::WebP)] {
        assert_eq!(sample(&bytes, target(1, 1, 4)), [200, 100, 50, 0]);
        assert_eq!(sample(&bytes, target(1, 1, 3)), [200, 100, 50], "as stored");
        assert_eq!(sample(&bytes, target(1, 1, 1)), [117]);
    }
    let opaque = png(RgbImage::from_pixel(1, 1, Rgb([1, 2, 3])));
    assert_eq!(sample(&opaque, target(1, 1, 4)), [1, 2, 3, 255]);
}

#[test]
fn colours_are_weighted_by_alpha_when_resizing() {
    // Half opaque red, half invisible green: no green bleeds into four channels, while three ignore alpha.
    let pixel = |x| if x < 2 { Rgba([255, 0, 0, 255]) } else { Rgba([0, 255, 0, 0]) };
    let image = png(RgbaImage::from_fn(4, 4, |x, _| pixel(x)));
    let [red, green, _, alpha] = sample(&image, target(1, 1, 4))[..] else { panic!("one pixel") };
    assert!(red >= 253 && green == 0 && alpha.abs_diff(128) <= 1, "{red} {green} {alpha}");
    let [red, green, _] = sample(&image, target(1, 1, 3))[..] else { panic!("one pixel") };
    assert!(red.abs_diff(128) <= 1 && green.abs_diff(128) <= 1, "{red} {green}");
}

#[test]
fn sixteen_bits_are_rounded_to_eight() {
    let values: Vec<u16> = vec![0, 128, 129, 385, 386, 65535];
    let image = image::ImageBuffer::<Luma<u16>, _>::from_raw(6, 1, values).expect("an image");
    assert_eq!(sample(&png(image), target(6, 1, 1)), [0, 0, 1, 1, 2, 255]);
}

#[test]
fn cmyk_becomes_rgb() {
    let got = sample(CMYK, target(16, 8, 3));
    // (255 - ink) * (255 - black) / 255, give or take what JPEG loses.
    for (x, expected) in [(2, [49, 207, 190]), (13, [168, 51, 113])] {
        let pixel = &got[3 * x..3 * x + 3];
        assert!(pixel.iter().zip(expected).all(|(got, expected)| got.abs_diff(expected) <= 4), "{pixel:?}");
    }
}

#[test]
fn cropping_keeps_the_proportions_and_the_centre() {
    // White with black edges left and right that a square and the filter's reach beyond it (2 pixels) leave out.
    let image = RgbImage::from_fn(60, 20, |x, _| if (18..42).contains(&x) { Rgb([255; 3]) } else { Rgb([0; 3]) });
    let bytes = png(image);
    let cropped = sample(&bytes, Target { fit: Fit::Crop, ..target(10, 10, 3) });
    assert!(cropped.iter().all(|&value| value == 255), "{cropped:?}");
    let stretched = sample(&bytes, target(10, 10, 3));
    assert_eq!((stretched[0], stretched[5 * 3]), (0, 255));
}

#[test]
fn shrinking_averages_what_it_covers() {
    let checkers = GrayImage::from_fn(64, 64, |x, y| Luma([if (x + y) % 2 == 0 { 0 } else { 255 }]));
    let got = sample(&png(checkers), target(8, 8, 1));
    assert!(got.iter().all(|grey| grey.abs_diff(128) <= 4), "antialiased: {got:?}");
}

#[test]
fn an_unusable_file_is_named() {
    let say = |bytes: &[u8], target: Target| {
        let error = read(bytes, target).expect_err("refused");
        assert!(error.is::<ImageError>());
        assert!(error.to_string().contains("a.image: "), "{error}");
        error.to_string()
    };
    let whole = png(colourful());
    assert!(say(b"", target(9, 7, 3)).contains("neither JPEG, PNG nor WebP"));
    assert!(say(b"GIF89a......", target(9, 7, 3)).contains("neither JPEG, PNG nor WebP"));
    say(&whole[..whole.len() / 2], target(9, 7, 3));
    let jpeg = encode(colourful(), ImageFormat::Jpeg);
    assert!(say(&jpeg[..jpeg.len() - 9], target(9, 7, 3)).contains("truncated"));
    let small = Target { max_decoded_bytes: 20, ..target(9, 7, 3) };
    assert!(say(&jpeg, small).contains("bytes large, and at most 20 are allowed"));
    let error = target(1, 1, 3).read(Path::new("no/such.png"), &mut SampleWriter::over(&mut [0; 3]));
    assert!(error.expect_err("missing").to_string().contains("such.png: cannot be read"));
}

#[test]
fn a_header_that_claims_too_much_is_refused_before_memory_is_taken() {
    let limited = Target { max_decoded_bytes: 100_000, ..target(9, 7, 3) };
    let mut lying = encode(colourful(), ImageFormat::Jpeg);
    let frame = lying.windows(2).position(|bytes| bytes == b"\xff\xc0").expect("a frame");
    lying[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
    let error = read(&lying, &limited).expect_err("a JPEG of 65535 x 65535").to_string();
    assert!(error.contains("12884508675 bytes large, and at most 100000 are allowed"), "{error}");
    let big = png(RgbImage::new(200, 200));
    read(&big, &limited).expect_err("120000 bytes");
    sample(&big, Target { max_decoded_bytes: 1 << 20, ..limited });
}

#[test]
fn a_webp_chunk_that_claims_gigabytes_is_refused_before_memory_is_taken() {
    let webp = encode(colourful(), ImageFormat::WebP);
    let features = [8, 0, 0, 0, 8, 0, 0, 6, 0, 0];
    let mut lying =
        [&webp[..12], b"VP8X\x0a\0\0\0", &features, &webp[12..], b"EXIF\xf0\xff\xff\xff", b"MM\0*"].concat();
    let riff = (lying.len() - 8) as u32;
    lying[4..8].copy_from_slice(&riff.to_le_bytes());
    let error = read(&lying, target(9, 7, 3)).expect_err("an EXIF chunk of 4 GB").to_string();
    assert!(error.contains("truncated"), "{error}");
    let at = lying.len() - 8;
    lying[at..at + 4].copy_from_slice(&[4, 0, 0, 0]);
    assert_eq!(sample(&lying, target(9, 7, 3)), colourful().as_raw()[..]);
}

#[test]
fn images_of_all_kinds_share_a_threads_buffers() {
    let (small, large) = (png(RgbImage::from_pixel(2, 2, Rgb([9; 3]))), png(RgbaImage::new(300, 200)));
    for _ in 0..3 {
        assert_eq!(sample(&large, target(5, 5, 3)), [0; 75]);
        assert_eq!(sample(&small, target(3, 5, 1)), [9; 15]);
        assert!(read(b"\xff\xd8\xff\xe0 broken", target(1, 1, 3)).is_err());
    }
}
