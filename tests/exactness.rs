//! The same batches everywhere: every device here, every strategy it has, any number of workers and slots, against one reference that
//! is computed from the source on the CPU.

use std::sync::Arc;

use gpufeed::backend::host::HostBackend;
use gpufeed::loader::{Order, Sampler};
use gpufeed::preprocess::{batch_fingerprint, fingerprint, sample_fingerprint};
use gpufeed::source::{MemorySource, RaggedError};
use gpufeed::{
    Backend, Batch, Element, Field, HostArena, Loader, LoaderOptions, Placement, Preprocess, SampleBuffer,
    SampleContext, SampleLayout, Scalar, Source, Strategy,
};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use gpufeed::{Normalize, OpenError};
use half::{bf16, f16};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use skip::skip;

#[path = "support/random.rs"]
mod random;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
#[path = "support/skip.rs"]
mod skip;

const WORKERS: [usize; 3] = [1, 2, 7];
const SLOTS: [usize; 3] = [1, 2, 5];
const EPOCH: u64 = 3;
const SAMPLES: usize = 53;

/// So many random bytes in memory that devices may read.
fn arena(bytes: usize) -> Arc<HostArena> {
    let mut random = random::Random::new(7);
    let fill = |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = random.next() as u8);
    Arc::new(HostArena::new(bytes, fill).expect("a little memory"))
}

/// Images of an odd size.
fn images() -> Arc<dyn Source> {
    let layout = SampleLayout::image(31, 17, 3).expect("valid");
    Arc::new(MemorySource::in_arena(arena(SAMPLES * layout.byte_len()), layout).expect("whole samples"))
}

/// Images with a mask, boxes of any number up to six, and their classes on the host.
fn detections() -> Arc<dyn Source> {
    let mask = Field::array("mask", Element::U8, &[31, 17]).expect("valid");
    let layout = SampleLayout::image(31, 17, 3).and_then(|image| image.with(mask)).expect("valid");
    let source = MemorySource::in_arena(arena(SAMPLES * layout.byte_len()), layout).expect("whole samples");
    let boxes = Field::ragged("boxes", Element::F32, 6, &[4]).expect("valid");
    let classes = Field::ragged("classes", Element::I64, 6, &[]).expect("valid").on_host();
    let number = |sample: usize| sample * 5 % 7;
    let source = source.with_ragged(boxes, (0..SAMPLES).map(|sample| vec![sample as f32 / 8.0; 4 * number(sample)]));
    let rows = (0..SAMPLES).map(|sample| vec![sample as i64; number(sample)]);
    Arc::new(source.and_then(|source| source.with_ragged(classes, rows)).expect("they fit"))
}

/// Tokens of any number up to thirty-three, and the text that they were on the host.
fn texts() -> Arc<dyn Source> {
    let tokens = Field::ragged("tokens", Element::I64, 33, &[]).expect("valid");
    let text = Field::ragged("text", Element::U8, 40, &[]).expect("valid").on_host();
    let rows = (0..SAMPLES).map(|sample| (0..sample * 11 % 34).map(|at| (sample * 40 + at) as i64).collect::<Vec<_>>());
    let texts = (0..SAMPLES).map(|sample| format!("text {sample}").repeat(sample % 5));
    let source = MemorySource::ragged(tokens, rows).and_then(|source| source.with_ragged(text, texts));
    Arc::new(source.expect("they fit"))
}

/// Two elements of every type on the device, and on the host any number of each that has room: the texts have bytes there.
fn every_type() -> Arc<dyn Source> {
    fn rows<T: Scalar>(value: T, field: Field) -> impl FnOnce(MemorySource) -> Result<MemorySource, RaggedError> {
        move |source| source.with_ragged(field, (0..SAMPLES).map(|sample| vec![value; sample * 3 % 5]))
    }
    let fields = Element::ALL.map(|element| Field::array(element.name(), element, &[2]).expect("valid"));
    let layout = SampleLayout::new(fields).expect("valid");
    let source = MemorySource::in_arena(arena(SAMPLES * layout.byte_len()), layout).expect("whole samples");
    let on_host =
        |element: Element| Field::ragged(format!("{element} on the host"), element, 4, &[]).expect("valid").on_host();
    let source = rows(1u8, on_host(Element::Bool))(source)
        .and_then(rows(700u16, on_host(Element::U16)))
        .and_then(rows(-7i32, on_host(Element::I32)))
        .and_then(rows(i64::MIN, on_host(Element::I64)))
        .and_then(rows(f16::from_f32(0.7), on_host(Element::F16)))
        .and_then(rows(bf16::from_f32(0.7), on_host(Element::Bf16)))
        .and_then(rows(0.7f32, on_host(Element::F32)));
    Arc::new(source.expect("they fit"))
}

/// Shuffled, with a short last batch.
fn options() -> LoaderOptions {
    LoaderOptions { batch_size: 8, seed: Some(42), fingerprints: true, ..LoaderOptions::default() }
}

/// A batch as numbers: the fingerprint of what is on the device, and one of each field on the host.
type Delivered = (u64, Vec<u64>);

/// Those of an epoch's batches, computed from the source alone.
fn reference(source: &dyn Source) -> Vec<Delivered> {
    let sampler = Sampler::new(Order::new(source.len(), &options()), EPOCH);
    let layout = source.layout();
    let read = |index| {
        let mut sample = SampleBuffer::new(layout.clone()).expect("a little memory");
        source.read(&SampleContext::of(index), &mut sample.writer()).expect("memory can be read");
        sample
    };
    let on_device = |sample: &SampleBuffer| {
        let field = |field: &Field| {
            let mut bytes = sample.bytes(field.name()).expect("there").to_vec();
            // Behind the rows of a ragged field are zeros.
            bytes.resize(field.byte_len(), 0);
            fingerprint(&bytes)
        };
        sample_fingerprint(&layout.on_device().map(field).collect::<Vec<_>>())
    };
    let batch = |number| {
        let indices: Vec<u64> = sampler.batch(number).collect();
        let samples: Vec<SampleBuffer> = indices.iter().map(|&index| read(index)).collect();
        let on_host = layout.fields().iter().filter(|field| field.placement() == Placement::Host).map(|field| {
            let rows = samples.iter().flat_map(|sample| sample.bytes(field.name()).expect("there"));
            fingerprint(&rows.copied().collect::<Vec<u8>>())
        });
        (batch_fingerprint(&indices, &samples.iter().map(on_device).collect::<Vec<_>>()), on_host.collect())
    };
    (0..sampler.batches()).map(batch).collect()
}

/// What was delivered.
fn delivered<B: Backend>(layout: &SampleLayout, batch: &Batch<B>) -> Delivered {
    let on_device = batch.fingerprint().expect("it can be read").expect("it was asked for");
    let on_host = layout
        .fields()
        .iter()
        .filter(|field| field.placement() == Placement::Host)
        .map(|field| fingerprint(batch.host_bytes(field.name()).expect("there")));
    (on_device, on_host.collect())
}

/// The strategies of a device that read such samples.
fn strategies<B: Backend>(backend: &B, layout: &SampleLayout) -> impl Iterator<Item = Strategy> {
    let one_field = layout.on_device().count() == 1;
    let all = Strategy::ALL.iter().copied();
    all.filter(move |strategy| backend.supports(*strategy).is_ok() && (one_field || !strategy.is_direct()))
}

/// Every strategy of a device with every number of workers and slots; how many loaders that were.
fn matrix<B: Backend>(backend: &B, source: &Arc<dyn Source>, preprocess: &Preprocess) -> usize {
    let (right, layout) = (reference(&**source), source.layout());
    assert_eq!(right.len(), 7, "six whole batches and a short one");
    let mut loaders = 0;
    for strategy in strategies(backend, &layout) {
        for (workers, slots) in WORKERS.into_iter().flat_map(|workers| SLOTS.map(|slots| (workers, slots))) {
            // The device's own reads know no workers.
            if strategy.is_direct() && workers > 1 {
                continue;
            }
            let options =
                LoaderOptions { workers, slots, strategy: Some(strategy), preprocess: preprocess.clone(), ..options() };
            let mut loader = Loader::new(backend, Arc::clone(source), options).expect("the loader opens");
            let batches = loader.epoch(EPOCH);
            let got: Vec<Delivered> = batches.map(|batch| delivered(&layout, &batch.expect("no error"))).collect();
            assert_eq!(got, right, "{layout}: {} {strategy}, {workers} workers, {slots} slots", backend.info().id);
            loaders += 1;
        }
    }
    loaders
}

/// An epoch that is begun on the host and resumed on a device, and one that is begun there and resumed on the host.
fn resumed<B: Backend>(backend: &B, source: &Arc<dyn Source>, preprocess: &Preprocess) {
    let (right, layout) = (reference(&**source), source.layout());
    let options = || LoaderOptions { preprocess: preprocess.clone(), ..options() };
    let host = || Loader::new(&HostBackend::new(), Arc::clone(source), options()).expect("the loader opens");
    for strategy in strategies(backend, &layout) {
        let options = LoaderOptions { strategy: Some(strategy), workers: 3, slots: 2, ..options() };
        let mut loader = Loader::new(backend, Arc::clone(source), options).expect("the loader opens");
        for begun_there in [false, true] {
            let mut host = host();
            let got = if begun_there {
                begun(&mut loader, &mut host, &layout)
            } else {
                begun(&mut host, &mut loader, &layout)
            };
            assert_eq!(got, right, "{layout}: {} {strategy}, begun there: {begun_there}", backend.info().id);
        }
    }
}

/// The batches of an epoch that one loader begins and another goes on with.
fn begun<A: Backend, B: Backend>(
    first: &mut Loader<A>,
    second: &mut Loader<B>,
    layout: &SampleLayout,
) -> Vec<Delivered> {
    let mut epoch = first.epoch(EPOCH);
    let mut got: Vec<_> = epoch.by_ref().take(3).map(|batch| delivered(layout, &batch.expect("no error"))).collect();
    let token = epoch.resume_token().expect("it is ordered");
    drop(epoch);
    let rest = second.resume(&token).expect("the same samples");
    got.extend(rest.map(|batch| delivered(layout, &batch.expect("no error"))));
    got
}

/// Every data set on a device; how many loaders of single images that were.
fn data_sets<B: Backend>(backend: &B, preprocess: &Preprocess) -> usize {
    let raw = &Preprocess::Raw;
    for (source, preprocess) in [(detections(), preprocess), (texts(), raw), (every_type(), raw)] {
        assert!(matrix(backend, &source, preprocess) >= 9);
        resumed(backend, &source, preprocess);
    }
    matrix(backend, &images(), preprocess)
}

#[test]
fn epochs_are_the_same_on_the_host() {
    assert_eq!(data_sets(&HostBackend::new(), &Preprocess::Raw), 9);
}

/// The matrix on a device, if it is here; it has at least so many strategies.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn matrix_if_here<B: Backend>(name: &str, opened: Result<B, OpenError>, strategies: usize) {
    match opened {
        Err(OpenError::NoDevice { found, .. }) => skip(name, &format!("no such device here (found: {found})")),
        // The fingerprint is of the bytes that were delivered, whatever becomes of them.
        opened => {
            let loaders = data_sets(&opened.expect("the device opens"), &Normalize::imagenet().into());
            assert!(loaders >= strategies * 9, "{loaders} loaders");
        }
    }
}

#[cfg(feature = "wgpu")]
#[test]
fn epochs_are_the_same_on_vulkan() {
    let opened = gpufeed::backend::wgpu::WgpuBackend::open("vulkan:0");
    matrix_if_here("epochs_are_the_same_on_vulkan", opened, 5);
}

#[cfg(feature = "wgpu")]
#[test]
fn epochs_are_the_same_on_gl() {
    let opened = gpufeed::backend::wgpu::WgpuBackend::open("gl:0");
    matrix_if_here("epochs_are_the_same_on_gl", opened, 4);
}

#[cfg(feature = "cuda")]
#[test]
fn epochs_are_the_same_on_cuda() {
    let opened = gpufeed::backend::cuda::CudaBackend::open("cuda:0");
    matrix_if_here("epochs_are_the_same_on_cuda", opened, 4);
}
