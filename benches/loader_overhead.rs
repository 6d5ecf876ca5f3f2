//! What the loader itself costs a batch: the host backend, a source that writes nothing, one worker, batches of 64.
//!
//! One iteration is an epoch of [`BATCHES`] batches, so the time a batch is the reported time over that; criterion's throughput line
//! gives batches a second. With a trace the loader is a new one each time, since a trace fills up; so is the one without, to compare.
//! `metrics` is what the counters take of a batch: every call and every reading of the clock that they need.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gpufeed::backend::host::HostBackend;
use gpufeed::{Element, Loader, LoaderOptions, SampleLayout, SyntheticSource, Trace, backend};

#[allow(dead_code, unused_imports)]
#[path = "../src/loader/observe/distribution.rs"]
mod distribution;
#[allow(dead_code)]
#[path = "../src/loader/observe/metrics.rs"]
mod metrics;
#[allow(dead_code, rustdoc::broken_intra_doc_links)]
#[path = "../src/loader/observe/stats.rs"]
mod stats;

use metrics::{BatchTimestamps, Cause, Metrics};

const BATCHES: u64 = 20_000;
const BATCH_SIZE: usize = 64;

fn loader(pool: usize, trace: Option<Arc<Trace>>) -> Loader<HostBackend> {
    let layout = SampleLayout::bytes(&[1]).and_then(|byte| byte.with_label(Element::I64)).expect("a valid layout");
    let source = Arc::new(SyntheticSource::blank(layout, BATCHES * BATCH_SIZE as u64));
    let options = LoaderOptions {
        batch_size: BATCH_SIZE,
        workers: 1,
        slots: pool,
        outputs: pool,
        trace,
        ..LoaderOptions::default()
    };
    Loader::new(&HostBackend::new(), source, options).expect("the loader opens")
}

fn epoch(loader: &mut Loader<HostBackend>, number: u64) {
    for batch in loader.epoch(number) {
        drop(black_box(batch.expect("the source cannot fail")));
    }
}

fn overhead(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("loader-overhead");
    group.throughput(Throughput::Elements(BATCHES)).sample_size(10);
    for pool in [4, 8, 16] {
        let mut loader = loader(pool, None);
        let mut number = 0;
        group.bench_function(BenchmarkId::new("slots-and-outputs", pool), |bencher| {
            bencher.iter(|| {
                number += 1;
                epoch(&mut loader, number);
            });
        });
    }
    for traced in [false, true] {
        // Every event of an epoch finds room.
        let trace = || traced.then(|| Arc::new(Trace::with_capacity(usize::try_from(BATCHES).expect("few") * 24)));
        group.bench_function(BenchmarkId::new("trace", traced), |bencher| {
            let run = |(mut loader, trace): (Loader<HostBackend>, Option<Arc<Trace>>)| {
                epoch(&mut loader, 0);
                assert_eq!(trace.map_or(0, |trace| trace.dropped()), 0);
                loader
            };
            let setup = || {
                let trace = trace();
                (loader(4, trace.clone()), trace)
            };
            bencher.iter_batched(setup, run, BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn counters(criterion: &mut Criterion) {
    let metrics = Metrics::new();
    metrics.started(0);
    let held = metrics.held();
    criterion.bench_function("metrics", |bencher| {
        bencher.iter(|| {
            // The worker reads the clock twice, the pump for each step and each wait, the user when it gets the batch and drops it.
            let [_reading, _read, begun, start, ended, submitted, finished] = [(); 7].map(|()| Instant::now());
            metrics.waited(Cause::Source, ended - start);
            let (handed_out, sent) = (start, ended);
            metrics.begun(handed_out - begun, None);
            let times =
                BatchTimestamps { epoch: 0, number: 0, slot: Some(0), begun, handed_out, ended, sent, submitted };
            metrics.submitted(ended - handed_out, &times);
            metrics.finished(&times, finished);
            let [start, end] = [(); 2].map(|()| Instant::now());
            metrics.waited(Cause::Either, end - start);
            let [asked, got, dropped] = [(); 3].map(|()| Instant::now());
            let since = got;
            metrics.delivered(BATCH_SIZE, BATCH_SIZE, got - asked, got - submitted, true);
            held.fetch_add(metrics::nanoseconds(dropped - since), Ordering::Relaxed);
        });
    });
    black_box(metrics.snapshot());
}

criterion_group!(benches, counters, overhead);
criterion_main!(benches);
