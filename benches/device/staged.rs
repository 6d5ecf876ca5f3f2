//! Strategies with slots: a whole loader for the rate, and a lane for the device's own times.

use std::sync::Arc;
use std::time::Instant;

use gpufeed::backend::wgpu::{Tuning, WgpuBackend};
use gpufeed::backend::{Feed, Lane, LaneSpec, Wait};
use gpufeed::measure::process_cpu;
use gpufeed::preprocess::fingerprint;
use gpufeed::source::HostArena;
use gpufeed::staging::Finish;
use gpufeed::{Backend, BatchLayout, Loader, LoaderOptions, MemorySource, Preprocess, Strategy};

use crate::{Bench, Row, WORKERS};

/// The arena as a source's bytes.
struct Shared(Arc<HostArena>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

pub fn measure(
    bench: &Bench,
    tuning: Tuning,
    strategy: Strategy,
    batch: usize,
    preprocess: &Preprocess,
) -> Result<Row, String> {
    let backend = bench.backend.with_tuning(tuning);
    let source = Arc::new(MemorySource::new(Shared(bench.memory.clone()), bench.layout).expect("whole samples"));
    let options = LoaderOptions {
        batch_size: batch,
        slots: 4,
        outputs: 4,
        workers: WORKERS,
        strategy: Some(strategy),
        preprocess: preprocess.clone(),
        seed: Some(1),
        ..LoaderOptions::default()
    };
    let checked = LoaderOptions { fingerprints: true, ..options.clone() };
    verify(bench, &mut Loader::new(&backend, source.clone(), checked).map_err(|error| error.to_string())?);
    let mut loader = Loader::new(&backend, source, options).map_err(|error| error.to_string())?;
    loader.epoch(1).for_each(|batch| drop(batch.expect("no error")));
    let (start, cpu, mut bytes) = (Instant::now(), process_cpu(), 0);
    for epoch in 2.. {
        for batch in loader.epoch(epoch) {
            bytes += batch.expect("no error").len() * bench.layout.byte_len();
        }
        if start.elapsed() >= bench.at_least {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let used = process_cpu().zip(cpu).map(|(after, before)| (after - before).as_secs_f64() / seconds);
    drop(loader);
    let device = device_times(bench, &backend, strategy, batch, preprocess);
    Ok(Row { name: String::new(), batch, rate: bytes as f64 / seconds, cpu: used, device })
}

fn verify(bench: &Bench, loader: &mut Loader<WgpuBackend>) {
    let size = bench.layout.byte_len();
    for batch in loader.epoch(0) {
        let batch = batch.expect("no error");
        let sample = |&index: &u64| fingerprint(&bench.memory.bytes()[index as usize * size..][..size]);
        let want: Vec<u64> = batch.indices().iter().map(sample).collect();
        assert_eq!(batch.fingerprints().expect("it can be read"), Some(want), "batch {}", batch.number());
    }
}

/// Seconds of copy and kernel a batch, over some batches that go round slots and outputs.
fn device_times(
    bench: &Bench,
    backend: &WgpuBackend,
    strategy: Strategy,
    batch: usize,
    preprocess: &Preprocess,
) -> Option<(f64, f64)> {
    let spec = LaneSpec {
        layout: BatchLayout::new(bench.layout, batch).expect("a valid batch"),
        preprocess: preprocess.clone(),
        strategy,
        slots: 4,
        outputs: 6,
        fingerprints: false,
        memory: None,
        timing: true,
    };
    let mut lane = backend.open_lane(&spec).expect("it opened before");
    let mut free: Vec<_> = (0..spec.outputs).map(|_| lane.output().expect("an output")).collect();
    for _ in 0..64 {
        let mut fill = loop {
            match lane.begin().expect("the device is there") {
                Some(fill) => break fill,
                None => lane.reap(Wait::One, &mut Vec::new()).expect("the device is there"),
            }
        };
        // What the slot holds does not change how long the device takes.
        fill.cut(spec.layout.copy_bytes(batch)).commit();
        let Finish::Filled(filled) = fill.finish() else { panic!("the only region is committed") };
        let sent = lane.submit(Feed::Staged(filled), batch, free.remove(0)).expect("it is sent");
        free.push(sent.tensor);
    }
    lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
    let times = lane.gpu_times().filter(|times| times.batches > 0)?;
    Some((times.copy_s / times.batches as f64, times.kernel_s / times.batches as f64))
}
