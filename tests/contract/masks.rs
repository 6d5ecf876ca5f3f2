//! Masks share the image's geometry, pixel for pixel, held against the oracle.

use std::sync::Arc;

use gpufeed::layout::{Field, PixelFormat, SampleLayout, Yuv};
use gpufeed::preprocess::{PipelineOracle, fingerprint, sample_fingerprint};
use gpufeed::staging::SampleBuffer;
use gpufeed::{
    Batch, Crop, Element, Feeder, FeederOptions, Flip, Loader, LoaderOptions, Mask, OpenError, Orientation, Pipeline,
    Resize, SampleContext, SampleWriter, Source, SourceError, Strategy, TensorType,
};

use crate::device::TestDevice;

const SAMPLES: u64 = 7;
const BATCH: usize = 3;

/// What a detector is trained with: frames, boxes of any number, and two masks that lie unaligned, one of padded rows.
struct Detection {
    layout: SampleLayout,
}

impl Detection {
    fn new(format: PixelFormat, height: usize, width: usize) -> Arc<Self> {
        let gray = |name| Field::frame(name, PixelFormat::Gray8, height, width);
        let fields = [
            Field::frame("image", format, height, width),
            gray("classes"),
            Field::ragged("boxes", Element::F32, 4, &[4]).map(Field::on_host),
            Field::array("weight", Element::U8, &[3]),
            gray("instances").and_then(|field| field.with_pitch(width + 3)),
        ];
        let fields: Result<Vec<_>, _> = fields.into_iter().collect();
        Arc::new(Self { layout: fields.and_then(SampleLayout::new).expect("a sample") })
    }
}

fn bytes(index: u64, field: u64, count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| ((at * 37 + index * 101 + field * 59) % 251) as u8).collect()
}

impl Source for Detection {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        SAMPLES
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        for (number, field) in self.layout.fields().iter().enumerate() {
            if field.is_ragged() {
                let corners: Vec<f32> = (0..4 * (sample.index % 4)).map(|at| at as f32).collect();
                out.field(number)?.values(&corners)?;
            } else if field.byte_len() > 0 {
                out.field(number)?.write(&bytes(sample.index, number as u64, field.byte_len()))?;
            }
        }
        Ok(())
    }
}

/// The bytes of a sample's fields.
fn sample(source: &Detection, index: u64) -> SampleBuffer {
    let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
    source.read(&SampleContext::of(index), &mut sample.writer()).expect("it can be read");
    sample
}

/// Random crops, flips, turns and letterboxes, from odd sizes to tensors that are whole words and that are not.
fn cases() -> Vec<(PixelFormat, (usize, usize), Pipeline)> {
    let masks = |pipeline: Pipeline| pipeline.with_mask("classes", 255).with_mask("instances", 0);
    let flip = Flip { horizontal: 0.5, vertical: 0.5 };
    let turned = Pipeline { orientation: Orientation::Rotate90, flip, ..Pipeline::imagenet_train(9) };
    let cut = Pipeline { center_crop: Some((15, 9)), ..Pipeline::new().with_dtype(TensorType::F16) };
    let exact = Resize::Exact { height: 8, width: 12 };
    vec![
        (PixelFormat::Rgb8, (13, 9), masks(Pipeline::imagenet_train(16))),
        (PixelFormat::Bgr8, (31, 17), masks(turned)),
        (PixelFormat::Bgra8, (10, 21), masks(Pipeline::yolo(13))),
        (PixelFormat::Nv12(Yuv::BT709), (12, 7), masks(cut)),
        (PixelFormat::Gray8, (7, 5), masks(Pipeline::new().with_crop(Crop::RANDOM).with_resize(exact))),
    ]
}

fn options(strategy: Strategy, pipeline: &Pipeline) -> LoaderOptions {
    LoaderOptions {
        batch_size: BATCH,
        seed: Some(5),
        workers: 2,
        strategy: Some(strategy),
        fingerprints: true,
        preprocess: pipeline.clone().into(),
        ..LoaderOptions::default()
    }
}

/// Image and masks are what the oracle makes of the sample, and what was not named is as it was.
fn check<B: TestDevice>(source: &Detection, pipeline: &Pipeline, batch: &Batch<B>) {
    let image = PipelineOracle::new(pipeline, &source.layout).expect("it fits");
    let masks = PipelineOracle::masks(pipeline, &source.layout).expect("they fit");
    assert_eq!(masks.len(), 2);
    let (_, size) = batch.shape().split_at(batch.shape().len() - 2);
    let tensor = batch.read().expect("it can be read back");
    let each = tensor.len() / batch.len();
    for (position, (&index, tensor)) in batch.indices().iter().zip(tensor.chunks_exact(each)).enumerate() {
        let (sample, geometry) = (sample(source, index), batch.geometry(position).expect("there is a pipeline"));
        let bytes = |field| sample.bytes(field).expect("it was written");
        assert!(image.worst(&geometry, bytes(0), tensor).expect("as long as it should be") <= 1.0);
        for (field, oracle) in &masks {
            let desc = batch.field(*field).expect("on the device");
            assert_eq!((desc.dtype, desc.quantization), (Element::U8, None));
            assert_eq!(desc.shape.as_slice(), [&[batch.len()], size].concat());
            let tensor = batch.read_field(*field).expect("it can be read back").expect("on the device");
            let tensor = tensor.chunks_exact(tensor.len() / batch.len()).nth(position).expect("of every sample");
            let expected = oracle.expected(&geometry, bytes(*field)).expect("a mask");
            let expected: Vec<u8> = expected.iter().map(|value| value.value.round() as u8).collect();
            assert_eq!(tensor, expected, "field {field} of sample {index}: {pipeline:?}\n{geometry:?}");
        }
        let weight = batch.read_field("weight").expect("it can be read back").expect("on the device");
        assert_eq!(weight[3 * position..][..3], *bytes(3));
    }
}

pub fn masks_share_the_geometry_of_their_image<B: TestDevice>(backend: &B, strategy: Strategy) {
    for (format, (height, width), pipeline) in cases() {
        let source = Detection::new(format, height, width);
        let mut loader = Loader::new(backend, Arc::clone(&source), options(strategy, &pipeline)).expect("it opens");
        let mut seen = 0;
        for batch in loader.epoch(1) {
            let batch = batch.expect("it can be read");
            check(&source, &pipeline, &batch);
            // Of the bytes that arrived, whatever was made of them; the record is the last of the fields.
            let got = batch.fingerprints().expect("it can be read back").expect("they were asked for");
            for (position, &index) in batch.indices().iter().enumerate() {
                let (sample, geometry) = (sample(&source, index), batch.geometry(position).expect("a pipeline"));
                let mut fields: Vec<_> = [0, 1, 3, 4].map(|at| fingerprint(sample.bytes(at).expect("written"))).into();
                let record: Vec<u8> = geometry.words().iter().flat_map(|word| word.to_ne_bytes()).collect();
                fields.push(fingerprint(&record));
                assert_eq!(got[position], sample_fingerprint(&fields));
            }
            seen += batch.len() as u64;
        }
        assert_eq!(seen, SAMPLES);
    }
}

/// More bytes than a device of small bindings binds at once.
pub fn masks_in_parts_are_whole<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = Detection::new(PixelFormat::Rgb8, 32, 32);
    let pipeline = Pipeline::imagenet_train(24).with_mask("classes", 255).with_mask("instances", 0);
    let options = LoaderOptions { batch_size: SAMPLES as usize, fingerprints: false, ..options(strategy, &pipeline) };
    let mut loader = Loader::new(backend, Arc::clone(&source), options).expect("it opens");
    loader.epoch(0).for_each(|batch| check(&source, &pipeline, &batch.expect("it can be read")));
}

pub fn pushed_masks_share_the_geometry_of_their_frame<B: TestDevice>(backend: &B, strategy: Strategy) {
    let (format, (height, width), pipeline) = cases().swap_remove(2);
    let source = Detection::new(format, height, width);
    let options = FeederOptions {
        batch_size: 2,
        strategy: Some(strategy),
        preprocess: pipeline.clone().into(),
        ..FeederOptions::default()
    };
    let mut feeder = Feeder::new(backend, source.layout(), options).expect("the feeder opens");
    let mut fed = 0;
    for frames in [2, 1, 2] {
        let batch = feeder.feed_with(frames, |out| {
            let index = fed + out.position() as u64;
            for (number, field) in source.layout.fields().iter().enumerate().filter(|(_, field)| !field.is_ragged()) {
                out.field(number)?.write(&bytes(index, number as u64, field.byte_len()))?;
            }
            Ok::<_, SourceError>(())
        });
        check(&source, &pipeline, &batch.expect("it is sent"));
        fed += frames as u64;
    }
}

pub fn masks_that_do_not_fit_are_named<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = Detection::new(PixelFormat::Rgb8, 6, 5);
    let refused = |masks: &[&str]| {
        let masks = masks.iter().map(|&field| Mask { field: field.to_owned(), fill: 0 }).collect();
        let pipeline = Pipeline { masks, ..Pipeline::yolo(8) };
        match Loader::new(backend, Arc::clone(&source), options(strategy, &pipeline)).err() {
            Some(OpenError::Layout(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&["nothing"]), "masks: field `nothing` is not one of the sample's");
    assert_eq!(refused(&["image"]), "masks: field `image` is the image itself");
    assert_eq!(refused(&["classes", "classes"]), "masks: field `classes` is named twice");
    assert!(refused(&["weight"]).contains("no Gray8 frames"));
    let other = SampleLayout::new([
        Field::image("image", 6, 5, 3).expect("a field"),
        Field::image("mask", 5, 6, 1).expect("a field"),
    ]);
    let error = Pipeline::yolo(8).with_mask("mask", 0).validate(&other.expect("a sample")).expect_err("another size");
    assert_eq!(error.to_string(), "masks: field `mask` is of 6x5 pixels, and the image of 5x6");
}
