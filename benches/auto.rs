//! The automatic choice against the best there is: `tune` several times, then every strategy that keeps memory constant with several
//! numbers of workers, measured in turn and verified, as `gpufeed compare` does.
//!
//! ```sh
//! cargo bench --bench auto -- 30 vulkan:0 cuda:0    # half a minute for each comparison; all devices if none is named
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

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let seconds = given.iter().find_map(|arg| arg.parse::<u64>().ok()).unwrap_or(30);
    let mut wanted: Vec<String> = given.into_iter().filter(|arg| arg.parse::<u64>().is_err()).collect();
    if wanted.is_empty() {
        wanted = devices().into_iter().map(|device| device.id).collect();
    }
    let layout = SampleLayout::image(224, 224, 3).expect("an image");
    let source: Arc<dyn Source> = Arc::new(random_images(layout, IMAGES, 1).expect("in memory"));
    for device in wanted {
        match AnyBackend::open(&device) {
            Ok(backend) => {
                BATCH_SIZES.iter().for_each(|&size| bench(&backend, &source, size, Duration::from_secs(seconds)));
            }
            Err(error) => println!("{device}: {error}"),
        }
    }
}

fn bench(backend: &AnyBackend, source: &Arc<dyn Source>, batch_size: usize, time: Duration) {
    let options = LoaderOptions {
        batch_size,
        seed: Some(7),
        preprocess: Normalize::imagenet().into(),
        ..LoaderOptions::default()
    };
    println!("\n{} ({}), batches of {batch_size}", backend.info().id, backend.info().name);
    let choose = |_| backend.tune(source, options.clone(), &AutoOptions::default()).expect("the default runs");
    let choices: Vec<Tuned> = (0..CHOICES).map(choose).collect();
    for Tuned { strategy, workers, took, why, .. } in &choices {
        println!("  auto: {strategy} x {workers} after {:.2} s: {why}", took.as_secs_f64());
    }
    let settings = settings(backend, source, &options, &choices);
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
        println!("  {} x {}: {median:.2} ± {spread:.2} GB/s ({n} rounds)", which.0, which.1);
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
    let with = |strategy: Strategy| {
        let counts = if strategy.is_direct() { vec![options.workers] } else { counts.clone() };
        counts.into_iter().map(move |workers| Settings {
            strategy,
            batch_size,
            workers,
            slots,
            outputs,
            compute_us: 0,
            hand_over: HandOver::Queued,
        })
    };
    Strategy::ALL.iter().filter(runs).flat_map(|&strategy| with(strategy)).collect()
}

fn judge(chosen: (Strategy, usize), ours: &[f64], best: (Strategy, usize), theirs: &[f64]) {
    let (Some(own), Some(other)) = (Summary::of(ours), Summary::of(theirs)) else { return };
    let ratio = Ratio::of(ours, theirs).map_or(own.median / other.median, |ratio| ratio.ratio);
    let overlapping = own.median + own.spread >= other.median - other.spread;
    let verdict = match (ratio >= 0.9, overlapping) {
        _ if own.n.min(other.n) < MIN_ROUNDS => "too few rounds to tell: give it more time",
        (true, true) => "within 10%, overlapping",
        (true, false) => "within 10%",
        (false, true) => "overlapping",
        (false, false) => "NEITHER within 10% nor overlapping",
    };
    println!("  chosen {} x {} is {ratio:.3} of the best, {} x {}: {verdict}", chosen.0, chosen.1, best.0, best.1);
}
