//! The contract of fields of which each sample has its own number of rows.

use std::sync::Arc;

use gpufeed::preprocess::{fingerprint, sample_fingerprint};
use gpufeed::{
    BadSamples, Batch, Element, FeedError, Feeder, FeederOptions, Field, LoadError, Loader, LoaderOptions, Normalize,
    Preprocess, SampleContext, SampleLayout, SampleWriter, Source, SourceError, Strategy, Tolerance,
};

use crate::device::TestDevice;
use crate::loaders::options;

const SAMPLES: u64 = 23;
const MOST_BOXES: usize = 5;
const MOST_TOKENS: usize = 9;
/// Of the field `name`.
const MOST_BYTES: usize = 12;

/// What is wrong with sample 6.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    HalfABox,
    TooManyTokens,
}

/// Pictures with boxes and a mask, and as many tokens and letters as the index says.
struct Detections {
    layout: SampleLayout,
    fault: Fault,
}

impl Detections {
    fn new(fault: Fault) -> Arc<Self> {
        let fields = [
            Field::image("image", 5, 7, 3),
            Field::ragged("boxes", Element::F32, MOST_BOXES, &[4]),
            Field::ragged("name", Element::U8, MOST_BYTES, &[]).map(Field::on_host),
            Field::array("mask", Element::Bool, &[5, 7]),
            Field::ragged("tokens", Element::I64, MOST_TOKENS, &[]),
            Field::ragged("label", Element::U16, MOST_BOXES, &[]).map(Field::on_host),
        ];
        let fields: Result<Vec<_>, _> = fields.into_iter().collect();
        Arc::new(Self { layout: fields.and_then(SampleLayout::new).expect("a sample"), fault })
    }
}

fn boxes(index: u64) -> Vec<f32> {
    (0..index * 7 % 6 * 4).map(|at| index as f32 + 0.5 * at as f32).collect()
}

fn tokens(index: u64) -> Vec<i64> {
    (0..index * 3 % 10).map(|at| (index * 1000 + at) as i64 - 7).collect()
}

fn name(index: u64) -> Vec<u8> {
    (0..index * 5 % 13).map(|at| b'a' + ((index + at) % 26) as u8).collect()
}

fn classes(index: u64) -> Vec<u16> {
    (0..index * 7 % 6).map(|at| (index * 10 + at) as u16).collect()
}

fn mask(index: u64) -> Vec<u8> {
    (0..35).map(|at| u8::from((at + index).is_multiple_of(3))).collect()
}

fn image(index: u64) -> Vec<u8> {
    (0..105).map(|at| (at * 7 + index * 31) as u8).collect()
}

impl Source for Detections {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        SAMPLES
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = sample.index;
        let fault = if index == 6 { self.fault } else { Fault::None };
        // In no particular order, and a field in turns.
        let (first, rest) = (&tokens(index), &boxes(index));
        out.field("tokens")?.values(&first[..first.len() / 2])?;
        out.field("boxes")?.values(if fault == Fault::HalfABox { &[1.0; 2] } else { rest.as_slice() })?;
        out.write(&image(index))?;
        out.field("tokens")?.values(&first[first.len() / 2..])?;
        out.field("mask")?.write(&mask(index))?;
        out.field("name")?.write(&name(index))?;
        out.field("label")?.values(&classes(index))?;
        if fault == Fault::TooManyTokens {
            out.field("tokens")?.values(&[1i64; MOST_TOKENS + 1])?;
        }
        Ok(())
    }
}

/// The bytes of a ragged sample on the device.
fn padded<T: bytemuck::Pod>(rows: &[T], most: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = bytemuck::cast_slice(rows).to_vec();
    bytes.resize(most * size_of::<T>(), 0);
    bytes
}

fn ends(indices: &[u64], rows: impl Fn(u64) -> usize) -> Vec<i32> {
    let mut end = 0;
    let ends = indices.iter().map(|&index| {
        end += rows(index) as i32;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Everything that a batch holds of its ragged fields is what the source wrote, and nothing of the batch before.
fn check<B: TestDevice>(batch: &Batch<B>) {
    let indices = batch.indices();
    let all = |of: &dyn Fn(u64) -> Vec<u8>| indices.iter().flat_map(|&index| of(index)).collect::<Vec<u8>>();
    let read = |field: &str| batch.read_field(field).expect("read").expect("on the device");
    assert_eq!(read("boxes"), all(&|index| padded(&boxes(index), MOST_BOXES * 4)), "{indices:?}");
    assert_eq!(read("tokens"), all(&|index| padded(&tokens(index), MOST_TOKENS)), "{indices:?}");
    assert_eq!(read("mask"), all(&mask));
    let length = |rows: usize| (rows as i32).to_ne_bytes().to_vec();
    assert_eq!(read("boxes.lengths"), all(&|index| length(boxes(index).len() / 4)));
    assert_eq!(read("tokens.lengths"), all(&|index| length(tokens(index).len())));
    let tensor = batch.field("boxes").expect("on the device");
    assert_eq!((tensor.shape.as_slice(), tensor.dtype), (&[indices.len(), MOST_BOXES, 4][..], Element::F32));
    assert_eq!(batch.offsets("boxes"), Some(&ends(indices, |index| boxes(index).len() / 4)[..]));
    assert_eq!(batch.offsets("tokens"), Some(&ends(indices, |index| tokens(index).len())[..]));
    assert_eq!(batch.offsets("name"), Some(&ends(indices, |index| name(index).len())[..]));
    assert_eq!((batch.offsets("mask"), batch.offsets("none")), (None, None));
    assert_eq!(batch.host_field("name"), Some(&all(&name)[..]));
    for (position, &index) in indices.iter().enumerate() {
        assert_eq!(batch.ragged("name", position), Some(&name(index)[..]));
        assert_eq!(batch.ragged("label", position), Some(&classes(index)[..]));
    }
    assert_eq!((batch.ragged::<u16>("label", indices.len()), batch.ragged::<f32>("boxes", 0)), (None, None));
    assert_eq!(batch.labels(), None, "they are not one a sample");
}

/// What a field of a sample is on the device.
type BytesOf<'a> = &'a dyn Fn(u64) -> Vec<u8>;

/// The device's fingerprints are those of each field as it was delivered.
fn check_fingerprints<B: TestDevice>(batch: &Batch<B>) {
    let indices = batch.indices();
    let fields: [(&str, BytesOf<'_>); 6] = [
        ("image", &image),
        ("boxes", &|index| padded(&boxes(index), MOST_BOXES * 4)),
        ("mask", &mask),
        ("tokens", &|index| padded(&tokens(index), MOST_TOKENS)),
        ("boxes.lengths", &|index| ((boxes(index).len() / 4) as i32).to_ne_bytes().to_vec()),
        ("tokens.lengths", &|index| (tokens(index).len() as i32).to_ne_bytes().to_vec()),
    ];
    for (field, bytes) in fields {
        let right: Vec<u64> = indices.iter().map(|&index| fingerprint(&bytes(index))).collect();
        assert_eq!(batch.field_fingerprints(field).expect("read"), Some(right), "{field}");
    }
    let of = |index| sample_fingerprint(&fields.map(|(_, bytes)| fingerprint(&bytes(index))));
    let right: Vec<u64> = indices.iter().map(|&index| of(index)).collect();
    assert_eq!(batch.fingerprints().expect("read"), Some(right));
    assert_eq!(batch.field_fingerprints("name").expect("no device is asked"), None, "it is on the host");
}

pub fn every_sample_has_its_own_number_of_rows<B: TestDevice>(backend: &B, strategy: Strategy) {
    for preprocess in [Preprocess::Raw, Normalize::imagenet().into()] {
        let options = LoaderOptions {
            batch_size: 4,
            workers: 3,
            seed: Some(7),
            fingerprints: true,
            preprocess,
            ..options(strategy)
        };
        let mut loader = Loader::new(backend, Detections::new(Fault::None), options).expect("the loader opens");
        let planned = loader.footprint();
        for epoch in 0..3 {
            let mut seen = Vec::new();
            for batch in loader.epoch(epoch) {
                let batch = batch.expect("no error");
                check(&batch);
                check_fingerprints(&batch);
                seen.extend_from_slice(batch.indices());
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..SAMPLES));
        }
        assert_eq!(loader.memory().expect("it runs").held, planned);
    }
}

pub fn half_a_row_and_a_row_too_many_cost_their_batch_by_name<B: TestDevice>(backend: &B, strategy: Strategy) {
    for fault in [Fault::HalfABox, Fault::TooManyTokens] {
        let options = LoaderOptions { batch_size: 4, ..options(strategy) };
        let mut loader = Loader::new(backend, Detections::new(fault), options).expect("the loader opens");
        let (mut lost, mut whole) = (Vec::new(), 0);
        for batch in loader.epoch(0) {
            match batch {
                Ok(batch) => {
                    check(&batch);
                    whole += 1;
                }
                Err(error) => lost.push(error),
            }
        }
        assert_eq!(whole, 5, "the others arrive");
        match (fault, lost.pop()) {
            (Fault::HalfABox, Some(LoadError::ShortSample { index: 6, batch: 1, field, written: 8, expected: 16 })) => {
                assert_eq!(field, "boxes");
            }
            (Fault::TooManyTokens, Some(LoadError::Sample { index: 6, batch: 1, source })) => {
                let text = source.to_string();
                assert!(text.starts_with("field `tokens`: ") && text.ends_with("at most 9 rows of 8 bytes"), "{text}");
            }
            (_, other) => panic!("{other:?}"),
        }
    }
}

pub fn bad_samples_cost_none_of_the_others_rows<B: TestDevice>(backend: &B, strategy: Strategy) {
    let tolerance = Tolerance::Count(1);
    for (policy, most) in [(BadSamples::Skip(tolerance), SAMPLES - 1), (BadSamples::Substitute(tolerance), SAMPLES)] {
        for fault in [Fault::HalfABox, Fault::TooManyTokens] {
            let options = LoaderOptions { batch_size: 4, seed: Some(1), bad_samples: policy, ..options(strategy) };
            let mut loader = Loader::new(backend, Detections::new(fault), options).expect("the loader opens");
            let mut seen = 0;
            for batch in loader.epoch(0) {
                let batch = batch.expect("no error");
                assert!(!batch.indices().contains(&6));
                check(&batch);
                seen += batch.len() as u64;
            }
            assert_eq!(seen, most);
        }
    }
}

pub fn frames_of_tokens_are_pushed_as_long_as_they_are<B: TestDevice>(backend: &B, strategy: Strategy) {
    let tokens = Field::ragged("tokens", Element::I64, 4, &[]).expect("a field");
    let layout = SampleLayout::new([tokens]).expect("a frame");
    let options = FeederOptions { batch_size: 2, strategy: Some(strategy), slots: 1, ..FeederOptions::default() };
    let mut feeder = Feeder::new(backend, layout, options).expect("the feeder opens");
    let planned = feeder.footprint();
    // The first fills the slot, so that the second would show what is left of it.
    for pair in [[&[1i64, 2, 3, 4][..], &[5, 6, 7, 8]], [&[9], &[]]] {
        let batch = feeder.feed(&pair.map(bytemuck::cast_slice::<i64, u8>)).expect("it is sent");
        let right: Vec<u8> = pair.iter().flat_map(|tokens| padded(tokens, 4)).collect();
        assert_eq!(batch.read().expect("read"), right);
        let ends = [0, pair[0].len() as i32, (pair[0].len() + pair[1].len()) as i32];
        assert_eq!(batch.offsets("tokens"), Some(&ends[..]));
        let lengths = pair.map(|tokens| (tokens.len() as i32).to_ne_bytes()).concat();
        assert_eq!(batch.read_field("tokens.lengths").expect("read"), Some(lengths));
    }
    let refused = feeder.feed(&[[0u8; 12]]).err();
    assert!(matches!(refused, Some(FeedError::Length { frame: 0, got: 12, expected: 32 })), "{refused:?}");
    assert_eq!(feeder.memory().held, planned);
}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub fn rows_of_any_number_are_not_read_in_place<B: TestDevice>(backend: &B, strategy: Strategy) {
    let tokens = Field::ragged("tokens", Element::I64, 4, &[]).expect("a field");
    let source = Arc::new(InMemory(SampleLayout::new([tokens]).expect("a sample")));
    let refused = Loader::new(backend, source, options(strategy)).err();
    let Some(gpufeed::OpenError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.reason, "it reads samples of one size in place, and field `tokens` is ragged");
}

/// Claims to lie in memory.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
struct InMemory(SampleLayout);

#[cfg(any(feature = "wgpu", feature = "cuda"))]
impl Source for InMemory {
    fn layout(&self) -> SampleLayout {
        self.0.clone()
    }

    fn len(&self) -> u64 {
        4
    }

    fn read(&self, _: &SampleContext, _: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        Err("the device reads it".into())
    }

    fn direct(&self) -> Option<gpufeed::source::Direct> {
        let memory = gpufeed::HostArena::new(256, |_| {}).expect("a little memory");
        Some(gpufeed::source::Direct::new(Arc::new(memory), |index| index * 32))
    }
}
