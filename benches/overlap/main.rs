//! Which share of a transfer is hidden behind the consumer's compute, for each strategy, on CUDA and on Vulkan.
//!
//! `cargo bench --bench overlap -- [NAME=VALUE ..]`: u8 images of 224x224x3 in memory, shuffled. The consumer does fixed work after
//! each batch, on its own queue or stream, calibrated alone: never a spin on a clock. One workgroup by default, so that the rest of the
//! device is idle; with `wide=1` work that fills the device and its memory.
//!
//! The table compares a step with the best possible, `max(transfer alone, compute alone)`, where the transfer alone is the larger of the
//! API's own copy of those bytes and, for strategies that fill slots, the CPU's copy of them.
//!
//! Every number is of checked bytes. An epoch of a waiting consumer is checked by fingerprints, its first and last tensor whole; it notes
//! a sum over each tensor, which the consumer computes on the device. In the timed epochs, with the same batches, the consumer computes the
//! sum twice, before and after its work, and both are compared: a tensor that came late, or was overwritten early, shows.

#![allow(clippy::print_stdout)] // The table is what it is for.

mod args;
mod check;
mod consumer;
#[cfg(feature = "cuda")]
mod cuda;
mod table;
#[cfg(feature = "wgpu")]
mod vulkan;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gpufeed::measure::parallel_memcpy;
use gpufeed::source::random_images;
use gpufeed::{Backend, Loader, LoaderOptions, MemorySource, Normalize, Preprocess, SampleLayout, Strategy};

use args::Args;
use check::Reference;
use consumer::{Consumer, Work};
use table::Row;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Batches at the start of an epoch that are not timed.
const WARM_UP: usize = 5;
const EPOCHS: usize = 3;

/// What all rows have in common.
struct Bench {
    args: Args,
    source: Arc<MemorySource>,
    layout: SampleLayout,
    /// Of each image.
    fingerprints: Vec<u64>,
    /// Seconds in which the CPU alone copies a batch.
    fill: f64,
}

fn main() -> Result<(), Failure> {
    env_logger::init();
    let args = Args::parse()?;
    let layout = SampleLayout::image(224, 224, 3)?;
    let source = Arc::new(random_images(layout.clone(), args.images, 1)?);
    let bytes = args.batch * layout.byte_len();
    let fill = parallel_memcpy(bytes, args.workers, Duration::from_millis(500)).map_or(0.0, |rate| bytes as f64 / rate);
    let fingerprints = check::fingerprints(&source)?;
    let bench = Bench { source, layout, fingerprints, fill, args };
    println!("{}", bench.args);
    println!("{} threads copy a batch in host memory in {:.0} us\n", bench.args.workers, bench.fill * 1e6);
    for device in bench.args.devices.clone() {
        if let Err(reason) = bench.device(&device) {
            println!("{device}: {reason}");
        }
    }
    Ok(())
}

impl Bench {
    fn device(&self, device: &str) -> Result<(), Failure> {
        if device.starts_with("cuda") {
            #[cfg(feature = "cuda")]
            return self.measure(cuda::CudaConsumer::open(device, &self.args)?);
        } else {
            #[cfg(feature = "wgpu")]
            return self.measure(vulkan::WgpuConsumer::open(device, &self.args)?);
        }
        #[allow(unreachable_code)] // With both features.
        Err("it needs a feature that is off".into())
    }

    fn measure<C: Consumer>(&self, mut consumer: C) -> Result<(), Failure> {
        let backend = consumer.backend().clone();
        let info = backend.info();
        println!("{}: {}, {} {}", info.id, info.name, info.driver, info.driver_info);
        let bytes = self.args.batch * self.layout.byte_len();
        let rate = backend.copy_ceiling(bytes, Duration::from_millis(500))?;
        let copy = bytes as f64 / rate;
        println!("its own copy of a batch: {:.0} us ({:.1} GB/s)", copy * 1e6, rate / 1e9);
        let work: Vec<Work> =
            self.args.compute.iter().map(|&us| consumer::calibrate(&mut consumer, us)).collect::<Result<_, _>>()?;
        table::header();
        for (name, preprocess) in self.kinds() {
            for &strategy in Strategy::ALL.iter().filter(|&&strategy| self.args.wants(&backend, strategy)) {
                let alone = if strategy.is_direct() { copy } else { copy.max(self.fill) };
                for (variant, backend) in consumer.variants(strategy) {
                    let row = Row { strategy: variant, tensor: name, alone };
                    let options = self.options(strategy, &preprocess);
                    if let Err(reason) = self.strategy(&mut consumer, &backend, &row, &options, &work) {
                        println!("| {} | {name} | {reason} |", row.strategy);
                    }
                }
            }
        }
        println!();
        Ok(())
    }

    fn kinds(&self) -> Vec<(&'static str, Preprocess)> {
        let all = [("raw u8", Preprocess::Raw), ("f32", Normalize::imagenet().into())];
        all.into_iter()
            .filter(|(name, _)| self.args.tensor.is_none_or(|wanted| name.starts_with(wanted.key())))
            .collect()
    }

    fn strategy<C: Consumer>(
        &self,
        consumer: &mut C,
        backend: &C::Backend,
        row: &Row,
        options: &LoaderOptions,
        work: &[Work],
    ) -> Result<(), Failure> {
        let reference = Reference::new(self, consumer, backend, options)?;
        for work in work {
            let mut loader = Loader::new(backend, self.source.clone(), options.clone())?;
            consumer.set(work.iterations)?;
            let mut steps = Vec::with_capacity(EPOCHS);
            for _ in 0..EPOCHS {
                steps.push(epoch(consumer, &mut loader, *work)?);
                reference.check(&consumer.sums()?, work.iterations)?;
            }
            consumer.forget();
            row.print(*work, steps);
        }
        Ok(())
    }

    fn options(&self, strategy: Strategy, preprocess: &Preprocess) -> LoaderOptions {
        LoaderOptions {
            batch_size: self.args.batch,
            slots: self.args.slots,
            outputs: self.args.outputs,
            workers: self.args.workers,
            seed: Some(1),
            strategy: Some(strategy),
            preprocess: preprocess.clone(),
            ..LoaderOptions::default()
        }
    }
}

/// Seconds a step: always the same epoch, so that the batches are those of the reference.
fn epoch<C: Consumer>(consumer: &mut C, loader: &mut Loader<C::Backend>, work: Work) -> Result<f64, Failure> {
    let (mut start, mut count) = (Instant::now(), 0);
    for batch in loader.epoch(0) {
        let batch = batch?;
        if work.iterations > 0 {
            consumer.consume(batch)?;
        } else {
            drop(batch);
        }
        count += 1;
        if count == WARM_UP {
            consumer.finish()?;
            start = Instant::now();
        }
    }
    consumer.finish()?;
    Ok(start.elapsed().as_secs_f64() / (count - WARM_UP) as f64)
}
