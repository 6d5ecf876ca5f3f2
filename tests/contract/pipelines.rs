//! From frames of every pixel format to a network's input, held against the oracle.

use std::sync::Arc;

use gpufeed::backend::{Input, Lane, LaneSpec, Tensor};
use gpufeed::layout::{BatchLayout, Field, FrameLayout, PixelFormat, SampleLayout, Yuv, YuvRange};
use gpufeed::preprocess::{GEOMETRY, PipelineOracle, Preprocess, fingerprint, sample_fingerprint};
use gpufeed::source::random_images;
use gpufeed::staging::SampleBuffer;
use gpufeed::{
    Anchor, ChannelOrder, Crop, Feeder, FeederOptions, Filter, Flip, Geometry, HostArena, Jitter, Loader,
    LoaderOptions, OpenError, Orientation, Pipeline, Quantization, Resize, SampleContext, Source, Strategy,
    TensorLayout, TensorType,
};

use crate::device::TestDevice;

const SAMPLES: usize = 5;
const BATCH: usize = 3;

fn frame(format: PixelFormat, height: usize, width: usize, padding: usize) -> SampleLayout {
    let frame = FrameLayout::new(format, height, width).expect("a frame");
    let frame = frame.with_pitch(frame.pitch() + padding).expect("a wider pitch");
    SampleLayout::new([Field::of_frame("image", frame).expect("a field")]).expect("a sample")
}

fn exact(height: usize, width: usize) -> Resize {
    Resize::Exact { height, width }
}

fn quantized(scale: f64, zero_point: i32) -> Quantization {
    Quantization { scale, zero_point }
}

/// Every pixel format, filter, element type and order at least once, with odd sides, padded rows and tensors that are no whole words.
#[expect(clippy::too_many_lines, reason = "one case after the other")]
fn cases() -> Vec<(SampleLayout, Pipeline)> {
    let (gray, rgb, bgr) = (PixelFormat::Gray8, PixelFormat::Rgb8, PixelFormat::Bgr8);
    let (rgba, bgra) = (PixelFormat::Rgba8, PixelFormat::Bgra8);
    let yuv = Yuv { range: YuvRange::Full, ..Yuv::BT709 };
    let letterbox = |anchor| Resize::Letterbox { height: 24, width: 20, anchor };
    let to_gray = |pipeline: Pipeline| pipeline.with_channels(ChannelOrder::Gray, &[0.4], &[0.3]);
    let to_bgr = |pipeline: Pipeline| pipeline.with_channels(ChannelOrder::Bgr, &[0.1, 0.2, 0.3], &[0.5, 1.0, -2.0]);
    let jitter = Jitter::new(0.4, 0.4, 0.4, 0.1);
    let rect = Crop::Rect { left: 3, top: 2, height: 15, width: 11 };
    let every_time = Flip { horizontal: 1.0, vertical: 1.0 };
    let nhwc = TensorLayout::Nhwc;
    vec![
        (frame(gray, 13, 9, 0), to_gray(Pipeline::new())),
        (frame(gray, 13, 9, 3), Pipeline::imagenet().with_resize(exact(5, 7))),
        (frame(rgb, 31, 17, 0), Pipeline::imagenet_train(24)),
        (frame(rgb, 6, 7, 5), Pipeline { jitter, ..Pipeline::imagenet_train(33) }),
        (frame(bgr, 20, 31, 7), Pipeline::yolo(33).with_dtype(TensorType::F16)),
        (frame(bgra, 45, 80, 12), Pipeline::imagenet().with_resize(letterbox(Anchor::Center))),
        (frame(bgra, 20, 12, 3), to_bgr(Pipeline::new().with_resize(letterbox(Anchor::TopLeft)))),
        (
            frame(rgba, 30, 41, 0),
            Pipeline::new()
                .with_resize(exact(11, 13))
                .with_filter(Filter::Bicubic, true)
                .with_layout(nhwc)
                .with_dtype(TensorType::F16),
        ),
        (
            frame(PixelFormat::Nv12(Yuv::BT709), 17, 23, 0),
            Pipeline::minus_one_to_one()
                .with_resize(exact(24, 20))
                .with_filter(Filter::Bicubic, false)
                .with_dtype(TensorType::U8(quantized(0.01, 128))),
        ),
        (
            frame(PixelFormat::I420(Yuv::JPEG), 18, 20, 8),
            Pipeline {
                center_crop: Some((6, 12)),
                ..Pipeline::imagenet()
                    .with_resize(Resize::ShorterSide(8))
                    .with_layout(nhwc)
                    .with_dtype(TensorType::I8(quantized(0.02, -5)))
            },
        ),
        (frame(PixelFormat::Nv12(Yuv::BT601), 9, 14, 2), to_bgr(Pipeline::new()).with_layout(nhwc)),
        (
            frame(PixelFormat::I420(yuv), 15, 11, 0),
            Pipeline {
                orientation: Orientation::Transverse,
                ..to_gray(Pipeline::new()).with_resize(exact(22, 6)).with_dtype(TensorType::Bf16)
            },
        ),
        (
            frame(rgb, 10, 21, 0),
            Pipeline {
                orientation: Orientation::Rotate90,
                flip: every_time,
                ..Pipeline::new().with_resize(exact(30, 7)).with_filter(Filter::Nearest, false)
            },
        ),
        (
            frame(rgba, 20, 17, 0),
            Pipeline {
                jitter,
                ..Pipeline::zero_to_255()
                    .with_crop(rect)
                    .with_resize(exact(8, 6))
                    .with_layout(nhwc)
                    .with_dtype(TensorType::U8(quantized(1.0, 0)))
            },
        ),
        (
            frame(bgr, 12, 15, 0),
            Pipeline {
                center_crop: Some((15, 9)),
                fill: [1.0, 2.0, 3.0],
                ..Pipeline::imagenet().with_dtype(TensorType::I8(quantized(0.03, 3)))
            },
        ),
        (frame(rgb, 8, 8, 0), Pipeline::opencv(4, 6).with_dtype(TensorType::Bf16)),
    ]
}

fn options(strategy: Strategy, pipeline: &Pipeline) -> LoaderOptions {
    LoaderOptions {
        batch_size: BATCH,
        seed: Some(11),
        workers: 2,
        strategy: Some(strategy),
        preprocess: pipeline.clone().into(),
        fingerprints: true,
        ..LoaderOptions::default()
    }
}

fn bytes_of(source: &dyn Source, index: u64) -> Vec<u8> {
    let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
    source.read(&SampleContext::of(index), &mut sample.writer()).expect("it can be read");
    sample.bytes(0).expect("the first field").to_vec()
}

/// Every sample of an epoch is within the oracle's bound.
fn check_epoch<B: TestDevice>(
    backend: &B,
    options: LoaderOptions,
    layout: &SampleLayout,
    pipeline: &Pipeline,
    samples: usize,
) {
    let source = Arc::new(random_images(layout.clone(), samples, 3).expect("frames"));
    let oracle = PipelineOracle::new(pipeline, layout).expect("it fits");
    let mut loader = Loader::new(backend, Arc::clone(&source), options).expect("it opens");
    let mut seen = 0;
    for batch in loader.epoch(1) {
        let batch = batch.expect("it can be read");
        assert_eq!(batch.desc().quantization, pipeline.dtype.quantization());
        let tensor = batch.read().expect("it can be read back");
        let each = tensor.len() / batch.len();
        let fingerprints = batch.fingerprints().expect("it can be read back").expect("they were asked for");
        for (position, (&index, tensor)) in batch.indices().iter().zip(tensor.chunks_exact(each)).enumerate() {
            let geometry = batch.geometry(position).expect("there is a pipeline");
            let worst = oracle.worst(&geometry, &bytes_of(&*source, index), tensor).expect("as long as it should be");
            assert!(worst <= 1.0, "{layout}, {pipeline:?}: {worst} of the bound\n{geometry:?}");
            let record: Vec<u8> = geometry.words().iter().flat_map(|word| word.to_ne_bytes()).collect();
            let fields = [fingerprint(&bytes_of(&*source, index)), fingerprint(&record)];
            assert_eq!(fingerprints[position], sample_fingerprint(&fields), "{layout}");
        }
        assert_eq!(batch.geometry(batch.len()), None);
        seen += batch.len();
    }
    assert_eq!(seen, samples);
}

pub fn every_format_filter_type_and_layout_is_within_its_bound<B: TestDevice>(backend: &B, strategy: Strategy) {
    for (layout, pipeline) in cases() {
        check_epoch(backend, options(strategy, &pipeline), &layout, &pipeline, SAMPLES);
    }
}

/// More bytes than a device of small bindings binds at once, of frames and of tensors.
pub fn batches_in_parts_are_whole<B: TestDevice>(backend: &B, strategy: Strategy) {
    let layout = frame(PixelFormat::Rgb8, 16, 16, 0);
    for dtype in [TensorType::F32, TensorType::U8(quantized(0.02, 128))] {
        let pipeline = Pipeline::imagenet_train(8).with_dtype(dtype);
        let options = LoaderOptions { batch_size: 64, ..options(strategy, &pipeline) };
        check_epoch(backend, options, &layout, &pipeline, 100);
    }
}

/// Enough pixels for tiles of as many rows as there can be, with more than one each way.
pub fn a_batch_of_many_tiles_is_within_its_bound<B: TestDevice>(backend: &B, strategy: Strategy) {
    let layout = frame(PixelFormat::Rgb8, 12, 12, 0);
    let pipeline = Pipeline::imagenet_train(34);
    let options = LoaderOptions { batch_size: 256, ..options(strategy, &pipeline) };
    check_epoch(backend, options, &layout, &pipeline, 256);
}

fn words(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&word| f32::from_ne_bytes(word)).collect()
}

pub fn the_geometry_of_a_sample_is_that_of_its_seed_alone<B: TestDevice>(backend: &B, strategy: Strategy) {
    let (layout, pipeline) = (frame(PixelFormat::Rgb8, 31, 17, 0), Pipeline::imagenet_train(8));
    let source = Arc::new(random_images(layout.clone(), 20, 3).expect("frames"));
    let frame = layout.as_frame().expect("a frame");
    for workers in [1, 4] {
        let options = LoaderOptions { workers, ..options(strategy, &pipeline) };
        let mut loader = Loader::new(backend, Arc::clone(&source), options).expect("it opens");
        for batch in loader.epochs(0..2) {
            let batch = batch.expect("it can be read");
            let desc = batch.field(GEOMETRY).expect("it is on the device too");
            assert_eq!(desc.shape.as_slice(), [batch.len(), Geometry::WORDS]);
            batch.wait().expect("the device is there");
            let on_device = words(&batch.tensor().read(&desc).expect("it can be read back"));
            for (position, (&index, words)) in batch.indices().iter().zip(on_device.chunks(Geometry::WORDS)).enumerate()
            {
                let sample = SampleContext::of(index).in_epoch(batch.epoch()).with_seed(11);
                let expected = pipeline.geometry(&frame, sample.random_seed()).expect("it fits");
                assert_eq!(batch.geometry(position), Some(expected));
                assert_eq!(words, expected.words());
            }
        }
    }
}

pub fn pushed_frames_tell_their_geometry<B: TestDevice>(backend: &B, strategy: Strategy) {
    let layout = frame(PixelFormat::Nv12(Yuv::BT709), 18, 32, 4);
    let pipeline = Pipeline::yolo(16);
    let options = FeederOptions {
        batch_size: 2,
        strategy: Some(strategy),
        preprocess: pipeline.clone().into(),
        ..FeederOptions::default()
    };
    let mut feeder = Feeder::new(backend, layout.clone(), options).expect("the feeder opens");
    let oracle = PipelineOracle::new(&pipeline, &layout).expect("it fits");
    let bytes: Vec<u8> = (0..layout.byte_len()).map(|at| (at * 37 % 251) as u8).collect();
    for frames in [1, 2, 2] {
        let batch = feeder.feed(&vec![&bytes; frames]).expect("it is sent");
        let tensor = batch.read().expect("it can be read back");
        for (position, tensor) in tensor.chunks_exact(tensor.len() / frames).enumerate() {
            let geometry = batch.geometry(position).expect("there is a pipeline");
            assert_eq!(geometry.box_to_frame([0.0, 3.0, 16.0, 12.0]), [0.0, 0.0, 32.0, 18.0]);
            assert!(oracle.worst(&geometry, &bytes, tensor).expect("as long as it should be") <= 1.0);
        }
    }
}

/// The image is; its geometry is sent beside it, and a mask would be a second field.
pub fn a_mask_is_not_read_in_place<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mask = Field::frame("mask", PixelFormat::Gray8, 8, 8).expect("a field");
    let sample = SampleLayout::image(8, 8, 3).and_then(|sample| sample.with(mask)).expect("a sample");
    let preprocess = Preprocess::from(Pipeline::yolo(8).with_mask("mask", 0));
    let layout = BatchLayout::new(preprocess.staged(&sample).expect("it fits"), BATCH).expect("a batch");
    let memory = Arc::new(HostArena::new(1 << 12, |_| {}).expect("a little memory"));
    let spec = LaneSpec { memory: Some(memory), ..LaneSpec::new(layout, preprocess, strategy) };
    let refused = backend.open_lane(&spec).err().expect("two fields");
    assert!(matches!(&refused, OpenError::Unsupported(why) if why.reason.contains("these have 2")), "{refused}");
}

/// A list that is not one of the batch's samples costs that batch only.
pub fn samples_without_a_geometry_are_refused<B: TestDevice>(backend: &B, strategy: Strategy) {
    let (sample, preprocess) = (frame(PixelFormat::Rgb8, 8, 8, 0), Preprocess::from(Pipeline::yolo(8)));
    let layout = BatchLayout::new(preprocess.staged(&sample).expect("it fits"), BATCH).expect("a batch");
    let memory = Arc::new(HostArena::new(1 << 12, |_| {}).expect("a little memory"));
    let spec = LaneSpec { memory: Some(memory), ..LaneSpec::new(layout, preprocess, strategy) };
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let mut output = lane.output().expect("an output");
    let record = [[0.0; Geometry::WORDS]; 2];
    for (offsets, records) in [(&[0u64, 192][..], &record[..1]), (&[0], &record), (&[0], &[]), (&[], &record[..1])] {
        let rejected = lane.submit(Input::Direct { offsets, records }, 1, output).expect_err("the lists differ");
        assert!(rejected.error.to_string().contains("geometries"), "{}", rejected.error);
        output = rejected.tensor;
    }
    let sent = lane.submit(Input::Direct { offsets: &[192], records: &record[..1] }, 1, output).expect("it is sent");
    sent.tensor.wait().expect("the device is there");
}
