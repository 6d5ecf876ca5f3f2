//! Image files that are damaged or claim too much.

#![cfg(feature = "images")]

use std::fs;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use gpufeed::source::{Decoder, FolderSource, ImageError, ImageOptions};
use gpufeed::{SampleContext, SampleWriter, Source};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use proptest::prelude::*;

use crate::counting::large_allocations;
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

/// Reads these bytes as the one image of a folder, with every decoder: whether it is one for the crate's own.
fn read(bytes: &[u8], extension: &str) -> bool {
    read_by(Decoder::Auto, bytes, extension);
    read_by(Decoder::Rust, bytes, extension)
}

fn read_by(decoder: Decoder, bytes: &[u8], extension: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(format!("a.{extension}")), bytes).expect("written");
    let mut options =
        ImageOptions { height: SIDE, width: SIDE, max_decoded_bytes: LIMIT as u64, ..ImageOptions::default() };
    options.decode.decoder = decoder;
    let source = FolderSource::open(folder.path(), options.into()).expect("one file");
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

/// A JPEG of another form: progressive, of several scans, with restart markers, CMYK.
fn stored(index: usize) -> Vec<u8> {
    const NAMES: [&str; 8] = [
        "progressive-420",
        "scans-bits",
        "scans-separate",
        "restarts-every-block",
        "restarts-progressive",
        "cmyk-progressive",
        "sampling-quarter",
        "coarse",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jpeg");
    fs::read(folder.join(NAMES[index]).with_extension("jpg")).expect("a stored file")
}

#[test]
fn jpeg_after_jpeg_takes_no_further_memory() {
    let _turn = alone();
    let folder = tempfile::tempdir().expect("a folder");
    for index in 0..8 {
        fs::write(folder.path().join(format!("{index}.jpg")), stored(index)).expect("written");
    }
    for decoder in [Decoder::Auto, Decoder::Rust] {
        let mut options = ImageOptions { height: SIDE, width: SIDE, ..ImageOptions::default() };
        options.decode.decoder = decoder;
        let source = FolderSource::open(folder.path(), options.into()).expect("eight files");
        let mut memory = [0; SIDE * SIDE * 3];
        let mut all = || {
            (0..8).for_each(|index| {
                source.read(&SampleContext::of(index), &mut SampleWriter::over(&mut memory)).expect("read")
            });
            large_allocations()
        };
        // Each buffer grows to what the largest image needs of it.
        all();
        let (before, after) = (all(), all());
        assert_eq!(before, after, "{decoder}: something of an image's size is allocated anew");
    }
}

#[test]
fn a_jpeg_that_claims_the_largest_size_takes_no_memory_for_it() {
    let _turn = alone();
    for index in 0..8 {
        let mut bytes = stored(index);
        let frame = bytes.windows(2).position(|bytes| matches!(bytes, [0xff, 0xc0..=0xc2])).expect("a frame");
        bytes[frame + 5..frame + 9].fill(0xff);
        assert!(!read(&bytes, "jpg"), "65535 x 65535");
        // Thin, so that it is within the limit, while its blocks are not.
        bytes[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xff, 0, 1]);
        read(&bytes, "jpg");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_damaged_jpeg_of_any_form_is_an_error_or_an_image(
        index in 0usize..8,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        early in any::<bool>(),
    ) {
        let _turn = alone();
        let mut bytes = stored(index);
        let reach = if early { bytes.len().min(700) } else { bytes.len() };
        for (at, value) in damage {
            bytes[at.index(reach)] = value;
        }
        read(&bytes, "jpg");
    }

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
