//! What the CPU can write into a strategy's slots: the loader's number of threads, its stores and its memory, and nothing is sent.

use std::time::{Duration, Instant};

use gpufeed::backend::wgpu::{WgpuBackend, WgpuLane};
use gpufeed::backend::{Lane, LaneSpec};
use gpufeed::loader::Permutation;
use gpufeed::staging::{Fill, Finish, Region};
use gpufeed::{Backend, BatchLayout, Preprocess, Strategy};

use crate::{Bench, SLOTS, WORKERS};

/// A lane whose slots are filled over and over, and what that took so far.
pub struct Ceiling {
    lane: WgpuLane,
    layout: BatchLayout,
    bytes: usize,
    took: Duration,
}

/// A part of a slot, and the first of its samples in the order of the epoch.
struct Job {
    region: Region,
    slot: usize,
    first: u64,
}

impl Ceiling {
    pub fn new(bench: &Bench, backend: &WgpuBackend, strategy: Strategy, batch: usize) -> Self {
        let layout = BatchLayout::new(bench.layout.clone(), batch).expect("a valid batch");
        let spec = LaneSpec { slots: SLOTS, outputs: 1, ..LaneSpec::new(layout.clone(), Preprocess::Raw, strategy) };
        let lane = backend.open_lane(&spec).expect("the loader's opened too");
        Self { lane, layout, bytes: 0, took: Duration::ZERO }
    }

    /// Bytes a second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.took.as_secs_f64()
    }

    /// Writes shuffled samples for so long.
    pub fn slice(&mut self, bench: &Bench, at_least: Duration) {
        let (jobs, queue) = flume::unbounded::<Job>();
        let (end, ended) = flume::unbounded();
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                let (queue, end) = (queue.clone(), end.clone());
                scope.spawn(move || work(bench, &queue, &end));
            }
            let start = Instant::now();
            let mut fills: Vec<Option<Fill>> = (0..SLOTS).map(|_| None).collect();
            let mut batches = 0;
            for slot in &mut fills {
                *slot = Some(self.begin(bench, &jobs, &mut batches));
            }
            // The batches begun so far are written to the end.
            for written in 1.. {
                let slot = ended.recv().expect("threads write");
                let fill = fills[slot].take().expect("it is being filled");
                let Finish::Filled(filled) = fill.finish() else { panic!("all regions are committed") };
                self.lane.cancel(filled.cancel());
                if start.elapsed() < at_least {
                    fills[slot] = Some(self.begin(bench, &jobs, &mut batches));
                } else if written == batches {
                    break;
                }
            }
            self.took += start.elapsed();
            self.bytes += self.layout.payload(self.layout.batch_size()) * batches as usize;
            drop(jobs);
        });
    }

    /// Hands out a slot, which is the one that came back last.
    fn begin(&mut self, bench: &Bench, jobs: &flume::Sender<Job>, batches: &mut u64) -> Fill {
        let mut fill = self.lane.begin().expect("the device is there").expect("a slot is free");
        let (slot, batch) = (fill.slot(), self.layout.batch_size());
        let first = *batches * batch as u64 % samples(bench);
        let cut = |run: std::ops::Range<usize>| Job {
            region: fill.take_region(&self.layout, run.len()),
            slot,
            first: first + run.start as u64,
        };
        let all: Vec<Job> = self.layout.runs(batch, WORKERS).map(cut).collect();
        all.into_iter().for_each(|job| jobs.send(job).expect("threads wait"));
        *batches += 1;
        fill
    }
}

fn samples(bench: &Bench) -> u64 {
    (bench.memory.bytes().len() / bench.layout.byte_len()) as u64
}

fn work(bench: &Bench, queue: &flume::Receiver<Job>, end: &flume::Sender<usize>) {
    let (size, all) = (bench.layout.byte_len(), samples(bench));
    let order = Permutation::new(all, 1, 1);
    for Job { mut region, slot, first } in queue {
        for (sample, position) in region.samples().zip(first..) {
            let from = order.at(position % all) as usize * size;
            let mut writer = region.writer(sample, &mut []);
            writer.write(&bench.memory.bytes()[from..from + size]).expect("it fits");
        }
        if region.commit() {
            end.send(slot).expect("it is waited for");
        }
    }
}
