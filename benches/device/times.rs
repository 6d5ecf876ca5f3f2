//! The device's own times for a batch: a lane driven by hand, with timestamps around copy and kernel.

use gpufeed::backend::wgpu::{WgpuBackend, WgpuLane, WgpuTensor};
use gpufeed::backend::{Input, Lane, LaneSpec, Wait};
use gpufeed::loader::Permutation;
use gpufeed::staging::Finish;
use gpufeed::{Backend, BatchLayout, LoaderOptions, Strategy};

use crate::{Bench, SLOTS, WARM_UP};

/// Enough for a tensor not to be found in a cache of the last one.
const OUTPUTS: usize = 6;
const BATCHES: usize = 64;

/// Seconds of copy and kernel a batch, over some batches that go round slots and outputs.
pub fn measure(
    bench: &Bench,
    backend: &WgpuBackend,
    strategy: Strategy,
    options: &LoaderOptions,
) -> Option<(f64, f64)> {
    let spec = LaneSpec {
        slots: SLOTS,
        outputs: OUTPUTS,
        memory: strategy.is_direct().then(|| bench.memory.clone() as _),
        timing: true,
        ..LaneSpec::new(
            BatchLayout::new(bench.layout.clone(), options.batch_size).expect("a valid batch"),
            options.preprocess.clone(),
            strategy,
        )
    };
    let mut lane = backend.open_lane(&spec).expect("it opened before");
    let mut free: Vec<_> = (0..OUTPUTS).map(|_| lane.output().expect("an output")).collect();
    backend.kernel_ceiling(WARM_UP).expect("the device computes");
    for number in 0..BATCHES {
        while lane.in_flight() >= SLOTS {
            lane.reap(Wait::One, &mut Vec::new()).expect("the device is there");
        }
        let sent = send(bench, &spec, &mut lane, number, free.remove(0));
        free.push(sent);
    }
    lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
    let times = lane.gpu_times().filter(|times| times.batches > 0)?;
    Some((times.copy_s / times.batches as f64, times.kernel_s / times.batches as f64))
}

fn send(bench: &Bench, spec: &LaneSpec, lane: &mut WgpuLane, number: usize, output: WgpuTensor) -> WgpuTensor {
    let batch = spec.layout.batch_size();
    if spec.strategy.is_direct() {
        let size = bench.layout.byte_len();
        let all = (bench.memory.bytes().len() / size) as u64;
        let order = Permutation::new(all, 1, 1);
        let place = |position: usize| order.at(position as u64 % all) * size as u64;
        let offsets: Vec<u64> = (number * batch..(number + 1) * batch).map(place).collect();
        return lane
            .submit(Input::Direct { offsets: &offsets, records: &[] }, batch, output)
            .expect("it is sent")
            .tensor;
    }
    let mut fill = lane.begin().expect("the device is there").expect("a slot is free");
    // What the slot holds does not change how long the device takes.
    fill.take_region(&spec.layout, batch).commit();
    let Finish::Filled(filled) = fill.finish() else { panic!("the only region is committed") };
    lane.submit(Input::Staged(filled), batch, output).expect("it is sent").tensor
}
