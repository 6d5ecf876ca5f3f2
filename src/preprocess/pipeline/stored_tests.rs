//! The oracle, held against what Pillow, OpenCV and the snippets that people copy make of one picture: `tests/data/pipeline/make.py`
//! wrote the files.

use super::*;
use crate::layout::{Field, PixelFormat, Yuv};

macro_rules! stored {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/data/pipeline/", $name)).as_slice()
    };
}

const PICTURE: (&[u8], usize, usize) = (stored!("picture.rgb"), 72, 96);
/// Every so many values of a float tensor are stored.
const STEP: usize = 53;

/// The oracle's values for a part of the picture, from its upper left corner.
fn expected(pipeline: &Pipeline, format: PixelFormat, height: usize, width: usize) -> Vec<f64> {
    let (bytes, _, columns) = PICTURE;
    let field = Field::frame("image", format, height, width).and_then(|field| field.with_pitch(3 * columns));
    let sample = SampleLayout::new([field.expect("it lies in the picture")]).expect("a sample");
    let frame = sample.as_frame().expect("a frame");
    let geometry = pipeline.geometry(&frame, 0).expect("it fits");
    let values = PipelineOracle::new(pipeline, &sample).expect("it fits");
    let values = values.expected(&geometry, &bytes[..frame.byte_len()]).expect("as long as a frame");
    values.iter().map(|value| value.value).collect()
}

/// The largest and the mean difference.
fn difference(values: &[f64], stored: impl ExactSizeIterator<Item = f64>) -> (f64, f64) {
    assert_eq!(values.len(), stored.len());
    let differences: Vec<f64> = values.iter().zip(stored).map(|(a, b)| (a - b).abs()).collect();
    (differences.iter().copied().fold(0.0, f64::max), differences.iter().sum::<f64>() / values.len() as f64)
}

/// The picture as bytes, in the order of the stored ones.
fn as_bytes(pipeline: Pipeline) -> Vec<f64> {
    let mut pipeline = pipeline.with_layout(TensorLayout::Nhwc);
    pipeline.std = vec![1.0 / 255.0; pipeline.channels.count()];
    expected(&pipeline, PixelFormat::Rgb8, PICTURE.1, PICTURE.2)
}

/// Bytes, rounded as Pillow rounds them.
fn rounded(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| (value + 0.5).floor()).collect()
}

fn bytes(stored: &[u8]) -> impl ExactSizeIterator<Item = f64> + '_ {
    stored.iter().map(|&byte| f64::from(byte))
}

#[test]
fn resizing_is_pillows_but_for_what_pillow_rounds_in_between() {
    // Where pixels are enlarged nothing averages what is rounded between the two passes.
    let sizes = [(23, 31, 0.2), (80, 110, 0.22)];
    let files = [
        (Filter::Bilinear, [stored!("bilinear-31x23.rgb"), stored!("bilinear-110x80.rgb")]),
        (Filter::Bicubic, [stored!("bicubic-31x23.rgb"), stored!("bicubic-110x80.rgb")]),
    ];
    for (filter, files) in files {
        for ((height, width, bound), file) in sizes.into_iter().zip(files) {
            let pipeline = Pipeline::new().with_resize(Resize::Exact { height, width }).with_filter(filter, true);
            let (most, mean) = difference(&rounded(&as_bytes(pipeline)), bytes(file));
            assert!(most <= 1.0 && mean < bound, "{filter:?} {width}x{height}: {most} at most, {mean} on average");
        }
    }
}

#[test]
fn the_nearest_pixel_is_pillows() {
    for (height, width, file) in [(23, 31, stored!("nearest-31x23.rgb")), (80, 110, stored!("nearest-110x80.rgb"))] {
        let pipeline = Pipeline::new().with_resize(Resize::Exact { height, width }).with_filter(Filter::Nearest, false);
        // A centre between two pixels is the further one's here. Pillow adds up steps, and rounding decides.
        let between = |at: usize, of: usize, pixels: usize| ((2 * at + 1) * of).is_multiple_of(2 * pixels);
        for (at, (value, &byte)) in as_bytes(pipeline).iter().zip(file).enumerate() {
            let (x, y) = (at / 3 % width, at / 3 / width);
            if !between(x, PICTURE.2, width) && !between(y, PICTURE.1, height) {
                assert_eq!(value.round(), f64::from(byte), "{width}x{height}: {x}, {y}");
            }
        }
    }
}

#[test]
fn a_crop_is_resized_as_if_there_were_nothing_around_it() {
    let crop = Crop::Rect { left: 13, top: 8, height: 49, width: 57 };
    let pipeline = Pipeline::new().with_crop(crop).with_resize(Resize::Exact { height: 24, width: 20 });
    let (most, mean) = difference(&rounded(&as_bytes(pipeline)), bytes(stored!("crop-20x24.rgb")));
    assert!(most <= 1.0 && mean < 0.2, "{most} at most, {mean} on average");
}

#[test]
fn turns_and_grey_are_pillows() {
    let files = [
        stored!("exif-2.rgb"),
        stored!("exif-3.rgb"),
        stored!("exif-4.rgb"),
        stored!("exif-5.rgb"),
        stored!("exif-6.rgb"),
        stored!("exif-7.rgb"),
        stored!("exif-8.rgb"),
    ];
    for (number, file) in (2..).zip(files) {
        let orientation = Orientation::from_exif(number).expect("one of eight");
        let pipeline = Pipeline { orientation, ..Pipeline::zero_to_255().with_layout(TensorLayout::Nhwc) };
        let values = expected(&pipeline, PixelFormat::Rgb8, 4, 5);
        let (most, _) = difference(&values, bytes(file));
        assert!(most <= 1e-4, "{orientation:?}: {most}");
    }
    let gray = Pipeline::new().with_channels(ChannelOrder::Gray, &[0.0], &[1.0 / 255.0]);
    let values = expected(&gray, PixelFormat::Rgb8, 10, 20);
    assert!(difference(&values, bytes(stored!("gray.rgb"))).0 <= 0.51);
}

fn floats(bytes: &[u8]) -> impl ExactSizeIterator<Item = f64> + '_ {
    bytes.as_chunks().0.iter().map(|&word| f64::from(f32::from_le_bytes(word)))
}

/// Those that were stored.
fn every_so_many(values: &[f64]) -> Vec<f64> {
    values.iter().copied().step_by(STEP).collect()
}

#[test]
fn presets_are_the_snippets_that_people_copy() {
    let whole = |pipeline: &Pipeline| every_so_many(&expected(pipeline, PixelFormat::Rgb8, PICTURE.1, PICTURE.2));
    // What one level of 255 is, with the smallest standard deviation; the snippet rounds to bytes before it normalises.
    let level = 1.0 / (255.0 * 0.224);
    let (most, mean) = difference(&whole(&Pipeline::imagenet_eval()), floats(stored!("imagenet.f32")));
    assert!(most <= level && mean < 0.35 * level, "{most} at most, {mean} on average");
    let exact = |pipeline: &Pipeline, stored: &[u8], bound: f64| {
        let (most, _) = difference(&whole(pipeline), floats(stored));
        assert!(most <= bound, "{pipeline:?}: {most}");
    };
    exact(&Pipeline::minus_one_to_one(), stored!("minus-one.f32"), 1e-6);
    exact(&Pipeline::zero_to_255(), stored!("zero-to-255.f32"), 1e-4);
    // OpenCV rounds weights to 2^-11 and values to bytes.
    exact(&Pipeline::yolo(64), stored!("yolo.f32"), 1.0 / 255.0);
    exact(&Pipeline::opencv(37, 50), stored!("opencv.f32"), 1.0);
    let odd = every_so_many(&expected(&Pipeline::yolo(64), PixelFormat::Rgb8, 57, 90));
    assert!(difference(&odd, floats(stored!("yolo-odd.f32"))).0 <= 1.0 / 255.0);
}

#[test]
fn chroma_is_the_formulas() {
    let bytes = stored!("frame.nv12");
    for (yuv, stored) in [(Yuv::BT709, stored!("nv12-bt709.f32")), (Yuv::JPEG, stored!("nv12-jpeg.f32"))] {
        let sample = SampleLayout::frame(PixelFormat::Nv12(yuv), 9, 13).expect("a frame");
        let pipeline = Pipeline::new();
        let geometry = pipeline.geometry(&sample.as_frame().expect("a frame"), 0).expect("it fits");
        let values = PipelineOracle::new(&pipeline, &sample).expect("it fits").expected(&geometry, bytes);
        let values: Vec<f64> = values.expect("a frame's bytes").iter().map(|value| value.value).collect();
        let (most, _) = difference(&values, floats(stored));
        assert!(most <= 1e-5, "{yuv:?}: {most}");
    }
}
