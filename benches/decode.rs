//! What decoding images costs one core, by decoder and by stage.
//!
//! `cargo bench --bench decode` makes photos of 500x375 and of 12 megapixels (4:2:0, quality 90), and a PNG and WebP of the former.
//! `GPUFEED_PHOTOS=folder cargo bench --bench decode` takes the images of a folder instead. Everything runs on one thread, from the
//! page cache. Each figure is the median of several rounds.
//!
//! A JPEG's sample is told apart into its stages. `read` is the file alone. `entropy` is the entropy decoder: decoding at an eighth of the
//! size, which does next to nothing else, less what it reads and resizes; nothing is faster than that, whatever the size. `resize` is
//! the resampling of an image of the size that is decoded to. `transform` is what is left of the sample: the inverse DCT, upsampling and
//! colours. A sample is what `FolderSource` gives by default, which decodes at a fraction of the size where that is enough; `full` is
//! the same from the full size.

#![allow(clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use gpufeed::source::{Decoder, Fit, FolderSource, ImageOptions};
use gpufeed::{SampleContext, SampleWriter, Source};

/// The sample.
const SIDE: usize = 224;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(300);

fn main() {
    let made = tempfile::tempdir().expect("a folder");
    let files = match std::env::var_os("GPUFEED_PHOTOS") {
        Some(folder) => images_in(Path::new(&folder)),
        None => make(made.path()),
    };
    println!("{:24} {:22} {:>10} {:>9} {:>8}", "file", "what", "images/s", "ms", "MB/s");
    for file in files {
        bench(&file);
    }
}

fn bench(file: &Path) {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = fs::metadata(file).expect("the file").len() as f64;
    let size = image::image_dimensions(file).expect("an image");
    let (width, height) = (size.0 as usize, size.1 as usize);
    let line = |what: &str, time: Duration| {
        let seconds = time.as_secs_f64();
        println!("{name:24} {what:22} {:10.0} {:9.2} {:8.0}", 1.0 / seconds, seconds * 1e3, bytes / seconds / 1e6);
    };
    let read = median(|| drop(fs::read(file).expect("read")));
    line("read", read);
    let is = |other: &str| file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(other));
    let decoders = match (is("jpg"), is("webp")) {
        (true, _) => &[Decoder::TurboJpeg, Decoder::Rust][..],
        (_, true) => &[Decoder::LibWebp, Decoder::Rust],
        _ => &[Decoder::Rust],
    };
    for &decoder in decoders {
        let key = if is("png") { "decoder" } else { decoder.key() };
        let Some(own) = sample(file, (height, width), decoder, true) else {
            println!("{name:24} {key}: not installed");
            continue;
        };
        line(&format!("{key}, own size"), own);
        let of = |size, full| sample(file, size, decoder, full).expect("the decoder is there");
        line(&format!("{key}, full, resized"), of((SIDE, SIDE), true));
        let whole = of((SIDE, SIDE), false);
        line(&format!("{key}, sample"), whole);
        if is("jpg") {
            let eighth = of((height / 16, width / 16), false);
            stages(&format!("{name:24} {key}, stages"), size, [read, eighth, whole]);
        }
    }
}

/// Prints a sample's stages in milliseconds, of what reading, a sixteenth by way of an eighth, and a sample take.
fn stages(what: &str, (width, height): (u32, u32), [read, eighth, whole]: [Duration; 3]) {
    let side = SIDE as u32;
    let divisor = [8, 4, 2].into_iter().find(|divisor| width.min(height) >= side * 2 * divisor).unwrap_or(1);
    let resize = resized((width.div_ceil(divisor), height.div_ceil(divisor)), (side, side));
    let of_eighth = resized((width.div_ceil(8), height.div_ceil(8)), (width / 16, height / 16));
    let entropy = eighth.saturating_sub(read + of_eighth);
    let transform = whole.saturating_sub(read + entropy + resize);
    let [read, entropy, transform, resize] = [read, entropy, transform, resize].map(|time| time.as_secs_f64() * 1e3);
    println!(
        "{what}: read {read:.2}, entropy {entropy:.2}, transform at 1/{divisor} {transform:.2}, resize {resize:.2} ms"
    );
}

/// The time of resampling RGB as a sample is.
fn resized(from: (u32, u32), to: (u32, u32)) -> Duration {
    let (pixels, mut resizer) = (vec![77; (from.0 * from.1 * 3) as usize], Resizer::new());
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
        .fit_into_destination(Some((0.5, 0.5)));
    let mut image = Image::new(to.0, to.1, PixelType::U8x3);
    median(|| {
        let from = ImageRef::new(from.0, from.1, &pixels, PixelType::U8x3).expect("an image");
        resizer.resize(&from, &mut image, &options).expect("resized");
    })
}

/// The time of one sample of this height and width; `None` where there is no such decoder.
fn sample(file: &Path, (height, width): (usize, usize), decoder: Decoder, full_size: bool) -> Option<Duration> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(file, folder.path().join(file.file_name()?)).expect("copied");
    let mut options = ImageOptions { height, width, fit: Fit::Crop, ..ImageOptions::default() };
    (options.decode.decoder, options.decode.full_size) = (decoder, full_size);
    let source = FolderSource::open(folder.path(), options.into()).ok()?;
    let mut memory = vec![0; height * width * 3];
    let first = SampleContext::of(0);
    Some(median(|| source.read(&first, &mut SampleWriter::over(&mut memory)).expect("decoded")))
}

/// The median over the rounds of what one call takes.
fn median(mut call: impl FnMut()) -> Duration {
    call();
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let (start, mut calls) = (Instant::now(), 0);
            while start.elapsed() < ROUND {
                call();
                calls += 1;
            }
            start.elapsed() / calls
        })
        .collect();
    rounds.sort_unstable();
    rounds[ROUNDS / 2]
}

fn images_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.filter(|path| image::ImageFormat::from_path(path).is_ok()).collect();
    files.sort_unstable();
    files
}

/// Photo-like images in every format.
fn make(folder: &Path) -> Vec<PathBuf> {
    let small = photo(500, 375);
    let jpeg = |name: &str, image: &image::RgbImage| {
        let path = folder.join(name);
        let mut encoder = jpeg_encoder::Encoder::new_file(&path, 90).expect("a file");
        encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::R_4_2_0);
        let (width, height) = (image.width() as u16, image.height() as u16);
        encoder.encode(image.as_raw(), width, height, jpeg_encoder::ColorType::Rgb).expect("encoded");
        path
    };
    let mut files = vec![jpeg("500x375.jpg", &small), jpeg("12-megapixels.jpg", &photo(4032, 3024))];
    for name in ["500x375.png", "500x375-lossless.webp"] {
        files.push(folder.join(name));
        small.save(folder.join(name)).expect("encoded");
    }
    files
}

/// Clouds of all sizes, each half as strong as those of twice its size, and a little noise.
fn photo(width: u32, height: u32) -> image::RgbImage {
    let corner = |x: u32, y: u32, salt: u32| {
        let mut hash = x.wrapping_mul(0x9e37_79b9) ^ y.wrapping_mul(0x85eb_ca6b) ^ salt.wrapping_mul(0xc2b2_ae35);
        hash = (hash ^ (hash >> 15)).wrapping_mul(0x2c1b_3c6d);
        f32::from((hash >> 16) as u16) / 65535.0 - 0.5
    };
    let cloud = |x: u32, y: u32, cell: u32, salt: u32| {
        let (left, top) = (x / cell, y / cell);
        let (right, down) = ((x % cell) as f32 / cell as f32, (y % cell) as f32 / cell as f32);
        let row = |y| corner(left, y, salt) * (1.0 - right) + corner(left + 1, y, salt) * right;
        row(top) * (1.0 - down) + row(top + 1) * down
    };
    image::RgbImage::from_fn(width, height, |x, y| {
        let shared: f32 = (0..9).map(|octave| cloud(x, y, 1 << octave, octave) * 1.7f32.powi(octave as i32)).sum();
        image::Rgb(
            [11, 22, 33].map(|salt| (128.0 + shared * 2.0 + 40.0 * cloud(x, y, 200, salt)).clamp(0.0, 255.0) as u8),
        )
    })
}
