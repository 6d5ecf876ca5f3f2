//! Which pictures of text are upside down? gpufeed reads them and makes the network's input, burn runs PP-OCR's network on the same wgpu
//! device, and the answers are compared with stored ones of onnxruntime.
//!
//! ```sh
//! cargo run   # README.md says how to get the network's weights first
//! ```

mod device;
mod expected;
mod network;
mod options;
mod tensor;
mod weights;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::source::ImageOptions;
use gpufeed::{Anchor, ChannelOrder, Filter, FolderSource, Loader, LoaderOptions, Pipeline, Resize};

use network::{INPUT, Network};
use options::Options;
use weights::Weights;

/// Height and width of the pictures, which are photographs of one line of text each.
const PICTURE: [usize; 2] = [64, 224];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all answers are right.
fn run() -> Result<bool> {
    let options = Options::parse(std::env::args().skip(1))?;
    let missing =
        || format!("no weights at {}: {} says how to get them", options.model.display(), here("README.md").display());
    ensure!(options.model.exists(), missing());
    let weights = Weights::open(&options.model)?;

    let (backend, device) = options.opener.open()?;
    let network = Network::new(&weights, &device)?;
    let images = ImageOptions { height: PICTURE[0], width: PICTURE[1], ..ImageOptions::default() };
    let pictures = Arc::new(FolderSource::open(here("pictures"), images.into())?);
    let mut loader = Loader::new(
        &backend,
        Arc::<FolderSource>::clone(&pictures),
        LoaderOptions {
            batch_size: options.batch,
            strategy: options.strategy,
            preprocess: input().into(),
            ..LoaderOptions::default()
        },
    )?;
    println!("{}, opened by {:?}, {}", backend.info().name, options.opener, loader.strategy());

    let mut answers = HashMap::new();
    look(&mut loader, 0, &network, &device, |index, answer| {
        answers.insert(index, answer);
        Ok(())
    })?;
    if !report(&answers, &pictures)? {
        return Ok(false);
    }
    measure(&mut loader, options.epochs, &network, &device, &answers)?;
    Ok(true)
}

/// PP-OCR's own preprocessing: the height of the input and the picture's proportions, blue, green and red from -1 to 1, and zeros to the
/// right. Its pixels come from OpenCV's `INTER_LINEAR`.
fn input() -> Pipeline {
    let resize = Resize::Letterbox { height: INPUT[0], width: INPUT[1], anchor: Anchor::TopLeft };
    let input = Pipeline::new().with_resize(resize).with_filter(Filter::Bilinear, false);
    Pipeline { fill: [127.5; 3], ..input.with_channels(ChannelOrder::Bgr, &[0.5; 3], &[0.5; 3]) }
}

/// Looks at all pictures once, and gives each one's index and probability of being upside down to `answered`. How long each batch took,
/// from asking for it to its answers.
fn look(
    loader: &mut Loader<WgpuBackend>,
    epoch: u64,
    network: &Network,
    device: &Device,
    mut answered: impl FnMut(u64, f64) -> Result<()>,
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut asked = Instant::now();
    for batch in loader.epoch(epoch) {
        let batch = batch?;
        let pictures = tensor::tensor::<4>(&batch, device)?;
        let indices = batch.indices().to_vec();
        drop(batch); // Its next pictures may come.
        let answers = network.forward(pictures).try_into_data()?.try_into_vec::<f32>()?;
        times.push(asked.elapsed());
        asked = Instant::now();
        for (index, probabilities) in indices.into_iter().zip(answers.chunks_exact(2)) {
            answered(index, f64::from(probabilities[1]))?;
        }
    }
    Ok(times)
}

/// Prints each answer beside onnxruntime's. Whether all are right, and none is missing.
fn report(answers: &HashMap<u64, f64>, pictures: &FolderSource) -> Result<bool> {
    let path = |index: &u64| pictures.path(*index)?.strip_prefix(here("pictures")).ok().map(Path::to_path_buf);
    let answers: HashMap<PathBuf, f64> =
        answers.iter().filter_map(|(index, answer)| Some((path(index)?, *answer))).collect();
    let expected = expected::read(&here("expected.csv"))?;
    println!("{:20} {:>12} {:>15} {:>22}", "picture", "upside down", "to onnxruntime", "to it, pixels rounded");
    let (mut right, mut largest) = (expected.len() == answers.len(), 0.0_f64);
    for line in &expected {
        let answer = answers.get(Path::new(&line.picture)).with_context(|| format!("no answer to {}", line.picture))?;
        let (difference, rounded) = (answer - line.in_floats, answer - line.rounded);
        let mark = if line.agrees(*answer) { "" } else { "  WRONG" };
        println!("{:20} {answer:>12.6} {difference:>15.1e} {rounded:>22.1e}{mark}", line.picture);
        right &= line.agrees(*answer);
        largest = largest.max(difference.abs());
    }
    println!("largest difference to onnxruntime: {largest:.1e}, allowed {:.0e}", expected::TOLERANCE);
    Ok(right)
}

/// Prints pictures a second, latencies, and what holds the loader back, unless an answer is another one than before.
fn measure(
    loader: &mut Loader<WgpuBackend>,
    epochs: u64,
    network: &Network,
    device: &Device,
    before: &HashMap<u64, f64>,
) -> Result<()> {
    loader.reset_stats();
    let (mut times, mut pictures, start) = (Vec::new(), 0_u32, Instant::now());
    for epoch in 1..=epochs {
        times.extend(look(loader, epoch, network, device, |index, answer| {
            pictures += 1;
            let same = before.get(&index).is_some_and(|before| (answer - before).abs() <= expected::TOLERANCE);
            ensure!(
                same,
                "in epoch {epoch} picture {index} had the answer {answer}, and {:?} before",
                before.get(&index)
            );
            Ok(())
        })?);
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let Some(last) = times.len().checked_sub(1) else { return Ok(()) };
    let milliseconds = |share: usize| times[last * share / 100].as_secs_f64() * 1e3;
    println!(
        "{:.0} pictures/s; a batch, from asking for it to its answers: p50 {:.2} ms, p99 {:.2} ms",
        f64::from(pictures) / seconds,
        milliseconds(50),
        milliseconds(99)
    );
    println!("{}", loader.verdict());
    Ok(())
}

/// A file of this example.
fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
