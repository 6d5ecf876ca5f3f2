//! Image files that are damaged or claim too much.

#![cfg(feature = "images")]

use std::fs;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gpufeed::source::{FolderOptions, FolderSource, ImageError};
use gpufeed::{SampleContext, SampleWriter, Source};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use proptest::prelude::*;

use crate::{alone, cases, within};

/// What an image may be when decoded.
const LIMIT: usize = 1 << 20;
/// A decoder may need a few times as much, and the resampler its own.
const MOST: usize = 8 * LIMIT;
const SIDE: usize = 8;

fn encoded(format: ImageFormat) -> Vec<u8> {
    let image = RgbImage::from_fn(37, 23, |x, y| Rgb([x as u8 * 6, y as u8 * 11, (x * y) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(image).write_to(&mut bytes, format).expect("encoded");
    bytes.into_inner()
}

const FORMATS: [(ImageFormat, &str); 3] =
    [(ImageFormat::Png, "png"), (ImageFormat::Jpeg, "jpg"), (ImageFormat::WebP, "webp")];

/// Reads these bytes as the one image of a folder: whether it is one.
fn read(bytes: &[u8], extension: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(format!("a.{extension}")), bytes).expect("written");
    let options =
        FolderOptions { height: SIDE, width: SIDE, max_decoded_bytes: LIMIT as u64, ..FolderOptions::default() };
    let source = FolderSource::open(folder.path(), options).expect("one file");
    let mut memory = [0; SIDE * SIDE * 3];
    let read = within(MOST, || {
        catch_unwind(AssertUnwindSafe(|| {
            source.read(&SampleContext::of(0), &mut SampleWriter::over(&mut memory)).map_err(|error| {
                assert!(error.is::<ImageError>(), "{error}");
                assert!(error.to_string().contains(&format!("a.{extension}: ")), "{error}");
            })
        }))
    });
    read.expect("no decoder panics").is_ok()
}

/// A PNG whose header says so, with a right checksum.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = encoded(ImageFormat::Png);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let crc = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn whole_images_are_read() {
    let _turn = alone();
    for (format, extension) in FORMATS {
        assert!(read(&encoded(format), extension), "{extension}");
    }
    assert!(read(&png_of(37, 23), "png"), "the checksum is right");
}

#[test]
fn a_png_that_claims_gigabytes_takes_none_of_them() {
    let _turn = alone();
    for (width, height) in [(60_000, 60_000), (u32::MAX >> 1, u32::MAX >> 1), (1, u32::MAX >> 1), (0, 5)] {
        assert!(!read(&png_of(width, height), "png"), "{width} x {height}");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_damaged_image_is_an_error_or_an_image(
        format in 0usize..3,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
        early in any::<bool>(),
    ) {
        let _turn = alone();
        let (format, extension) = FORMATS[format];
        let mut bytes = encoded(format);
        // Headers are where lies cost most.
        let reach = if early { bytes.len().min(200) } else { bytes.len() };
        for (at, value) in damage {
            bytes[at.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read(&bytes, extension);
    }

    #[test]
    fn any_bytes_after_the_first_are_an_error(format in 0usize..3, tail in prop::collection::vec(any::<u8>(), 0..600)) {
        let _turn = alone();
        let magic: &[u8] = [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", &b"\xff\xd8\xff"[..], b"RIFF\xff\0\0\0WEBPVP8 "][format];
        read(&[magic, &tail].concat(), FORMATS[format].1);
    }
}
