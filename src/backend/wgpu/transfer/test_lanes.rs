//! What tests of lanes on several queues have in common: on every other queue that the device has, and on wgpu's own, which plays all parts
//! where there is no other. Then only one thread submits.

#![allow(clippy::print_stderr)] // A test that skips itself says so.

use std::sync::Arc;
use std::time::Duration;

use super::super::tuning::{CopyQueue, KernelQueue, Tuning};
use super::super::{WgpuBackend, WgpuLane, WgpuTensor, adapters_of};
use crate::backend::{Api, Backend, Input, Lane, LaneSpec, Strategy, SubmissionId, Wait};
use crate::layout::{BatchLayout, SampleLayout};
use crate::memory::HostArena;
use crate::preprocess::Preprocess;
use crate::staging::{Filled, Finish};

pub(in super::super) const BATCH: usize = 6;
pub(in super::super) const SAMPLES: usize = 40;

/// Of the image's size, a byte each.
pub(in super::super) const PIXELS: usize = 5 * 7 * 3;

pub(in super::super) fn backend(tuning: Tuning) -> Option<WgpuBackend> {
    of_api(Api::Vulkan, tuning)
}

fn of_api(api: Api, tuning: Tuning) -> Option<WgpuBackend> {
    // The validation layers speak through the log.
    let _ = env_logger::try_init();
    let only = std::env::var("WGPU_BACKEND").unwrap_or_default();
    if !api.key().starts_with(&only) || adapters_of(api).is_empty() {
        eprintln!("skipped: no {api:?} device here");
        return None;
    }
    Some(WgpuBackend::open(&format!("{}:0", api.key())).expect("a device").with_tuning(tuning))
}

/// Runs a test on each API with each pair of queues that there is, but for wgpu's in both parts. The test opens the device as often as it
/// likes.
pub(in super::super) fn each(test: impl Fn(Tuning, &dyn Fn() -> WgpuBackend)) {
    for api in [Api::Vulkan, Api::Dx12, Api::Metal] {
        each_of(api, &test);
    }
}

fn each_of(api: Api, test: &impl Fn(Tuning, &dyn Fn() -> WgpuBackend)) {
    let copies = [CopyQueue::Main, CopyQueue::WgpusOwn, CopyQueue::Transfer, CopyQueue::Compute];
    let kernels = [KernelQueue::Main, KernelQueue::WgpusOwn, KernelQueue::Compute, KernelQueue::LowCompute];
    let Some(device) = of_api(api, Tuning::default()) else { return };
    for (copies, kernels) in copies.into_iter().flat_map(|copies| kernels.map(|kernels| (copies, kernels))) {
        if (copies, kernels) == (CopyQueue::Main, KernelQueue::Main) {
            continue;
        }
        let tuning = Tuning { copies, kernels, ..Tuning::default() };
        // A second device of wgpu's over one of the API is Vulkan's.
        let opens = api == Api::Vulkan || (copies != CopyQueue::WgpusOwn && kernels != KernelQueue::WgpusOwn);
        if opens && device.with_tuning(tuning).footprint(&spec(Strategy::SystemRing, Preprocess::Raw)).is_ok() {
            test(tuning, &|| of_api(api, tuning).expect("it was opened before"));
        }
    }
}

/// The strategies with queues apart that run on a device.
pub(in super::super) fn both(backend: &WgpuBackend) -> Vec<Strategy> {
    let all = [Strategy::SystemRing, Strategy::Imported];
    all.into_iter().filter(|&strategy| backend.supports(strategy).is_ok()).collect()
}

pub(in super::super) fn data() -> Vec<u8> {
    (0..SAMPLES * PIXELS).map(|at| (at * 31 + at / 97) as u8).collect()
}

pub(in super::super) fn spec(strategy: Strategy, preprocess: Preprocess) -> LaneSpec {
    let arena = HostArena::new(SAMPLES * PIXELS, |bytes| bytes.copy_from_slice(&data())).expect("a little memory");
    LaneSpec {
        layout: layout(),
        preprocess,
        strategy,
        slots: 2,
        outputs: 2,
        fingerprints: true,
        memory: (strategy == Strategy::Imported).then(|| Arc::new(arena) as _),
        timing: true,
        step: None,
    }
}

/// Every sample of a batch, by its index in the data.
pub(in super::super) fn indices(number: usize, samples: usize) -> Vec<usize> {
    // The last two lie together.
    let mut all: Vec<_> = (0..samples).map(|at| (number * 11 + at * 7) % (SAMPLES - 1)).collect();
    if let [.., before, last] = all.as_mut_slice() {
        *last = *before + 1;
    }
    all
}

pub(in super::super) fn bytes(indices: &[usize]) -> Vec<u8> {
    let data = data();
    indices.iter().flat_map(|at| data[at * PIXELS..][..PIXELS].to_vec()).collect()
}

pub(in super::super) fn layout() -> BatchLayout {
    BatchLayout::new(SampleLayout::image(5, 7, 3).expect("an image"), BATCH).expect("a batch")
}

pub(in super::super) fn fill(lane: &mut WgpuLane, bytes: &[u8]) -> Filled {
    let mut fill = lane.begin().expect("a live device").expect("a free slot");
    let mut region = fill.take_region(&layout(), bytes.len() / PIXELS);
    for (position, sample) in bytes.chunks_exact(PIXELS).enumerate() {
        region.writer(position, &mut []).write(sample).expect("it fits");
    }
    region.commit();
    match fill.finish() {
        Finish::Filled(filled) => filled,
        _ => panic!("the region is committed"),
    }
}

pub(in super::super) fn submit(
    lane: &mut WgpuLane,
    strategy: Strategy,
    indices: &[usize],
) -> (SubmissionId, WgpuTensor) {
    let output = lane.output().expect("an output");
    let offsets: Vec<u64> = indices.iter().map(|at| (at * PIXELS) as u64).collect();
    let input = match strategy {
        Strategy::Imported => Input::Direct { offsets: &offsets, records: &[] },
        _ => Input::Staged(fill(lane, &bytes(indices))),
    };
    let sent = lane.submit(input, indices.len(), output).expect("it is sent");
    (sent.id, sent.tensor)
}

pub(in super::super) fn arrive(lane: &mut WgpuLane, id: SubmissionId, finished: &mut Vec<SubmissionId>) {
    while !lane.has_arrived(id).expect("it arrives") {
        lane.await_arrival(Duration::from_millis(10));
        lane.reap(Wait::Poll, finished).expect("a live device");
    }
}
