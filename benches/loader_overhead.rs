//! What the loader itself costs a batch: the host backend, a source that writes nothing, one worker, batches of 64.
//!
//! One iteration is an epoch of [`BATCHES`] batches, so the time a batch is the reported time over that; criterion's throughput line
//! gives batches a second.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gpufeed::backend::host::HostBackend;
use gpufeed::{Loader, LoaderOptions, SampleLayout, SyntheticSource};

const BATCHES: u64 = 20_000;
const BATCH_SIZE: usize = 64;

fn overhead(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("loader-overhead");
    group.throughput(Throughput::Elements(BATCHES)).sample_size(10);
    let layout = SampleLayout::bytes(&[1]).expect("a valid layout");
    for pool in [4, 8, 16] {
        let source = Arc::new(SyntheticSource::blank(layout, BATCHES * BATCH_SIZE as u64));
        let options = LoaderOptions {
            batch_size: BATCH_SIZE,
            workers: 1,
            slots: pool,
            outputs: pool,
            ..LoaderOptions::default()
        };
        let mut loader = Loader::new(&HostBackend::new(), source, options).expect("the loader opens");
        let mut epoch = 0;
        group.bench_function(BenchmarkId::new("slots-and-outputs", pool), |bencher| {
            bencher.iter(|| {
                epoch += 1;
                for batch in loader.epoch(epoch) {
                    drop(black_box(batch.expect("the source cannot fail")));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, overhead);
criterion_main!(benches);
