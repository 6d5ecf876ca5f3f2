//! The same batches everywhere: every device here, every strategy it has, any number of workers and slots, against one reference that
//! is computed from the source on the CPU.

use std::sync::Arc;

use gpufeed::backend::host::HostBackend;
use gpufeed::loader::{Order, Sampler};
use gpufeed::preprocess::{batch_fingerprint, fingerprint};
use gpufeed::source::MemorySource;
use gpufeed::{Backend, Loader, LoaderOptions, SampleBuffer, SampleContext, SampleLayout, Source, Strategy};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use gpufeed::{HostArena, Normalize, OpenError};
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

/// Images of an odd size, in memory that devices may read.
fn images() -> Arc<dyn Source> {
    let layout = SampleLayout::image(31, 17, 3).expect("valid");
    let mut random = random::Random::new(7);
    let fill = |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = random.next() as u8);
    let arena = HostArena::new(53 * layout.byte_len(), fill).expect("a little memory");
    Arc::new(MemorySource::in_arena(Arc::new(arena), layout).expect("whole samples"))
}

/// Shuffled, with a short last batch.
fn options() -> LoaderOptions {
    LoaderOptions { batch_size: 8, seed: Some(42), fingerprints: true, ..LoaderOptions::default() }
}

/// The fingerprints of an epoch's batches, computed from the source alone.
fn reference(source: &dyn Source) -> Vec<u64> {
    let sampler = Sampler::new(Order::new(source.len(), &options()), EPOCH);
    let sample = |index| {
        let mut sample = SampleBuffer::new(source.layout()).expect("a little memory");
        source.read(&SampleContext::of(index), &mut sample.writer()).expect("memory can be read");
        fingerprint(sample.bytes(0).expect("the first field"))
    };
    let batch = |number| {
        let indices: Vec<u64> = sampler.batch(number).collect();
        batch_fingerprint(&indices, &indices.iter().copied().map(sample).collect::<Vec<_>>())
    };
    (0..sampler.batches()).map(batch).collect()
}

/// Every strategy of a device with every number of workers and slots; how many loaders that were.
fn matrix<B: Backend>(backend: &B, preprocess: &gpufeed::Preprocess) -> usize {
    let source = images();
    let right = reference(&*source);
    assert_eq!(right.len(), 7, "six whole batches and a short one");
    let mut loaders = 0;
    for &strategy in Strategy::ALL.iter().filter(|strategy| backend.supports(**strategy).is_ok()) {
        for (workers, slots) in WORKERS.into_iter().flat_map(|workers| SLOTS.map(|slots| (workers, slots))) {
            // The device's own reads know no workers.
            if strategy.is_direct() && workers > 1 {
                continue;
            }
            let options =
                LoaderOptions { workers, slots, strategy: Some(strategy), preprocess: preprocess.clone(), ..options() };
            let mut loader = Loader::new(backend, Arc::clone(&source), options).expect("the loader opens");
            let fingerprints = loader.epoch(EPOCH).map(|batch| batch.expect("no error").fingerprint());
            let got: Vec<u64> =
                fingerprints.map(|one| one.expect("it can be read").expect("it was asked for")).collect();
            assert_eq!(got, right, "{} {strategy}, {workers} workers, {slots} slots", backend.info().id);
            loaders += 1;
        }
    }
    loaders
}

#[test]
fn epochs_are_the_same_on_the_host() {
    assert_eq!(matrix(&HostBackend::new(), &gpufeed::Preprocess::Raw), 9);
}

/// The matrix on a device, if it is here; it has at least so many strategies.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn matrix_if_here<B: Backend>(name: &str, opened: Result<B, OpenError>, strategies: usize) {
    match opened {
        Err(OpenError::NoDevice { found, .. }) => skip(name, &format!("no such device here (found: {found})")),
        // The fingerprint is of the bytes that were delivered, whatever becomes of them.
        opened => {
            let loaders = matrix(&opened.expect("the device opens"), &Normalize::imagenet().into());
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
