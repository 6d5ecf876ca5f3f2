//! The contract seen through a loader.

use std::sync::Arc;

use gpufeed::preprocess::{error_bound, expected, fingerprint};
use gpufeed::{
    Batch, FloatType, HostArena, LastBatch, LoadError, Loader, LoaderOptions, MemorySource, Normalize, OpenError,
    Preprocess, SampleBuffer, SampleContext, SampleLayout, SampleWriter, Source, Strategy, SyntheticSource,
    TensorLayout,
};

use crate::device::TestDevice;

pub fn options(strategy: Strategy) -> LoaderOptions {
    LoaderOptions { strategy: Some(strategy), workers: 2, ..LoaderOptions::default() }
}

pub fn pattern(layout: SampleLayout, samples: usize) -> Arc<MemorySource> {
    let bytes: Vec<u8> = (0..samples * layout.byte_len()).map(|i| (i * 7 + i / 251) as u8).collect();
    let labels: Vec<i64> = (0..samples as i64).map(|i| i * 3 - 5).collect();
    let arena = HostArena::new(bytes.len(), |memory| memory.copy_from_slice(&bytes)).expect("a little memory");
    let source = MemorySource::in_arena(Arc::new(arena), layout).expect("whole samples");
    Arc::new(source.with_labels(labels).expect("a label a sample"))
}

pub fn sample_bytes(source: &dyn Source, index: u64) -> Vec<u8> {
    let mut sample = SampleBuffer::new(source.layout()).expect("a little memory");
    source.read(&SampleContext::of(index), &mut sample.writer()).expect("memory can be read");
    sample.bytes(0).expect("the first field").to_vec()
}

pub fn batch_bytes<B: TestDevice>(source: &dyn Source, batch: &Batch<B>) -> Vec<u8> {
    batch.indices().iter().flat_map(|&index| sample_bytes(source, index)).collect()
}

pub fn shapes_of_every_kind_arrive_whole<B: TestDevice>(backend: &B, strategy: Strategy) {
    let image = |h, w, c| SampleLayout::image(h, w, c).expect("a valid layout");
    let shapes = [
        (image(1, 1, 1), 7, 3),
        (image(5, 1, 3), 4, 4),
        (image(31, 17, 3), 5, 2),
        (image(8, 8, 4), 3, 8),
        (SampleLayout::f32(&[3, 5]).expect("valid"), 6, 4),
        (SampleLayout::bytes(&[1]).expect("valid"), 9, 1),
        (SampleLayout::bytes(&[4099]).expect("valid"), 3, 2),
    ];
    for (layout, samples, batch_size) in shapes {
        let source = pattern(layout.clone(), samples);
        let options = LoaderOptions { batch_size, seed: Some(1), ..options(strategy) };
        let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
        let mut seen = Vec::new();
        for batch in loader.epoch(0) {
            let batch = batch.expect("no error");
            assert_eq!(batch.read().expect("it can be read"), batch_bytes(&*source, &batch), "{layout}");
            assert_eq!(batch.shape()[0], batch.len());
            let labels: Vec<i64> = batch.indices().iter().map(|&i| i as i64 * 3 - 5).collect();
            assert_eq!(batch.labels().as_deref(), Some(labels.as_slice()));
            seen.extend_from_slice(batch.indices());
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..samples as u64), "{layout}: every sample comes once");
    }
}

pub fn normalised_images_are_within_the_bound<B: TestDevice>(backend: &B, strategy: Strategy) {
    for (h, w) in [(31, 17), (16, 20)] {
        for (layout, dtype) in [
            (TensorLayout::Nchw, FloatType::F32),
            (TensorLayout::Nhwc, FloatType::F32),
            (TensorLayout::Nchw, FloatType::F16),
            (TensorLayout::Nhwc, FloatType::F16),
        ] {
            let source = pattern(SampleLayout::image(h, w, 3).expect("valid"), 5);
            let normalize = Normalize::imagenet().with_layout(layout).with_dtype(dtype);
            let preprocess = Preprocess::Normalize(normalize.clone());
            let options = LoaderOptions { batch_size: 3, preprocess, ..options(strategy) };
            let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
            for batch in loader.epoch(0) {
                check_normalised(&*source, &normalize, &batch.expect("no error"));
            }
        }
    }
}

pub fn check_normalised<B: TestDevice>(source: &dyn Source, normalize: &Normalize, batch: &Batch<B>) {
    let image = source.layout().as_image().expect("images");
    let bytes = batch_bytes(source, batch);
    let right = expected(normalize, image, &bytes).expect("whole images");
    let tensor = batch.read_f32().expect("it can be read");
    assert_eq!(tensor.len(), right.len());
    // The largest bound of any pixel of any channel holds for all.
    let bounds = (0..3).flat_map(|channel| (0..=255).map(move |pixel| (channel, pixel)));
    let bound = bounds.map(|(channel, pixel)| error_bound(normalize, channel, pixel)).fold(0.0, f64::max);
    for (at, (&got, &right)) in tensor.iter().zip(&right).enumerate() {
        assert!((f64::from(got) - right).abs() <= bound, "element {at}: {got} instead of {right}");
    }
}

pub fn fingerprints_are_those_of_the_delivered_bytes<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::image(31, 17, 3).expect("valid"), 10);
    for preprocess in [Preprocess::Raw, Normalize::imagenet().into()] {
        let options =
            LoaderOptions { batch_size: 4, seed: Some(3), preprocess, fingerprints: true, ..options(strategy) };
        let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
        for batch in loader.epoch(5) {
            let batch = batch.expect("no error");
            let right: Vec<u64> = batch.indices().iter().map(|&i| fingerprint(&sample_bytes(&*source, i))).collect();
            assert_eq!(batch.fingerprints().expect("they can be read"), Some(right));
        }
    }
}

pub fn batches_do_not_depend_on_workers_or_slots<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::bytes(&[24]).expect("valid"), 100);
    let mut first: Option<Vec<(Vec<u64>, Vec<u8>)>> = None;
    for (workers, slots, outputs) in [(1, 1, 1), (2, 5, 2), (7, 2, 4)] {
        let options = LoaderOptions {
            batch_size: 16,
            workers,
            slots,
            outputs,
            seed: Some(11),
            last_batch: LastBatch::Drop,
            ..options(strategy)
        };
        let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
        let batches = loader.epoch(2).map(|batch| {
            let batch = batch.expect("no error");
            (batch.indices().to_vec(), batch.read().expect("it can be read"))
        });
        let batches: Vec<_> = batches.collect();
        assert_eq!(batches.len(), 6);
        assert_eq!(first.get_or_insert_with(|| batches.clone()), &batches);
    }
}

pub fn a_batch_outlives_its_loader<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::bytes(&[100]).expect("valid"), 40);
    let options = LoaderOptions { batch_size: 8, ..options(strategy) };
    let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
    let batch = loader.epoch(0).next().expect("there are batches").expect("no error");
    drop(loader);
    assert_eq!(batch.read().expect("it can be read"), batch_bytes(&*source, &batch));
}

pub fn a_batch_may_be_dropped_on_another_thread<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::bytes(&[100]).expect("valid"), 400);
    let options = LoaderOptions { batch_size: 8, outputs: 3, ..options(strategy) };
    let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
    let (send, receive) = std::sync::mpsc::sync_channel::<Batch<B>>(0);
    let checker = std::thread::spawn({
        let source = source.clone();
        move || {
            receive
                .iter()
                .map(|batch| assert_eq!(batch.read().expect("readable"), batch_bytes(&*source, &batch)))
                .count()
        }
    });
    for batch in loader.epoch(0) {
        send.send(batch.expect("no error")).expect("the checker takes it");
    }
    drop(send);
    assert_eq!(checker.join().expect("every batch is right"), 50);
}

pub fn a_forgotten_batch_costs_its_tensor_only<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::bytes(&[100]).expect("valid"), 80);
    let options = LoaderOptions { batch_size: 8, outputs: 2, ..options(strategy) };
    let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
    let forgotten = loader.epoch(0).next().expect("there are batches").expect("no error");
    #[allow(clippy::mem_forget)] // What is tested.
    std::mem::forget(forgotten);
    for batch in loader.epoch(1) {
        let batch = batch.expect("the other output serves");
        assert_eq!(batch.read().expect("it can be read"), batch_bytes(&*source, &batch));
    }
}

pub fn holding_every_tensor_is_an_error_not_a_hang<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::bytes(&[100]).expect("valid"), 80);
    let options = LoaderOptions { batch_size: 8, outputs: 2, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    let mut epoch = loader.epoch(0);
    let mut held: Vec<_> = epoch.by_ref().take(2).map(|batch| batch.expect("no error")).collect();
    let error = epoch.next().expect("there are batches").expect_err("both outputs are held");
    assert!(matches!(error, LoadError::AllTensorsLeased { outputs: 2 }), "{error}");
    held.pop();
    assert!(epoch.next().is_none(), "the iterator has ended with it");
    assert_eq!(epoch.try_next().expect("it goes on").expect("no error").number(), 2);
}

pub fn batches_can_be_awaited<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::bytes(&[100]).expect("valid"), 80);
    let options = LoaderOptions { batch_size: 8, ..options(strategy) };
    let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
    pollster::block_on(async {
        let mut epoch = loader.epoch(0);
        let mut number = 0;
        while let Some(batch) = epoch.next_async().await {
            let batch = batch.expect("no error");
            batch.ready().await.expect("the device is there");
            assert_eq!(batch.number(), number);
            assert_eq!(batch.read().expect("readable"), batch_bytes(&*source, &batch));
            number += 1;
        }
        assert_eq!(number, 10);
    });
}

pub fn a_large_batch_is_split_or_refused_before_anything_is_allocated<B: TestDevice>(backend: &B, strategy: Strategy) {
    // Larger than the 128 MiB that software drivers bind: 157 MB of f32.
    if matches!(strategy, Strategy::MappedRing | Strategy::Memcpy) {
        let layout = SampleLayout::image(224, 224, 3).expect("valid");
        let source = Arc::new(SyntheticSource::new(layout, 261));
        let normalize = Normalize::imagenet();
        let preprocess = Preprocess::Normalize(normalize.clone());
        let options = LoaderOptions { batch_size: 261, slots: 1, outputs: 1, preprocess, ..options(strategy) };
        let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
        let batch = loader.epoch(0).next().expect("one batch").expect("no error");
        check_normalised(&*source, &normalize, &batch);
    }
    // A pebibyte a batch.
    let layout = SampleLayout::bytes(&[1 << 40]).expect("valid");
    let options = LoaderOptions { batch_size: 1 << 10, slots: 1, outputs: 1, ..options(strategy) };
    let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8]).expect("valid"), 4));
    let huge = Huge { inner: source, layout };
    match Loader::new(backend, Arc::new(huge), options).map(|_| ()).expect_err("no device has that") {
        OpenError::TooLarge { .. } | OpenError::Device(_) => {}
        other => panic!("another error: {other}"),
    }
    // Over the budget.
    let source = pattern(SampleLayout::bytes(&[1000]).expect("valid"), 8);
    let options = LoaderOptions { byte_budget: Some(5000), batch_size: 8, ..self::options(strategy) };
    let error = Loader::new(backend, source, options).map(|_| ()).expect_err("more than 5000 bytes");
    assert!(matches!(error, OpenError::OverBudget { budget: 5000, .. }), "{error}");
}

/// A source that claims a larger layout than it has.
struct Huge {
    inner: Arc<SyntheticSource>,
    layout: SampleLayout,
}

impl Source for Huge {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), gpufeed::SourceError> {
        self.inner.read(sample, out)
    }
}

pub fn memory_is_constant_over_a_thousand_epochs<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::image(8, 9, 3).expect("valid"), 12);
    let preprocess = Normalize::imagenet().into();
    let options = LoaderOptions { batch_size: 4, seed: Some(0), preprocess, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    let mut after = |epoch| {
        loader.epoch(epoch).for_each(|batch| drop(batch.expect("no error")));
        loader.memory().expect("the pump is there")
    };
    let _warm_up = after(0);
    let first = after(1);
    for epoch in 2..1000 {
        let memory = after(epoch);
        assert_eq!(memory.held, first.held, "epoch {epoch}");
        let made = if strategy.allocates_per_batch() { (epoch - 1) * 3 } else { 0 };
        assert_eq!(memory.allocations - first.allocations, made, "epoch {epoch}");
    }
    assert_eq!(first.held, loader.footprint(), "what is held is what was planned");
}
