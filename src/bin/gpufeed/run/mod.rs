//! `gpufeed run`.

mod args;
mod progress;
mod report;
mod save;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, ensure};
use gpufeed::{AnyBatch, AnyLoader, LastBatch};

pub use args::RunArgs;
use progress::Progress;
use report::Report;
use save::Saver;

use crate::args::open_source;
use crate::{fallback, interrupt, output};

/// How often the loader looks for finished batches, and then some.
const SETTLE: Duration = Duration::from_millis(5);

/// How loading ended.
struct Ending {
    elapsed: Duration,
    interrupted: bool,
    error: Option<Error>,
}

/// Loads the samples, and tells what was done even if an error or Ctrl-C ended it early.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    let source = open_source(&args.data, &args.images)?;
    let options = args.options(args.feed.preprocess(source.layout())?);
    let device = fallback::open(&args.device)?;
    let mut saver = args.save.as_deref().map(Saver::create).transpose()?;
    let mut loader = device.loader(source, options)?;
    ensure!(
        loader.batches_per_epoch() > 0,
        "{} samples do not fill a batch of {}, and --drop-last leaves them out",
        loader.source().len(),
        args.loading.batch_size
    );
    // Until here Ctrl-C ends the command at once: nothing was measured yet.
    interrupt::catch()?;
    let ending = load(&mut loader, args.loading.epochs, saver.as_mut());
    // What the device has finished last is counted when the loader looks for it.
    thread::sleep(SETTLE);
    let report = Report::new(&loader, args, &ending);
    let printed = if args.json { output::print_json(&report) } else { output::print(report.text()) };
    // A reader of the report that has gone away does not make the run a success.
    if let Some(error) = ending.error {
        return Err(error);
    }
    printed?;
    Ok(if ending.interrupted { ExitCode::from(interrupt::EXIT_CODE) } else { ExitCode::SUCCESS })
}

fn load(loader: &mut AnyLoader, epochs: u32, saver: Option<&mut Saver>) -> Ending {
    let sample = loader.source().layout();
    let samples = samples_per_epoch(loader).saturating_mul(epochs.into());
    let progress = Progress::new(samples, report::noun(sample), sample.byte_len() as u64);
    let start = Instant::now();
    let mut last = None;
    let delivered = all_epochs(loader, epochs, &mut last, saver, &progress);
    let delivered = delivered.and_then(|complete| finish(last.as_ref()).map(|()| complete));
    let elapsed = start.elapsed();
    let (interrupted, error) = match delivered {
        Ok(complete) => (!complete, None),
        Err(error) => (false, Some(error)),
    };
    Ending { elapsed, interrupted, error }
}

/// Whether they were delivered whole; `last` is the last batch then.
fn all_epochs(
    loader: &mut AnyLoader,
    epochs: u32,
    last: &mut Option<AnyBatch>,
    mut saver: Option<&mut Saver>,
    progress: &Progress,
) -> Result<bool> {
    for epoch in 0..epochs {
        if !one_epoch(loader, epoch, last, saver.as_deref_mut(), progress)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the epoch was delivered whole.
fn one_epoch(
    loader: &mut AnyLoader,
    epoch: u32,
    last: &mut Option<AnyBatch>,
    mut saver: Option<&mut Saver>,
    progress: &Progress,
) -> Result<bool> {
    let mut epoch = loader.epoch(epoch.into());
    while epoch.remaining() > 0 {
        if interrupt::requested() {
            return Ok(false);
        }
        // With one output there is no next batch while this one is held.
        drop(last.take());
        let Some(batch) = epoch.next().transpose()? else { break };
        if let Some(saver) = saver.as_deref_mut() {
            saver.save(&batch)?;
        }
        progress.add(batch.len() as u64);
        *last = Some(batch);
    }
    Ok(true)
}

/// Batches are delivered as soon as their work is queued: the clock runs until the device has done it.
fn finish(last: Option<&AnyBatch>) -> Result<()> {
    last.map_or(Ok(()), |batch| batch.read().map(drop).context("the last batch cannot be read back"))
}

fn samples_per_epoch(loader: &AnyLoader) -> u64 {
    match loader.options().last_batch {
        LastBatch::Drop => loader.batches_per_epoch() * loader.options().batch_size as u64,
        LastBatch::Short => loader.source().len(),
    }
}
