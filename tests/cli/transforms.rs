//! `--preset` and `--transform`, held against the library's oracle.

use std::fs;

use gpufeed::measure::report::Report;
use gpufeed::preprocess::PipelineOracle;
use gpufeed::{Crop, Flip, Pipeline, Quantization, Resize, SampleContext, SampleLayout, TensorLayout, TensorType};

use crate::data::{self, Array, BYTES, HEIGHT, IMAGES, WIDTH};
use crate::support::{devices, run};

const SEED: u64 = 5;

/// What a command line makes of the images is what this recipe makes of them.
fn check(test: &str, args: &[&str], pipeline: &Pipeline, shape: &[usize]) {
    let (data, pixels) = (data::array(), data::pixels());
    let sample = SampleLayout::image(HEIGHT, WIDTH, 3).expect("an image");
    let (oracle, frame) = (PipelineOracle::new(pipeline, &sample).expect("it fits"), sample.as_frame().expect("one"));
    for device in devices(test) {
        let saved = data.folder.path().join("saved");
        let saved_arg = saved.to_str().expect("a path in ASCII");
        let line = ["run", data.arg(), "--device", device, "--batch-size", "7", "--epochs", "2", "--seed", "5"];
        run(&[&line[..], args, &["--save", saved_arg]].concat()).ended_with(0);
        for epoch in 0..2 {
            let read = |suffix: &str| Array::read(&saved.join(format!("batch-{epoch:06}{suffix}.npy")));
            let (tensor, indices) = (read(""), read(".indices").i64s());
            assert_eq!((tensor.shape[0], &tensor.shape[1..]), (IMAGES, shape), "{device}");
            let each = tensor.bytes.len() / IMAGES;
            for (&index, tensor) in indices.iter().zip(tensor.bytes.chunks_exact(each)) {
                let context = SampleContext::of(index as u64).in_epoch(epoch).with_seed(SEED);
                let geometry = pipeline.geometry(&frame, context.random_seed()).expect("it fits");
                let image = &pixels[index as usize * BYTES..][..BYTES];
                let worst = oracle.worst(&geometry, image, tensor).expect("as long as it should be");
                assert!(worst <= 1.0, "{device}, {args:?}: image {index} is {worst} of the bound away");
            }
        }
        fs::remove_dir_all(&saved).expect("removed");
    }
}

#[test]
fn random_crops_and_flips_are_those_of_the_seed() {
    let resize = Resize::Exact { height: 6, width: 10 };
    let flip = Flip { horizontal: 0.5, vertical: 0.0 };
    let pipeline = Pipeline { flip, ..Pipeline::imagenet().with_crop(Crop::RANDOM).with_resize(resize) };
    let args = ["--transform", "random-resized-crop=6x10,flip"];
    check("random_crops_and_flips_are_those_of_the_seed", &args, &pipeline, &[3, 6, 10]);
}

#[test]
fn a_preset_has_its_own_values_and_layout_and_takes_another_geometry() {
    let test = "a_preset_has_its_own_values_and_layout_and_takes_another_geometry";
    check(test, &["--preset", "opencv"], &Pipeline::opencv(HEIGHT, WIDTH), &[HEIGHT, WIDTH, 3]);
    let args = ["--preset", "yolo", "--transform", "letterbox=16", "--dtype", "f16", "--layout", "nhwc"];
    let yolo = Pipeline::yolo(16).with_layout(TensorLayout::Nhwc).with_dtype(TensorType::F16);
    check(test, &args, &yolo, &[16, 16, 3]);
    let args = ["--transform", "resize=8,center-crop=6", "--dtype", "u8"];
    let pixels = TensorType::U8(Quantization { scale: 1.0, zero_point: 0 });
    let bytes = Pipeline::zero_to_255().with_resize(Resize::ShorterSide(8)).with_dtype(pixels);
    check(test, &args, &Pipeline { center_crop: Some((6, 6)), ..bytes }, &[3, 6, 6]);
}

#[test]
fn strategies_are_compared_with_a_transform_and_those_that_read_in_place_too() {
    let folder = tempfile::tempdir().expect("a folder");
    for device in devices("strategies_are_compared_with_a_transform_and_those_that_read_in_place_too") {
        let json = folder.path().join(format!("{}.json", device.replace(':', "-")));
        let line = ["compare", "--device", device, "--size", "16x12", "--batch-size", "8", "--time", "1"];
        let recipe = ["--preset", "imagenet", "--transform", "random-resized-crop=8,flip,bicubic"];
        run(&[&line[..], &recipe, &["--json", json.to_str().expect("ASCII")]].concat()).ended_with(0);
        let report: Report = serde_json::from_str(&fs::read_to_string(&json).expect("written")).expect("a report");
        assert_eq!(report.data.preprocess, "imagenet,random-resized-crop=8x8,flip,bicubic to f32, NCHW");
        for row in &report.devices[0].configurations {
            let runs = row.is_measured() && row.verified.is_some();
            assert!(runs || format!("{:?}", row.status).contains("Unsupported"), "{row:?}");
            assert!(runs || row.settings.strategy.key() != "imported" || device != "vulkan:0", "{row:?}");
        }
    }
}

#[test]
fn a_transform_that_makes_no_sense_is_wrong_usage_or_does_not_fit() {
    let data = data::array();
    let ran = |args: &[&str]| run(&[&["run", data.arg(), "--device", "host"], args].concat());
    let spelled = ran(&["--transform", "rotate=3"]).ended_with(2);
    assert!(spelled.stderr.contains("random-resized-crop"), "{}", spelled.stderr);
    let twice = ran(&["--transform", "resize=8,letterbox=9"]).ended_with(1);
    assert!(twice.stderr.contains("letterbox=9x9 would resize what is resized already"), "{}", twice.stderr);
    let large = ran(&["--transform", "resize=40000"]).ended_with(1);
    assert!(large.stderr.contains("40000"), "{}", large.stderr);
    let unknown = ran(&["--preset", "vgg"]).ended_with(2);
    assert!(unknown.stderr.contains("imagenet-eval"), "{}", unknown.stderr);
}
