//! What `gpufeed run --save` delivers, against the formula.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gpufeed::source::{NpyType, write_npy};

use crate::data::{self, Array, BYTES, Data, HEIGHT, IMAGES, WIDTH};
use crate::support::{devices, run};

const IMAGENET: [[f64; 3]; 2] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];
const GIVEN: [[f64; 3]; 2] = [[-0.25, 0.5, 0.125], [0.5, 1.5, 0.03]];
const BATCH: usize = 3;
const EPOCHS: usize = 2;

/// One way of asking for a tensor.
#[derive(Clone, Copy, Debug)]
struct Wish {
    device: &'static str,
    half: bool,
    nchw: bool,
    /// Whether mean and standard deviation are given, or left to the default.
    given: bool,
}

impl Wish {
    fn args(self) -> Vec<&'static str> {
        let mut args = vec!["--device", self.device, "--batch-size", "3", "--epochs", "2", "--seed", "5"];
        args.extend(["--dtype", if self.half { "f16" } else { "f32" }]);
        args.extend(["--layout", if self.nchw { "nchw" } else { "nhwc" }]);
        if self.given {
            args.extend(["--mean", "-0.25,0.5,0.125", "--std", "0.5,1.5,0.03"]);
        }
        args
    }

    /// `(pixel / 255 - mean) / std` in f64, and how far from it a delivered value may be.
    fn expected(self, channel: usize, pixel: u8) -> (f64, f64) {
        let [mean, std] = if self.given { GIVEN } else { IMAGENET };
        let value = (f64::from(pixel) / 255.0 - mean[channel]) / std[channel];
        // Two units in the last place of an f32, of the sizes of what is added.
        let size = f64::from(pixel) / 255.0 / std[channel].abs() + (mean[channel] / std[channel]).abs();
        let bound = 2.0 * 2f64.powi(-23) * size;
        // And half a unit of an f16.
        let rounding = if self.half { ((value.abs() + bound) * 2f64.powi(-11)).max(2f64.powi(-25)) } else { 0.0 };
        (value, bound + rounding)
    }

    fn shape(self, samples: usize) -> Vec<usize> {
        if self.nchw { vec![samples, 3, HEIGHT, WIDTH] } else { vec![samples, HEIGHT, WIDTH, 3] }
    }

    /// The offset of an element of the image's NHWC bytes in the tensor.
    fn place(self, sample: usize, pixel: usize, channel: usize) -> usize {
        let within = if self.nchw { channel * HEIGHT * WIDTH + pixel } else { pixel * 3 + channel };
        sample * BYTES + within
    }
}

fn check_batch(wish: Wish, saved: &Path, number: usize) -> Vec<i64> {
    let read = |suffix: &str| Array::read(&saved.join(format!("batch-{number:06}{suffix}.npy")));
    let (tensor, indices, labels) = (read(""), read(".indices").i64s(), read(".labels").i64s());
    assert_eq!(tensor.shape, wish.shape(indices.len()), "{wish:?}");
    assert_eq!(tensor.dtype, if wish.half { "<f2" } else { "<f4" });
    let (values, pixels) = (tensor.floats(), data::pixels());
    for (sample, &index) in indices.iter().enumerate() {
        let index = usize::try_from(index).expect("an index");
        assert_eq!(labels[sample], data::label(index), "{wish:?}");
        for (place, &pixel) in pixels[index * BYTES..][..BYTES].iter().enumerate() {
            let (expected, bound) = wish.expected(place % 3, pixel);
            let value = values[wish.place(sample, place / 3, place % 3)];
            let error = (value - expected).abs();
            assert!(
                error <= bound,
                "{wish:?}: image {index}, byte {place}: {value}, not {expected}: {error:e} > {bound:e}"
            );
        }
    }
    indices
}

fn check(data: &Data, wish: Wish, more: &[&str]) {
    let saved = data.folder.path().join(".saved");
    let saved_arg = saved.to_str().expect("a path in ASCII");
    let args = [&["run", data.arg(), "--save", saved_arg][..], &wish.args(), more].concat();
    run(&args).ended_with(0);
    let per_epoch = IMAGES.div_ceil(BATCH);
    let orders: Vec<Vec<i64>> = (0..EPOCHS)
        .map(|epoch| (0..per_epoch).flat_map(|batch| check_batch(wish, &saved, epoch * per_epoch + batch)).collect())
        .collect();
    for order in &orders {
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), IMAGES, "each image once an epoch: {order:?}");
    }
    assert_ne!(orders[0], orders[1], "each epoch is shuffled anew");
    let files = fs::read_dir(&saved).expect("the folder").count();
    // A folder's classes and files are told beside them.
    let told = if data.path.is_dir() { 2 } else { 0 };
    assert_eq!(files, 3 * EPOCHS * per_epoch + told, "nothing but these batches");
    fs::remove_dir_all(&saved).expect("removed");
}

/// Every device, element type and order of dimensions; the normalisation is left to the default for half of them.
fn check_all(test: &str, data: &Data, more: &[&str]) {
    for device in devices(test) {
        for (half, nchw) in [(false, false), (false, true), (true, false), (true, true)] {
            check(data, Wish { device, half, nchw, given: half == nchw }, more);
        }
    }
}

#[test]
fn png_files_arrive_as_the_formula_says() {
    check_all("png_files_arrive_as_the_formula_says", &data::folder_of("png"), &["--size", "9x13"]);
}

#[test]
fn lossless_webp_files_arrive_as_the_formula_says() {
    check_all("lossless_webp_files_arrive_as_the_formula_says", &data::folder_of("webp"), &["--size", "9x13"]);
}

#[test]
fn an_npy_file_arrives_as_the_formula_says() {
    check_all("an_npy_file_arrives_as_the_formula_says", &data::array(), &[]);
}

#[test]
fn an_npy_file_with_channels_first_arrives_as_one_with_channels_last() {
    let data = data::array();
    let pixels = data::pixels();
    let plane = |image: &[u8], channel| image.iter().skip(channel).step_by(3).copied().collect::<Vec<_>>();
    let planes = pixels.chunks_exact(BYTES).flat_map(|image| [0, 1, 2].map(|channel| plane(image, channel)));
    let planes: Vec<u8> = planes.flatten().collect();
    write_npy(&data.path, NpyType::U8, &[IMAGES, 3, HEIGHT, WIDTH], &planes).expect("written");
    let test = "an_npy_file_with_channels_first_arrives_as_one_with_channels_last";
    check_all(test, &data, &["--channels-first"]);
    let args = ["run", data.arg(), "--device", "host"];
    let ran = run(&[&args[..], &["--layout", "nchw"]].concat()).ended_with(1);
    assert!(ran.stderr.contains("--channels-first makes images of them"), "{}", ran.stderr);
    let ran = run(&[&args[..], &["--channels-first", "--strategy", "registered"]].concat()).ended_with(1);
    assert!(ran.stderr.contains("registered"), "{}", ran.stderr);
    let folder = data::folder_of("png");
    let ran = run(&["run", folder.arg(), "--device", "host", "--channels-first"]).ended_with(1);
    assert!(ran.stderr.contains("--channels-first is only for .npy files"), "{}", ran.stderr);
}

#[test]
fn arrays_of_every_element_type_arrive_as_they_are() {
    let data = data::array();
    fs::remove_file(data.path.with_extension("labels.npy")).expect("there");
    let bytes: Vec<u8> = (0..IMAGES * 3 * 8).map(|at| (at % 2) as u8).collect();
    for (dtype, descr) in [
        (NpyType::Bool, "|b1"),
        (NpyType::U16, "<u2"),
        (NpyType::F16, "<f2"),
        (NpyType::I32, "<i4"),
        (NpyType::F32, "<f4"),
        (NpyType::I64, "<i8"),
    ] {
        let bytes = &bytes[..IMAGES * 3 * dtype.bytes()];
        write_npy(&data.path, dtype, &[IMAGES, 3], bytes).expect("written");
        for device in devices("arrays_of_every_element_type_arrive_as_they_are") {
            let saved = data.folder.path().join("saved");
            let saved_arg = saved.to_str().expect("a path in ASCII");
            run(&["run", data.arg(), "--device", device, "--batch-size", "7", "--save", saved_arg]).ended_with(0);
            let tensor = Array::read(&saved.join("batch-000000.npy"));
            assert_eq!((tensor.dtype.as_str(), &tensor.shape[..]), (descr, &[IMAGES, 3][..]), "{device}");
            assert!(tensor.bytes == bytes, "{descr} on {device}");
            fs::remove_dir_all(&saved).expect("removed");
        }
    }
}

#[test]
fn jpeg_files_arrive_as_another_decoder_reads_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (height, width) = (40, 56);
    for number in 0..4u8 {
        let image = image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([(x * 4) as u8, (y * 6) as u8, (x + y) as u8 ^ (number * 37)])
        });
        let file = std::fs::File::create(folder.path().join(format!("{number}.jpg"))).expect("a file");
        let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(file, 70 + number * 8);
        image.write_with_encoder(encoder).expect("encoded");
    }
    let saved = folder.path().join(".saved");
    let args = ["run", folder.path().to_str().expect("ASCII"), "--size", "40x56", "--dtype", "u8", "--device", "host"];
    run(&[&args[..], &["--save", saved.to_str().expect("ASCII")]].concat()).ended_with(0);
    let tensor = Array::read(&saved.join("batch-000000.npy"));
    let image_bytes = (height * width * 3) as usize;
    for (number, ours) in tensor.bytes.chunks_exact(image_bytes).enumerate() {
        let file = std::fs::File::open(folder.path().join(format!("{number}.jpg"))).expect("the file");
        let theirs = jpeg_decoder::Decoder::new(std::io::BufReader::new(file)).decode().expect("decoded");
        let far = ours.iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(ours.len() == theirs.len() && far <= Some(2), "image {number}: {far:?} of 255 apart");
    }
}

#[test]
fn a_damaged_jpeg_is_named_and_delivered_alike_by_every_decoder_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let stored = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jpeg/restarts-every-row.jpg");
    let mut bytes = std::fs::read(stored).expect("a stored file");
    let restart = bytes.windows(2).position(|bytes| bytes == [0xff, 0xd0]).expect("a restart marker");
    bytes[restart + 20..restart + 22].copy_from_slice(&[0xff, 0x02]);
    std::fs::write(folder.path().join("a.jpg"), bytes).expect("written");
    let data = folder.path().to_str().expect("ASCII");
    let args = ["run", data, "--size", "37x45", "--dtype", "u8", "--device", "host", "--decoder"];
    let delivered = ["auto", "rust"].map(|decoder| {
        let saved = folder.path().join(format!(".{decoder}"));
        let ended = run(&[&args[..], &[decoder, "--save", saved.to_str().expect("ASCII")]].concat());
        let ended = ended.ended_with(0);
        assert!(ended.stderr.contains("a.jpg: damaged, decoded as far as possible: "), "{}", ended.stderr);
        Array::read(&saved.join("batch-000000.npy")).bytes
    });
    assert!(delivered[0] == delivered[1], "the decoders differ");
    let refused = run(&[&args[..], &["rust", "--refuse-damaged"]].concat()).ended_with(1);
    assert!(refused.stderr.contains("a.jpg: damaged: "), "{}", refused.stderr);
    let large = run(&[&args[..], &["rust", "--max-image-bytes", "3000"]].concat()).ended_with(1);
    assert!(large.stderr.contains("--max-image-bytes"), "{}", large.stderr);
}

#[test]
fn raw_pixels_arrive_as_they_are() {
    let data = data::array();
    for device in devices("raw_pixels_arrive_as_they_are") {
        let saved = data.folder.path().join(device.replace(':', "-"));
        let saved_arg = saved.to_str().expect("a path in ASCII");
        let args = ["run", data.arg(), "--device", device, "--dtype", "u8", "--batch-size", "5", "--save", saved_arg];
        run(&[&args[..], &["--drop-last", "--outputs", "1"]].concat()).ended_with(0);
        let tensor = Array::read(&saved.join("batch-000000.npy"));
        assert_eq!((tensor.dtype.as_str(), &tensor.shape[..]), ("|u1", &[5, HEIGHT, WIDTH, 3][..]), "{device}");
        assert!(tensor.bytes == data::pixels()[..5 * BYTES], "{device}");
        assert!(!saved.join("batch-000001.npy").exists(), "two images fill no batch");
    }
}

#[test]
fn saved_batches_are_not_mixed_with_older_ones() {
    let data = data::array();
    let saved = data.folder.path().join("saved");
    let args = ["run", data.arg(), "--device", "host", "--save", saved.to_str().expect("a path in ASCII")];
    run(&args).ended_with(0);
    let again = run(&args).ended_with(1);
    assert!(again.stderr.contains("holds saved batches already"), "{}", again.stderr);
}
