//! The contract of samples with several fields.

use std::sync::Arc;

use gpufeed::preprocess::{fingerprint, sample_fingerprint};
use gpufeed::{
    BadSamples, Batch, Element, Feeder, FeederOptions, Field, Loader, LoaderOptions, Normalize, OpenError, Preprocess,
    SampleBuffer, SampleContext, SampleLayout, SampleWriter, Source, SourceError, Strategy, Tolerance,
};

use crate::device::TestDevice;
use crate::loaders::{check_normalised, options};

const SAMPLES: u64 = 11;
/// The one that cannot be read where any cannot.
const BAD: u64 = 6;

/// Pictures whose other fields all follow from the index. Their sizes are odd, so that nothing lies aligned by chance.
struct Segmented {
    layout: SampleLayout,
    bad: Option<u64>,
}

impl Segmented {
    fn new(bad: Option<u64>) -> Arc<Self> {
        let fields = [
            Field::image("image", 5, 7, 3),
            Field::array("label", Element::I64, &[]).map(Field::on_host),
            Field::array("mask", Element::Bool, &[5, 7]),
            Field::array("boxes", Element::F32, &[2, 4]).map(Field::on_host),
            Field::array("depth", Element::U16, &[3]),
            Field::array("weight", Element::I64, &[]),
        ];
        let fields: Result<Vec<_>, _> = fields.into_iter().collect();
        Arc::new(Self { layout: fields.and_then(SampleLayout::new).expect("a sample"), bad })
    }
}

fn mask(index: u64) -> Vec<u8> {
    (0..35).map(|at| u8::from((at + index).is_multiple_of(3))).collect()
}

fn boxes(index: u64) -> Vec<f32> {
    (0..8).map(|at| index as f32 + 0.25 * at as f32).collect()
}

fn depth(index: u64) -> Vec<u16> {
    (0..3).map(|at| 1000 * index as u16 + at).collect()
}

impl Source for Segmented {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        SAMPLES
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = sample.index;
        // In no particular order, and a field in turns.
        out.field("weight")?.value(-(index as i64))?;
        out.field("mask")?.write(&mask(index)[..10])?;
        out.label(index as i64 * 3 - 5)?;
        let image: Vec<u8> = (0..105).map(|at| (at * 7 + index * 31) as u8).collect();
        out.write(&image)?;
        if self.bad == Some(index) {
            return Err("this one is damaged".into());
        }
        out.field("mask")?.write(&mask(index)[10..])?;
        out.field("boxes")?.values(&boxes(index))?;
        out.field(4)?.values(&depth(index))?;
        Ok(())
    }
}

/// Everything that a batch holds is what the source wrote.
fn check<B: TestDevice>(source: &Segmented, batch: &Batch<B>, normalize: Option<&Normalize>) {
    let indices = batch.indices();
    let expected = |of: &dyn Fn(u64) -> Vec<u8>| indices.iter().flat_map(|&index| of(index)).collect::<Vec<u8>>();
    match normalize {
        Some(normalize) => check_normalised(source, normalize, batch),
        None => assert_eq!(batch.read().expect("read"), crate::loaders::batch_bytes(source, batch)),
    }
    let read = |field: &str| batch.read_field(field).expect("read").expect("on the device");
    assert_eq!(read("image"), batch.read().expect("read"));
    assert_eq!(read("mask"), expected(&mask), "{indices:?}");
    assert_eq!(read("depth"), expected(&|index| depth(index).iter().flat_map(|one| one.to_ne_bytes()).collect()));
    assert_eq!(read("weight"), expected(&|index| (-(index as i64)).to_ne_bytes().to_vec()));
    let tensor = batch.field("mask").expect("on the device");
    assert_eq!((tensor.shape.as_slice(), tensor.dtype), (&[indices.len(), 5, 7][..], Element::Bool));
    assert_eq!(batch.read_field("boxes").expect("no device is asked"), None, "it is on the host");
    let labels: Vec<i64> = indices.iter().map(|&index| index as i64 * 3 - 5).collect();
    assert_eq!((batch.labels().as_deref(), batch.host_field("label")), (Some(&labels[..]), Some(&labels[..])));
    let boxes: Vec<f32> = indices.iter().flat_map(|&index| boxes(index)).collect();
    assert_eq!(batch.host_field("boxes"), Some(&boxes[..]));
    assert_eq!((batch.host_field::<u16>("boxes"), batch.host_field::<f32>("none")), (None, None));
}

fn preprocessing() -> [Option<Normalize>; 2] {
    [None, Some(Normalize::imagenet())]
}

/// The fingerprint of a sample's fields on the device.
fn on_device(source: &dyn Source, index: u64) -> u64 {
    let mut sample = SampleBuffer::new(source.layout()).expect("a little memory");
    source.read(&SampleContext::of(index), &mut sample.writer()).expect("it is read");
    let fields = ["image", "mask", "depth", "weight"];
    sample_fingerprint(&fields.map(|field| fingerprint(sample.bytes(field).expect("there"))))
}

pub fn every_field_of_a_sample_arrives<B: TestDevice>(backend: &B, strategy: Strategy) {
    for normalize in preprocessing() {
        let preprocess = normalize.clone().map_or(Preprocess::Raw, Preprocess::from);
        let options =
            LoaderOptions { batch_size: 4, seed: Some(7), fingerprints: true, preprocess, ..options(strategy) };
        let source = Segmented::new(None);
        let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
        let planned = loader.footprint();
        for epoch in 0..3 {
            let mut seen = Vec::new();
            for batch in loader.epoch(epoch) {
                let batch = batch.expect("no error");
                check(&source, &batch, normalize.as_ref());
                let sums = batch.fingerprints().expect("read").expect("asked for");
                let right: Vec<u64> = batch.indices().iter().map(|&index| on_device(&*source, index)).collect();
                assert_eq!(sums, right);
                let weights = batch.field_fingerprints("weight").expect("read").expect("on the device");
                let weight = |index: u64| fingerprint(&(-(index as i64)).to_ne_bytes());
                assert!(batch.indices().iter().zip(weights).all(|(&index, sum)| sum == weight(index)));
                seen.extend_from_slice(batch.indices());
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..SAMPLES));
        }
        assert_eq!(loader.memory().expect("it runs").held, planned);
    }
}

pub fn bad_samples_cost_none_of_the_others_fields<B: TestDevice>(backend: &B, strategy: Strategy) {
    let tolerance = Tolerance::Count(1);
    for (policy, most) in [(BadSamples::Skip(tolerance), SAMPLES - 1), (BadSamples::Substitute(tolerance), SAMPLES)] {
        let options = LoaderOptions { batch_size: 4, seed: Some(1), bad_samples: policy, ..options(strategy) };
        let source = Segmented::new(Some(BAD));
        let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
        let mut seen = 0;
        for batch in loader.epoch(0) {
            let batch = batch.expect("no error");
            assert!(!batch.indices().contains(&BAD));
            check(&source, &batch, None);
            seen += batch.len() as u64;
        }
        assert_eq!(seen, most);
    }
}

fn pushed(strategy: Strategy) -> FeederOptions {
    FeederOptions { batch_size: 2, strategy: Some(strategy), ..FeederOptions::default() }
}

pub fn frames_with_several_fields_are_pushed_whole<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = Segmented::new(None);
    let frame = source.layout().without_host();
    let options = pushed(strategy);
    let mut feeder = Feeder::new(backend, frame.clone(), options).expect("the feeder opens");
    let frames: Vec<Vec<u8>> = (0..3)
        .map(|index| {
            let mut sample = SampleBuffer::new(source.layout()).expect("a little memory");
            source.read(&SampleContext::of(index), &mut sample.writer()).expect("it is read");
            frame.fields().iter().flat_map(|field| sample.bytes(field.name()).expect("there").to_vec()).collect()
        })
        .collect();
    for pushed in [&frames[..2], &frames[2..]] {
        let batch = feeder.feed(pushed).expect("it is sent");
        for field in ["image", "mask", "depth", "weight"] {
            let sent: Vec<u8> =
                batch.indices().iter().flat_map(|&index| part(&frame, field, &frames[index as usize])).collect();
            assert_eq!(batch.read_field(field).expect("read"), Some(sent), "{field}");
        }
    }
}

/// A field's bytes of a frame.
fn part(frame: &SampleLayout, name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes;
    for field in frame.fields() {
        let (own, others) = rest.split_at(field.byte_len());
        if field.name() == name {
            return own.to_vec();
        }
        rest = others;
    }
    panic!("no field {name}")
}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub fn several_fields_are_not_read_in_place<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mask = Field::array("mask", Element::U8, &[3]).expect("a field");
    let layout = SampleLayout::bytes(&[5]).and_then(|sample| sample.with(mask)).expect("a sample");
    let refused = Loader::new(backend, crate::loaders::pattern(layout, 3), options(strategy)).err();
    let Some(OpenError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.reason, "it reads one field of each sample in place, and these have 2 on the device");
}
