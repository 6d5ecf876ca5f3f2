//! Throughput on CUDA against the ceilings of the same machine: 8,192 shuffled u8 images of 224x224x3 in memory, f32 NCHW out.
//!
//! Each strategy's delivered bytes are checked by fingerprints in an untimed pass with the same settings before it is timed.
//! Where there is no CUDA device it says so. An argument of seconds sets how long each figure is measured (default 2).

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use gpufeed::backend::cuda::{CudaBackend, CudaTensor, GatherMethod};
use gpufeed::backend::{Input, Lane, LaneSpec, Wait};
use gpufeed::measure::{parallel_memcpy, percentile, process_cpu};
use gpufeed::preprocess::fingerprint;
use gpufeed::source::random_images;
use gpufeed::staging::{Finish, SampleWriter};
use gpufeed::{
    Backend, BatchLayout, HostArena, Loader, LoaderOptions, MemorySource, Normalize, SampleContext, SampleLayout,
    Source, Strategy,
};

const IMAGES: usize = 8192;
const WORKERS: usize = 8;

type Failure = Box<dyn std::error::Error>;

/// The images, which loaders read and the device too.
struct Shared(Arc<HostArena>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

struct Bench {
    backend: CudaBackend,
    arena: Arc<HostArena>,
    source: Arc<MemorySource>,
    prints: Vec<u64>,
    layout: SampleLayout,
    at_least: Duration,
    ceiling: f64,
}

fn main() -> Result<(), Failure> {
    let seconds = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(2.0);
    let backend = match CudaBackend::open("cuda:0") {
        Ok(backend) => backend,
        Err(error) => {
            println!("skipped: {error}");
            return Ok(());
        }
    };
    println!("{} ({}), {:?}", backend.info().name, backend.info().driver_info, backend.info().limits);
    let layout = SampleLayout::image(224, 224, 3)?;
    let bytes = layout.byte_len();
    let images = random_images(layout.clone(), IMAGES, 1)?;
    let arena = Arc::new(HostArena::new(IMAGES * bytes, |all| {
        for (index, image) in (0..).zip(all.chunks_exact_mut(bytes)) {
            images.read(&SampleContext::of(index), &mut SampleWriter::over(image)).expect("memory can be read");
        }
    })?);
    drop(images);
    let bench = Bench {
        source: Arc::new(MemorySource::new(Shared(Arc::clone(&arena)), layout.clone())?),
        prints: arena.bytes().chunks_exact(bytes).map(fingerprint).collect(),
        at_least: Duration::from_secs_f64(seconds),
        ceiling: 0.0,
        backend,
        arena,
        layout,
    };
    bench.all()
}

impl Bench {
    fn all(mut self) -> Result<(), Failure> {
        for bytes in [1 << 20, 64 * self.layout.byte_len(), 256 * self.layout.byte_len(), 64 << 20, 256 << 20] {
            let rate = self.backend.copy_ceiling(bytes, self.at_least / 4)?;
            println!("ceiling: page-locked copies of {bytes} bytes: {:.1} GB/s", rate / 1e9);
            self.ceiling = self.ceiling.max(rate);
        }
        if let Some(rate) = parallel_memcpy(256 * self.layout.byte_len(), WORKERS, self.at_least / 2) {
            println!("ceiling: {WORKERS} threads copy in host memory: {:.1} GB/s", rate / 1e9);
        }
        for batch in [256, 64] {
            let speed = self.backend.kernel_speed(&self.spec(batch, Strategy::PinnedRing)?, self.at_least / 4)?;
            let (normalize, copy) = (speed.normalize / 1e9, speed.copy / 1e9);
            println!("kernel, batch {batch}: {normalize:.0} GB/s of {copy:.0} = {:.3}", normalize / copy);
        }
        for batch in [256, 64] {
            for gather in [GatherMethod::Batched, GatherMethod::Kernel, GatherMethod::Each] {
                self.registered(batch, gather)?;
            }
        }
        let staged = [Strategy::PinnedRing, Strategy::PinnedWriteCombined, Strategy::Pageable, Strategy::PinPerBatch];
        for strategy in staged {
            for batch in [256, 64] {
                self.staged(batch, strategy)?;
            }
        }
        for batch in [1, 8] {
            self.pushed(batch)?;
        }
        Ok(())
    }

    fn spec(&self, batch: usize, strategy: Strategy) -> Result<LaneSpec, Failure> {
        Ok(LaneSpec {
            slots: 4,
            outputs: 4,
            memory: Some(Arc::clone(&self.arena) as _),
            ..LaneSpec::new(BatchLayout::new(self.layout.clone(), batch)?, Normalize::imagenet().into(), strategy)
        })
    }

    fn report(&self, what: &str, images: usize, wall: Duration, cpu: Option<Duration>) {
        let rate = images as f64 / wall.as_secs_f64();
        let bytes = rate * self.layout.byte_len() as f64;
        let cpu = cpu.map_or(f64::NAN, |cpu| cpu.as_secs_f64() / wall.as_secs_f64());
        let share = bytes / self.ceiling;
        println!("{what}: {rate:.0} images/s = {:.2} GB/s = {share:.3} of the ceiling, {cpu:.2} cores", bytes / 1e9);
    }

    /// Shuffled batches of the registered memory, straight through a lane.
    fn registered(&self, batch: usize, gather: GatherMethod) -> Result<(), Failure> {
        let Ok(backend) = self.backend.with_gather(gather) else {
            println!("registered, {gather:?}: this driver is too old");
            return Ok(());
        };
        let mut spec = self.spec(batch, Strategy::Registered)?;
        spec.fingerprints = true;
        let mut checked = Direct::new(&backend, &spec)?;
        for number in 0..IMAGES / batch {
            let (offsets, tensor) = checked.submit(number)?;
            let right: Vec<u64> = offsets.iter().map(|at| self.prints[*at as usize / self.layout.byte_len()]).collect();
            let delivered = gpufeed::backend::Tensor::fingerprints(&tensor, batch)?;
            assert_eq!(delivered, Some(right), "batch {number}");
        }
        drop(checked);
        spec.fingerprints = false;
        let start = Instant::now();
        let mut timed = Direct::new(&backend, &spec)?;
        let opening = start.elapsed();
        (0..8).try_for_each(|number| timed.submit(number).map(drop))?;
        timed.lane.reap(Wait::All, &mut Vec::new())?;
        let (start, cpu, mut number) = (Instant::now(), process_cpu(), 0);
        while start.elapsed() < self.at_least {
            timed.submit(number)?;
            number += 1;
        }
        timed.lane.reap(Wait::All, &mut Vec::new())?;
        let cpu = process_cpu().zip(cpu).map(|(after, before)| after - before);
        let what = format!("registered, {gather:?}, batch {batch} (opened in {opening:.1?})");
        self.report(&what, number * batch, start.elapsed(), cpu);
        Ok(())
    }

    /// A loader's epochs.
    fn staged(&self, batch: usize, strategy: Strategy) -> Result<(), Failure> {
        let options = LoaderOptions {
            batch_size: batch,
            workers: WORKERS,
            seed: Some(1),
            strategy: Some(strategy),
            preprocess: Normalize::imagenet().into(),
            ..LoaderOptions::default()
        };
        let checking = LoaderOptions { fingerprints: true, ..options.clone() };
        for delivered in Loader::new(&self.backend, self.source.clone(), checking)?.epoch(0) {
            let delivered = delivered?;
            let right = delivered.indices().iter().map(|&index| self.prints[index as usize]).collect();
            assert_eq!(delivered.fingerprints()?, Some(right), "batch {}", delivered.number());
        }
        let mut loader = Loader::new(&self.backend, self.source.clone(), options)?;
        for delivered in loader.epoch(0).take(8) {
            drop(delivered?);
        }
        let (start, cpu, mut images) = (Instant::now(), process_cpu(), 0);
        for epoch in 1.. {
            for delivered in loader.epoch(epoch) {
                images += delivered?.len();
                if start.elapsed() >= self.at_least {
                    break;
                }
            }
            if start.elapsed() >= self.at_least {
                break;
            }
        }
        let wall = start.elapsed();
        let cpu = process_cpu().zip(cpu).map(|(after, before)| after - before);
        self.report(&format!("{strategy}, batch {batch}"), images, wall, cpu);
        Ok(())
    }

    /// From the start of the fill to the tensor ready, one batch at a time.
    fn pushed(&self, batch: usize) -> Result<(), Failure> {
        let spec = self.spec(batch, Strategy::PinnedRing)?;
        let mut lane = self.backend.open_lane(&spec)?;
        let mut output = lane.output()?;
        let bytes = &self.arena.bytes()[..spec.layout.payload(batch)];
        let (mut times, mut finished) = (Vec::new(), Vec::new());
        for turn in 0..2200 {
            let start = Instant::now();
            let mut fill = lane.begin()?.ok_or("no slot is free")?;
            let mut region = fill.take_region(&spec.layout, batch);
            for (position, image) in bytes.chunks_exact(spec.layout.payload(1)).enumerate() {
                region.writer(position, &mut []).write(image)?;
            }
            region.commit();
            let Finish::Filled(filled) = fill.finish() else { return Err("the region is committed".into()) };
            output = lane.submit(Input::Staged(filled), batch, output).map_err(|rejected| rejected.error)?.tensor;
            // Nothing else is to be done meanwhile, so ask without sleeping.
            while finished.is_empty() {
                lane.reap(Wait::Poll, &mut finished)?;
            }
            finished.clear();
            if turn >= 200 {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        times.sort_unstable_by(f64::total_cmp);
        let at = |q| percentile(&times, q).unwrap_or(f64::NAN);
        println!("pushed, batch {batch}: p50 {:.1} us, p99 {:.1} us", at(0.5), at(0.99));
        Ok(())
    }
}

/// A lane that is fed with offsets, and what it needs to stay two batches ahead.
struct Direct {
    lane: gpufeed::backend::cuda::CudaLane,
    outputs: Vec<CudaTensor>,
    finished: Vec<u64>,
    order: Vec<u64>,
    batch: usize,
}

impl Direct {
    fn new(backend: &CudaBackend, spec: &LaneSpec) -> Result<Self, Failure> {
        let mut lane = backend.open_lane(spec)?;
        let outputs = (0..spec.outputs).map(|_| lane.output()).collect::<Result<_, _>>()?;
        let sample = spec.layout.sample().byte_len() as u64;
        // An odd multiplier visits every image of a power of two once.
        let order = (0..IMAGES as u64).map(|i| (i * 2_654_435_761 + 12_345) % IMAGES as u64 * sample).collect();
        Ok(Self { lane, outputs, finished: Vec::with_capacity(16), order, batch: spec.layout.batch_size() })
    }

    fn submit(&mut self, number: usize) -> Result<(&[u64], CudaTensor), Failure> {
        while self.lane.in_flight() >= self.outputs.len() {
            self.lane.reap(Wait::One, &mut self.finished)?;
            self.finished.clear();
        }
        let first = number * self.batch % IMAGES;
        let offsets = &self.order[first..first + self.batch];
        let output = self.outputs[number % self.outputs.len()].clone();
        let sent = self
            .lane
            .submit(Input::Direct { offsets, records: &[] }, self.batch, output)
            .map_err(|rejected| rejected.error)?;
        Ok((offsets, sent.tensor))
    }
}
