//! The staging step alone: taking memory, filling it from ordinary memory by two workers, and queueing the copy, unwaited.
//!
//! With one slot nothing overlaps, and the loader's own counters leave the device's time out. `memcpy` on the host is the reference: its
//! "copy" is a second memcpy, so it is compared by its fill alone.

use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gpufeed::source::random_images;
use gpufeed::{AnyBackend, AnyLoader, LoaderOptions, MemorySource, SampleLayout, Strategy};

const WORKERS: usize = 2;
/// u8 images of 224x224x3 in a batch: 9.6, 38.5 and 96 MB.
const BATCH_SIZES: [usize; 3] = [64, 256, 640];

fn staging(criterion: &mut Criterion) {
    let layout = SampleLayout::image(224, 224, 3).expect("a valid layout");
    let source = Arc::new(random_images(layout.clone(), 1280, 1).expect("193 MB of images"));
    for device in ["host", "auto"] {
        let backend = AnyBackend::open(device).expect("a device");
        for batch_size in BATCH_SIZES {
            let name = format!("staging/{}/{}", backend.info().id, batch_size);
            let mut group = criterion.benchmark_group(name);
            group.sample_size(10).throughput(Throughput::Bytes((batch_size * layout.byte_len()) as u64));
            // A strategy that reads the source's own memory has no staging step.
            let staged = |strategy: &&Strategy| !strategy.is_direct() && backend.supports(**strategy).is_ok();
            for &strategy in Strategy::ALL.iter().filter(staged) {
                group.bench_function(BenchmarkId::from_parameter(strategy), |bencher| {
                    let step = |batches| step(&backend, &source, strategy, batch_size, batches);
                    bencher.iter_custom(step);
                });
            }
        }
    }
}

/// The CPU's time for so many batches.
fn step(
    backend: &AnyBackend,
    source: &Arc<MemorySource>,
    strategy: Strategy,
    batch_size: usize,
    batches: u64,
) -> Duration {
    let options = LoaderOptions {
        batch_size,
        slots: 1,
        workers: WORKERS,
        strategy: Some(strategy),
        seed: Some(7),
        ..LoaderOptions::default()
    };
    let mut loader = backend.loader(source.clone(), options).expect("the loader opens");
    // The first batches pay for what is done lazily.
    deliver(&mut loader, 2);
    loader.reset_stats();
    deliver(&mut loader, batches);
    let stats = loader.stats();
    let seconds = if strategy == Strategy::Memcpy { stats.fill_s } else { stats.staging_s() };
    Duration::from_secs_f64(seconds / stats.batches.max(1) as f64 * batches as f64)
}

/// Delivers so many batches, over as many epochs as that takes.
fn deliver(loader: &mut AnyLoader, batches: u64) {
    let mut left = batches;
    for epoch in 0.. {
        for batch in loader.epoch(epoch) {
            drop(batch.expect("memory can be read"));
            left -= 1;
            if left == 0 {
                return;
            }
        }
    }
}

criterion_group!(benches, staging);
criterion_main!(benches);
