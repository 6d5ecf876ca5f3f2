//! What the options of decoding change.

use image::{ImageFormat, Rgb, RgbImage};

use super::tests::{encode, read, sample};
use super::*;

/// Clouds of several sizes, with edges.
fn photo(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let wave =
            |period: f32, phase: f32| ((x as f32 + 0.7 * y as f32) / period + phase).sin() + (y as f32 / period).cos();
        let shared = 30.0 * wave(90.0, 0.0) + 12.0 * wave(23.0, 1.0) + 5.0 * wave(5.0, 2.0);
        let edge = if (x / 61 + y / 47) % 2 == 0 { 25.0 } else { -25.0 };
        Rgb([0.0, 20.0, 40.0].map(|tint| (128.0 + shared + edge + tint * wave(150.0, tint)).clamp(0.0, 255.0) as u8))
    })
}

#[test]
fn a_large_photo_at_a_fraction_of_its_size_is_close_to_the_full_decode() {
    let file = encode(photo(1000, 803), ImageFormat::Jpeg);
    for (side, fit) in [(200, Fit::Crop), (100, Fit::Crop), (60, Fit::Stretch), (50, Fit::Crop)] {
        for decoder in [Decoder::Auto, Decoder::Rust] {
            let with = |full_size| {
                let options = DecodeOptions { decoder, full_size, ..DecodeOptions::default() };
                sample(&file, Target::new((side, side), 3, fit, 1 << 24, options).expect("a decoder"))
            };
            let (full, reduced) = (with(true), with(false));
            assert_ne!(full, reduced, "{side}: decoded at a fraction");
            let differences: Vec<u8> = full.iter().zip(&reduced).map(|(a, b)| a.abs_diff(*b)).collect();
            let mean = differences.iter().map(|&difference| f64::from(difference)).sum::<f64>() / full.len() as f64;
            let most = differences.iter().max();
            assert!(mean < 1.0 && most <= Some(&8), "{side}: mean {mean}, at most {most:?}");
        }
    }
}

/// An image as PNG, which is always decoded whole.
fn as_png(file: &[u8], (width, height): (u32, u32)) -> Vec<u8> {
    let options = DecodeOptions { decoder: Decoder::Rust, full_size: true, ..DecodeOptions::default() };
    let whole = Target::new((height, width), 3, Fit::Stretch, 1 << 24, options).expect("a decoder");
    encode(RgbImage::from_raw(width, height, sample(file, whole)).expect("an image"), ImageFormat::Png)
}

#[test]
fn what_is_not_decoded_of_a_cropped_image_makes_no_difference() {
    let other = encode(RgbImage::from_fn(900, 900, |x, y| Rgb([(x * y) as u8; 3])), ImageFormat::Jpeg);
    for (width, height) in [(700, 90), (90, 700), (433, 301), (250, 64)] {
        let stored = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jpeg/progressive-420.jpg");
        let files = [
            (encode(photo(width, height), ImageFormat::Jpeg), (width, height)),
            (std::fs::read(stored).expect("a stored file"), (45, 37)),
        ];
        for (file, size) in &files {
            let png = as_png(file, *size);
            for sample_size in [(16, 16), (7, 31), (33, 5), (60, 60)] {
                let with = |decoder, full_size| {
                    let options = DecodeOptions { decoder, full_size, ..DecodeOptions::default() };
                    Target::new(sample_size, 3, Fit::Crop, 1 << 24, options).expect("a decoder")
                };
                for full_size in [true, false] {
                    // What another image leaves in the decoder's memory must not show.
                    sample(&other, with(Decoder::Rust, true));
                    let rust = sample(file, with(Decoder::Rust, full_size));
                    assert_eq!(rust, sample(file, with(Decoder::Auto, full_size)), "{size:?} to {sample_size:?}");
                    if full_size {
                        assert_eq!(rust, sample(&png, with(Decoder::Rust, true)), "{size:?} to {sample_size:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_image_less_than_twice_as_large_as_half_of_it_is_decoded_in_full() {
    let file = encode(photo(500, 375), ImageFormat::Jpeg);
    let with = |full_size| {
        let options = DecodeOptions { full_size, ..DecodeOptions::default() };
        sample(&file, Target::new((224, 224), 3, Fit::Crop, 1 << 24, options).expect("a decoder"))
    };
    assert_eq!(with(true), with(false));
}

#[test]
fn a_damaged_image_is_counted_or_refused_as_asked() {
    let mut file = encode(photo(160, 160), ImageFormat::Jpeg);
    let at = file.len() - 400;
    file[at..at + 2].copy_from_slice(b"\xff\xd0");
    for decoder in [Decoder::Auto, Decoder::Rust] {
        let with = |damaged| {
            let options = DecodeOptions { decoder, damaged, ..DecodeOptions::default() };
            Target::new((160, 160), 3, Fit::Crop, 1 << 24, options).expect("a decoder")
        };
        let recover = with(Damaged::Recover);
        sample(&file, &recover);
        sample(&file, &recover);
        assert_eq!(recover.damaged().count(), 2);
        let named = recover.damaged().named();
        assert!(named[0].damage.contains("data end early"), "{named:?}");
        let refused = read(&file, with(Damaged::Refuse)).expect_err("refused").to_string();
        assert!(refused.contains("damaged: ") && refused.contains("blocks are lost"), "{refused}");
        let mut most = file.clone();
        let scan = most.windows(2).position(|bytes| bytes == b"\xff\xda").expect("a scan");
        most[scan + 100..scan + 102].copy_from_slice(b"\xff\xd0");
        read(&most, with(Damaged::Recover)).expect_err("more than half of it is made up");
    }
}

#[test]
fn the_decoder_and_its_version_are_named() {
    let id = |decoder| {
        let options = DecodeOptions { decoder, ..DecodeOptions::default() };
        Target::new((1, 1), 3, Fit::Crop, 1, options).map(|target| target.decoder_id())
    };
    let rust = id(Decoder::Rust).expect("always there");
    let own = concat!("gpufeed ", env!("CARGO_PKG_VERSION"));
    let options = "large images at a fraction of their size, damaged ones as far as possible";
    assert_eq!(rust, format!("JPEG by {own}, {options}; WebP by {own}; cropped"));
    let auto = id(Decoder::Auto).expect("always there");
    // What one is asked for does not change what the other format is decoded by.
    match id(Decoder::TurboJpeg) {
        Ok(turbo) => {
            assert!(
                turbo.starts_with("JPEG by libjpeg-turbo ") && turbo.ends_with(&format!("; WebP by {own}; cropped"))
            );
            assert!(auto.starts_with("JPEG by libjpeg-turbo "));
        }
        Err(error) => assert!(error.to_string().contains("libturbojpeg0") && auto.starts_with("JPEG by gpufeed ")),
    }
    match id(Decoder::LibWebp) {
        Ok(webp) => {
            assert!(webp.starts_with("JPEG by gpufeed ") && webp.contains("; WebP by libwebp "), "{webp}");
            assert!(auto.contains("; WebP by libwebp "), "{auto}");
        }
        Err(error) => assert!(error.to_string().contains("libwebp7") && auto.contains("; WebP by gpufeed "), "{auto}"),
    }
    // By default both decoders of JPEG are used, each where it is faster.
    assert!(
        id(Decoder::System).is_ok_and(|system| auto == system.replacen(", ", &format!(" and {own}, "), 1))
            || id(Decoder::TurboJpeg).and(id(Decoder::LibWebp)).is_err()
    );
    let other = DecodeOptions { damaged: Damaged::Refuse, full_size: true, decoder: Decoder::Rust };
    let other = Target::new((1, 1), 3, Fit::Stretch, 1, other).expect("always there").decoder_id();
    assert_eq!(other, format!("JPEG by {own}, at full size, damaged ones refused; WebP by {own}; stretched"));
    for decoder in Decoder::ALL {
        assert_eq!(decoder.key().parse(), Ok(decoder));
    }
}
