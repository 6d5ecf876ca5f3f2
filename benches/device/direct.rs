//! `imported`: a lane driven by hand.

use std::time::Instant;

use gpufeed::backend::wgpu::{Tuning, WgpuLane, WgpuTensor};
use gpufeed::backend::{Feed, Lane, LaneSpec, Tensor, Wait};
use gpufeed::measure::process_cpu;
use gpufeed::preprocess::{DType, error_bound, expected, fingerprint};
use gpufeed::{Backend, BatchLayout, Preprocess, Strategy};

use crate::{Bench, Row};

const SLOTS: usize = 2;
/// Enough for a tensor not to be found in a cache of the last one.
const OUTPUTS: usize = 6;

pub fn measure(bench: &Bench, tuning: Tuning, batch: usize, preprocess: &Preprocess) -> Result<Row, String> {
    let backend = bench.backend.with_tuning(tuning);
    let spec = LaneSpec {
        layout: BatchLayout::new(bench.layout, batch).expect("a valid batch"),
        preprocess: preprocess.clone(),
        strategy: Strategy::Imported,
        slots: SLOTS,
        outputs: OUTPUTS,
        fingerprints: false,
        memory: Some(bench.memory.clone()),
        timing: false,
    };
    let open = |spec: &LaneSpec| backend.open_lane(spec).map_err(|error| error.to_string());
    verify(
        bench,
        &LaneSpec { fingerprints: true, ..spec.clone() },
        &mut open(&LaneSpec { fingerprints: true, ..spec.clone() })?,
    );
    let (rate, cpu) = rounds(bench, &spec, &mut open(&spec)?);
    let timed = LaneSpec { timing: true, ..spec };
    let mut lane = open(&timed)?;
    rounds(bench, &timed, &mut lane);
    let device = lane.gpu_times().filter(|times| times.batches > 0);
    let device = device.map(|times| (times.copy_s / times.batches as f64, times.kernel_s / times.batches as f64));
    Ok(Row { name: String::new(), batch, rate, cpu, device })
}

/// All samples once, shuffled.
fn shuffled(bench: &Bench, seed: u64) -> Vec<u64> {
    let size = bench.layout.byte_len() as u64;
    let mut all: Vec<u64> = (0..bench.memory.bytes().len() as u64 / size).map(|sample| sample * size).collect();
    let mut state = seed | 1;
    for at in (1..all.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.swap(at, (state >> 33) as usize % (at + 1));
    }
    all
}

fn outputs(lane: &mut WgpuLane) -> Vec<WgpuTensor> {
    (0..OUTPUTS).map(|_| lane.output().expect("an output")).collect()
}

/// Fingerprints of an epoch, and a whole tensor.
fn verify(bench: &Bench, spec: &LaneSpec, lane: &mut WgpuLane) {
    let size = bench.layout.byte_len();
    let mut output = outputs(lane).remove(0);
    let sample = |offset: u64| &bench.memory.bytes()[offset as usize..][..size];
    for (number, batch) in shuffled(bench, 1).chunks(spec.layout.batch_size()).enumerate() {
        output = lane.submit(Feed::Direct(batch), batch.len(), output).expect("it is sent").tensor;
        let want: Vec<u64> = batch.iter().map(|&offset| fingerprint(sample(offset))).collect();
        assert_eq!(output.fingerprints(batch.len()).expect("it can be read"), Some(want), "batch {number}");
        lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
        if let (0, Preprocess::Normalize(normalize)) = (number, &spec.preprocess) {
            let desc = spec.preprocess.tensor(&spec.layout, batch.len());
            let bytes = output.read(&desc).expect("it can be read");
            let pixels: Vec<u8> = batch.iter().flat_map(|&offset| sample(offset)).copied().collect();
            let image = bench.layout.as_image().expect("an image");
            let want = expected(normalize, image, &pixels).expect("valid");
            for (at, want) in want.into_iter().enumerate() {
                let got = match desc.dtype {
                    DType::F16 => half::f16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]).to_f64(),
                    _ => f64::from(f32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four bytes"))),
                };
                let channel = at % size / image.plane();
                let pixel = ((want - normalize.bias(channel)) / normalize.scale(channel)).round() as u8;
                assert!((got - want).abs() <= error_bound(normalize, channel, pixel), "{at}: {got} for {want}");
            }
        }
    }
}

/// Bytes a second, and the share of one core.
fn rounds(bench: &Bench, spec: &LaneSpec, lane: &mut WgpuLane) -> (f64, Option<f64>) {
    let mut free = outputs(lane);
    let (mut finished, mut bytes, mut seed) = (Vec::new(), 0, 2);
    epoch(spec, lane, &shuffled(bench, seed), &mut free, &mut finished);
    let (start, cpu) = (Instant::now(), process_cpu());
    let mut shuffling = std::time::Duration::ZERO;
    while start.elapsed() < bench.at_least {
        seed += 1;
        let before = process_cpu();
        let offsets = shuffled(bench, seed);
        // A loader computes its order as it goes; this one is the bench's own.
        shuffling += process_cpu().zip(before).map(|(after, before)| after - before).unwrap_or_default();
        bytes += epoch(spec, lane, &offsets, &mut free, &mut finished);
    }
    lane.reap(Wait::All, &mut finished).expect("the device is there");
    let seconds = start.elapsed().as_secs_f64();
    let used = process_cpu().zip(cpu).map(|(after, before)| (after - before).saturating_sub(shuffling));
    (bytes as f64 / seconds, used.map(|used| used.as_secs_f64() / seconds))
}

/// Sends an epoch and returns its bytes. Some may be on their way still.
fn epoch(
    spec: &LaneSpec,
    lane: &mut WgpuLane,
    offsets: &[u64],
    free: &mut Vec<WgpuTensor>,
    finished: &mut Vec<u64>,
) -> usize {
    let mut bytes = 0;
    for batch in offsets.chunks(spec.layout.batch_size()) {
        while lane.in_flight() > SLOTS {
            finished.clear();
            lane.reap(Wait::One, finished).expect("the device is there");
        }
        let output = free.remove(0);
        let sent = lane.submit(Feed::Direct(batch), batch.len(), output).expect("it is sent");
        // Written in turn: the queue orders the next use after this one.
        free.push(sent.tensor);
        bytes += spec.layout.payload(batch.len());
    }
    bytes
}
