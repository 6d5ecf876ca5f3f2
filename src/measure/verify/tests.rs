use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::backend::host::{Faults, HostBackend};
use crate::error::SourceError;
use crate::layout::{Element, Field, SampleLayout};
use crate::measure::outcome::Mismatch;
use crate::preprocess::{Flip, FloatType, Normalize, Pipeline, Preprocess, TensorLayout};
use crate::source::{SampleContext, random_images};
use crate::staging::SampleWriter;

const ALL: Extent = Extent { batches: u64::MAX, time: Duration::from_secs(600) };

fn images(samples: usize) -> Arc<dyn Source> {
    Arc::new(random_images(SampleLayout::image(7, 5, 3).expect("an image"), samples, 3).expect("in memory"))
}

fn options(preprocess: Preprocess) -> LoaderOptions {
    LoaderOptions { batch_size: 4, slots: 2, outputs: 2, workers: 2, seed: Some(5), preprocess, ..Default::default() }
}

fn run(source: &Arc<dyn Source>, options: &LoaderOptions, extent: Extent) -> Result<Verified, VerifyError> {
    verify(&HostBackend::new(), source, options, extent, None, &|| false).map(|checked| checked.verified)
}

/// Reads sample `index` differently after `honest` reads of it.
struct Fickle {
    inner: Arc<dyn Source>,
    index: u64,
    reads: AtomicU64,
    honest: u64,
}

impl Source for Fickle {
    fn layout(&self) -> SampleLayout {
        self.inner.layout()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let changed = sample.index == self.index && self.reads.fetch_add(1, Ordering::Relaxed) >= self.honest;
        if !changed {
            return self.inner.read(sample, out);
        }
        Ok(out.write(&vec![77; out.len()])?)
    }
}

#[test]
fn what_is_right_passes_in_every_form() {
    for layout in [TensorLayout::Nchw, TensorLayout::Nhwc] {
        for dtype in [FloatType::F32, FloatType::F16] {
            let normalize = Normalize::imagenet().with_layout(layout).with_dtype(dtype);
            let verified = run(&images(30), &options(normalize.into()), ALL).expect("right");
            assert_eq!(verified, Verified { batches: 8, samples: 30, tensors: 8 });
        }
    }
    assert_eq!(run(&images(30), &options(Preprocess::Raw), ALL).expect("right").samples, 30);
}

#[test]
fn the_extent_bounds_the_work_but_every_slot_is_used_again() {
    let short = Extent { batches: 1, time: Duration::ZERO };
    let options = options(Preprocess::Raw);
    assert_eq!(run(&images(400), &options, short).expect("right").batches, 6);
    assert_eq!(run(&images(400), &options, Extent { batches: 9, ..ALL }).expect("right").batches, 9);
}

#[test]
fn a_sample_that_differs_from_what_was_delivered_is_named() {
    let fickle = Fickle { inner: images(30), index: 17, reads: AtomicU64::new(0), honest: 1 };
    let fickle: Arc<dyn Source> = Arc::new(fickle);
    let error = run(&fickle, &options(Normalize::imagenet().into()), ALL).expect_err("changed in between");
    assert!(error.is_wrong_data());
    assert!(matches!(error, VerifyError::Wrong(Mismatch::Fingerprint { index: 17, .. })), "{error}");
    assert!(error.to_string().contains("sample 17"), "{error}");
}

#[test]
fn a_tensor_is_compared_value_by_value() {
    let pipeline = Pipeline { flip: Flip { horizontal: 0.5, vertical: 0.5 }, ..Pipeline::imagenet() };
    for preprocess in [Preprocess::Raw, Normalize::imagenet().into(), pipeline.into()] {
        let options = LoaderOptions { seed: None, ..options(preprocess) };
        let source = images(4);
        let mut checker = Checker::new(Arc::clone(&source), &options).expect("fits");
        checker.read(0, 0, &[2, 1]).expect("read");
        let mut loader =
            Loader::new(&HostBackend::new(), source, LoaderOptions { seed: None, batch_size: 3, ..options.clone() })
                .expect("a loader");
        let batch = loader.epoch(0).next().expect("a batch").expect("no error");
        let tensor = batch.read().expect("read back");
        let size = tensor.len() / 3;
        let (one, two) = (&tensor[size..2 * size], &tensor[2 * size..]);
        checker.tensor(0, &[two, one].concat()).expect("as expected");
        let swapped = checker.tensor(0, &[one, two].concat()).expect_err("another order");
        assert!(matches!(swapped, Mismatch::Value { index: 2, .. }), "{swapped}");
        let mut last = [two, one].concat();
        *last.last_mut().expect("bytes") ^= 0x55;
        let error = checker.tensor(0, &last).expect_err("the last value");
        assert!(matches!(error, Mismatch::Value { index: 1, element: 104, .. }), "{error}");
        let cut = checker.tensor(7, &last[1..]).expect_err("too short");
        assert!(matches!(cut, Mismatch::Length { batch: 7, .. }), "{cut}");
    }
}

#[test]
fn what_is_not_a_number_is_wrong() {
    let options = options(Normalize::imagenet().into());
    let mut checker = Checker::new(images(1), &options).expect("fits");
    checker.read(0, 0, &[0]).expect("read");
    let nan: Vec<u8> = f32::NAN.to_ne_bytes().repeat(105);
    assert!(matches!(checker.tensor(0, &nan), Err(Mismatch::Value { element: 0, .. })));
}

#[test]
fn a_wrong_order_and_missing_fingerprints_are_named() {
    let options = options(Preprocess::Raw);
    let mut checker = Checker::new(images(8), &options).expect("fits");
    let order = Sampler::new(Order::new(8, &LoaderOptions { seed: None, ..options.clone() }), 0);
    checker.indices(&order, 1, &[4, 5, 6, 7]).expect("in order");
    let wrong = checker.indices(&order, 1, &[4, 6, 5, 7]).expect_err("swapped");
    assert_eq!(wrong, Mismatch::Index { batch: 1, position: 1, expected: Some(5), got: Some(6) });
    let short = checker.indices(&order, 0, &[0]).expect_err("short");
    assert_eq!(short, Mismatch::Index { batch: 0, position: 1, expected: Some(1), got: None });
    checker.read(0, 0, &[3]).expect("read");
    assert!(matches!(checker.fingerprints(0, None), Err(Mismatch::Length { expected: 1, got: 0, .. })));
}

#[test]
fn a_lost_device_is_told_from_wrong_data() {
    let backend = HostBackend::with_faults(Faults { lose_at_submission: Some(3), ..Faults::default() });
    let error = verify(&backend, &images(100), &options(Preprocess::Raw), ALL, None, &|| false).err().expect("lost");
    assert!(error.is_lost() && !error.is_wrong_data(), "{error}");
}

/// Pictures with a mask, boxes and a name of as many letters as the numbers drawn say; `wrong` makes a field another at its second reading.
struct Detections {
    wrong: Option<&'static str>,
    reads: AtomicU64,
}

impl Source for Detections {
    fn layout(&self) -> SampleLayout {
        let fields = [
            Field::image("image", 3, 5, 3),
            Field::array("mask", Element::U8, &[5]),
            Field::ragged("boxes", Element::F32, 3, &[4]),
            Field::ragged("name", Element::U8, 9, &[]).map(Field::on_host),
            Field::array("score", Element::F32, &[]).map(Field::on_host),
        ];
        fields.into_iter().collect::<Result<Vec<_>, _>>().and_then(SampleLayout::new).expect("a sample")
    }

    fn len(&self) -> u64 {
        10
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        // Every sample is read once by a worker and once to compare.
        let second = sample.index == 7 && self.reads.fetch_add(1, Ordering::Relaxed) > 0;
        let draw = sample.random_seed() as usize;
        let wrong = |field: &str| u8::from(second && self.wrong == Some(field));
        out.write(&[sample.index as u8; 45])?;
        out.field("mask")?.write(&[draw as u8 ^ wrong("mask"); 5])?;
        let rows = draw % 3 + usize::from(wrong("boxes"));
        out.field("boxes")?.values(&vec![draw as f32; 4 * rows])?;
        out.field("name")?.write(&vec![b'a'; draw % 9 + usize::from(wrong("name"))])?;
        out.field("score")?.value(sample.index as f32 + f32::from(wrong("score")))?;
        Ok(())
    }
}

#[test]
fn every_field_is_compared_and_a_wrong_one_is_named() {
    let run_with = |wrong| {
        let source: Arc<dyn Source> = Arc::new(Detections { wrong, reads: AtomicU64::new(0) });
        run(&source, &options(Normalize::imagenet().into()), ALL)
    };
    assert_eq!(run_with(None).expect("right").samples, 10);
    for wrong in ["boxes", "name", "score"] {
        match run_with(Some(wrong)) {
            Err(VerifyError::Wrong(Mismatch::Field { field, .. })) => assert_eq!(field, wrong),
            other => panic!("{wrong}: {other:?}"),
        }
    }
    let masks = run_with(Some("mask"));
    assert!(matches!(masks, Err(VerifyError::Wrong(Mismatch::Fingerprint { index: 7, .. }))), "{masks:?}");
}

#[test]
fn a_mask_is_compared_with_what_its_geometry_makes_of_it() {
    let sample = SampleLayout::new([
        Field::image("image", 7, 5, 3).expect("a field"),
        Field::image("mask", 7, 5, 1).expect("a field"),
    ]);
    let source: Arc<dyn Source> = Arc::new(random_images(sample.expect("a sample"), 9, 3).expect("in memory"));
    let filled = |fill| options(Pipeline::yolo(8).with_mask("mask", fill).into());
    assert_eq!(run(&source, &filled(255), ALL).expect("right").samples, 9);
    let mut loader = Loader::new(&HostBackend::new(), Arc::clone(&source), filled(0)).expect("a loader");
    let batch = loader.epoch(0).next().expect("a batch").expect("no error");
    let mut checker = Checker::new(source, &filled(255)).expect("fits");
    checker.read(0, 0, batch.indices()).expect("read");
    let error = checker.further_tensors(&batch).expect_err("the letterbox is filled otherwise");
    assert!(error.to_string().contains("mask"), "{error}");
}
