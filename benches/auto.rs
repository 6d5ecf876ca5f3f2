//! The automatic choice against the best there is: `tune` several times, then every strategy that keeps memory constant with several
//! numbers of workers, measured in turn and verified, as `gpufeed compare` does. Both beside a consumer that does nothing and beside some
//! that compute.
//!
//! ```sh
//! # Half a minute for each comparison; beside these consumers, in microseconds; all devices if none is named, both batch sizes without one.
//! cargo bench --bench auto -- 30 compute=0,400,1500 batch=256 vulkan:0 cuda:0
//! ```

#![allow(clippy::print_stdout)] // A bench speaks.

use std::sync::Arc;
use std::time::Duration;

use gpufeed::measure::report::{HandOver, Settings};
use gpufeed::measure::{MIN_ROUNDS, Plan, Ratio, Summary};
use gpufeed::source::random_images;
use gpufeed::{AnyBackend, AutoOptions, LoaderOptions, Normalize, SampleLayout, Source, Strategy, Tuned, devices};

/// u8 images of 224x224x3: 616 MB, more than caches hold.
const IMAGES: usize = 4096;
const BATCH_SIZES: [usize; 2] = [64, 256];
/// How often the choice is made.
const CHOICES: usize = 5;

/// What is measured.
struct Args {
    seconds: u64,
    compute_us: Vec<u32>,
    batch_sizes: Vec<usize>,
    devices: Vec<String>,
}

impl Args {
    fn parse() -> Self {
        let mut args = Self {
            seconds: 30,
            compute_us: vec![0, 400, 1500],
            batch_sizes: BATCH_SIZES.to_vec(),
            devices: Vec::new(),
        };
        // cargo passes `--bench`.
        for arg in std::env::args().skip(1).filter(|arg| !arg.starts_with("--")) {
            match (arg.split_once('='), arg.parse()) {
                (_, Ok(seconds)) => args.seconds = seconds,
                (Some(("compute", list)), _) => args.compute_us = numbers(list),
                (Some(("batch", list)), _) => args.batch_sizes = numbers(list),
                _ => args.devices.push(arg),
            }
        }
        if args.devices.is_empty() {
            args.devices = devices().into_iter().map(|device| device.id).collect();
        }
        args
    }
}

fn numbers<T: std::str::FromStr>(list: &str) -> Vec<T> {
    list.split(',').map(|number| number.parse().ok().expect("numbers and commas")).collect()
}

fn main() {
    let args = Args::parse();
    let layout = SampleLayout::image(224, 224, 3).expect("an image");
    let source: Arc<dyn Source> = Arc::new(random_images(layout, IMAGES, 1).expect("in memory"));
    for device in &args.devices {
        let backend = match AnyBackend::open(device) {
            Ok(backend) => backend,
            Err(error) => {
                println!("{device}: {error}");
                continue;
            }
        };
        for &batch_size in &args.batch_sizes {
            for &compute_us in &args.compute_us {
                bench(&backend, &source, batch_size, compute_us, Duration::from_secs(args.seconds));
            }
        }
    }
}

fn bench(backend: &AnyBackend, source: &Arc<dyn Source>, batch_size: usize, compute_us: u32, time: Duration) {
    let options = LoaderOptions {
        batch_size,
        seed: Some(7),
        preprocess: Normalize::imagenet().into(),
        ..LoaderOptions::default()
    };
    let (id, name) = (&backend.info().id, &backend.info().name);
    println!("\n{id} ({name}), batches of {batch_size}, beside a consumer that computes for {compute_us} us a batch");
    let auto = AutoOptions { compute: Duration::from_micros(compute_us.into()), ..AutoOptions::default() };
    let choose = |_| backend.tune(source, options.clone(), &auto).expect("the default runs");
    let choices: Vec<Tuned> = (0..CHOICES).map(choose).collect();
    for Tuned { strategy, workers, took, why, .. } in &choices {
        println!("  auto: {strategy} x {workers} after {:.2} s: {why}", took.as_secs_f64());
    }
    let settings = settings(backend, source, &options, &choices, compute_us);
    let report = backend.compare(Arc::clone(source), &Plan::new(settings, options, time), &mut ());
    let rates = |(strategy, workers): (Strategy, usize)| -> Vec<f64> {
        let row = report
            .configurations
            .iter()
            .find(|row| row.settings.strategy == strategy && (row.settings.workers == workers || strategy.is_direct()));
        row.map_or_else(Vec::new, |row| row.rounds.iter().map(|round| round.gb_s).collect())
    };
    let mut best: Option<(f64, (Strategy, usize))> = None;
    for row in &report.configurations {
        let which = (row.settings.strategy, row.settings.workers);
        let Some(Summary { median, spread, n, .. }) = Summary::of(&rates(which)) else {
            println!("  {} x {}: {:?}", which.0, which.1, row.status);
            continue;
        };
        let step = row.figures.get("step_us").unwrap_or(f64::NAN);
        println!("  {} x {}: {step:.0} us a step, {median:.2} ± {spread:.2} GB/s ({n} rounds)", which.0, which.1);
        best = best.filter(|&(rate, _)| rate >= median).or(Some((median, which)));
    }
    let Some((_, best)) = best else { return };
    for Tuned { strategy, workers, .. } in &choices {
        judge((*strategy, *workers), &rates((*strategy, *workers)), best, &rates(best));
    }
}

/// What is constant in memory, with one worker, then doubled up to the cores, and with what was chosen.
fn settings(
    backend: &AnyBackend,
    source: &Arc<dyn Source>,
    options: &LoaderOptions,
    choices: &[Tuned],
    compute_us: u32,
) -> Vec<Settings> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|&c| c < cores).collect();
    counts.push(cores);
    counts.extend(choices.iter().map(|tuned| tuned.workers));
    counts.sort_unstable();
    counts.dedup();
    let runs = |strategy: &&Strategy| {
        !strategy.allocates_per_batch()
            && (!strategy.is_direct() || source.direct().is_some())
            && backend.supports(**strategy).is_ok()
    };
    let LoaderOptions { batch_size, slots, outputs, .. } = *options;
    let sample_bytes = source.layout().byte_len() as u64;
    let with = |strategy: Strategy| {
        let counts = if strategy.is_direct() { vec![options.workers] } else { counts.clone() };
        counts.into_iter().map(move |workers| Settings {
            strategy,
            sample_bytes,
            batch_size,
            workers,
            slots,
            outputs,
            compute_us,
            hand_over: HandOver::Queued,
        })
    };
    Strategy::ALL.iter().filter(runs).flat_map(|&strategy| with(strategy)).collect()
}

fn judge(chosen: (Strategy, usize), ours: &[f64], best: (Strategy, usize), theirs: &[f64]) {
    let (Some(own), Some(other)) = (Summary::of(ours), Summary::of(theirs)) else { return };
    let ratio = Ratio::of(ours, theirs).map_or(own.median / other.median, |ratio| ratio.ratio);
    let overlapping = own.median + own.spread >= other.median - other.spread;
    let verdict = match (ratio >= 0.97, overlapping) {
        _ if own.n.min(other.n) < MIN_ROUNDS => "too few rounds to tell: give it more time",
        (true, _) => "the best, or within 3% of it",
        (false, true) => "NOT within 3%, but overlapping",
        (false, false) => "NEITHER within 3% nor overlapping",
    };
    println!("  chosen {} x {} is {ratio:.3} of the best, {} x {}: {verdict}", chosen.0, chosen.1, best.0, best.1);
}
