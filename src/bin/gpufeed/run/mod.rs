//! `gpufeed run`.

mod args;
mod auto;
mod bar;
mod batches;
mod ending;
mod estimate;
mod explain;
mod load;
mod observe;
mod open;
mod report;
mod save;
mod state;
mod sum;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Error, Result, ensure};

pub use args::RunArgs;
use ending::{Ending, Stopped};
use open::DeviceRun;
use report::Report;
use sum::Reports;

use crate::args::open_source;
use crate::{data, interrupt, output};

/// How often the loader looks for finished batches, and then some.
const SETTLE: Duration = Duration::from_millis(5);

/// Loads the samples, and reports what was done even if an error or Ctrl-C ended it early.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    let share = args.check()?;
    let source = open_source(&args.data, &args.images)?;
    data::note_left_out(&args.data, &source.summary());
    let inputs = args.check_outputs(&source)?;
    let state = args.batches.state_file(args.devices.len(), &inputs)?;
    let mut observed = args.observe.prepare(&inputs)?;
    let mut runs = open::open(args, share, &source, &observed, &inputs)?;
    // Until here Ctrl-C ends the command at once: nothing was measured yet.
    interrupt::catch()?;
    let monitors = runs.iter().map(|run| (run.loader.info().id.clone(), run.loader.monitor())).collect();
    let lines = observed.start(monitors)?;
    let endings = load::load(&mut runs, args.loading.epochs, state.as_ref());
    let kept = state.map_or(Ok(()), |state| state.close());
    // What the device has finished last is counted when the loader looks for it.
    thread::sleep(SETTLE);
    let failed = endings.iter().any(|ending| ending.error.is_some());
    let delivered = something_delivered(&runs, &endings);
    let written = lines.map_or(Ok(()), |lines| lines.finish(failed));
    let printed = print(args, runs, &endings);
    let written = written.and(observed.finish(failed));
    let interrupted = endings.iter().any(|ending| ending.interrupted);
    let errors = endings.into_iter().filter_map(|ending| ending.error).filter(|error| !error.is::<Stopped>());
    // A reader of the report that has gone away does not make the run a success.
    first(errors.chain(kept.err()).chain(delivered.err()))?;
    written?;
    printed?;
    Ok(if interrupted { ExitCode::from(interrupt::EXIT_CODE) } else { ExitCode::SUCCESS })
}

/// Whoever trained on nothing shall not think that they trained: a run of which every sample was bad has failed.
fn something_delivered(runs: &[DeviceRun], endings: &[Ending]) -> Result<()> {
    let ended_early = endings.iter().any(|ending| ending.interrupted || ending.error.is_some());
    let delivered: u64 = runs.iter().map(|run| run.loader.stats().samples).sum();
    let bad: u64 = runs.iter().map(|run| run.loader.bad_samples().skipped).sum();
    let first = runs.iter().find_map(|run| run.loader.bad_samples().listed.into_iter().next());
    let first = first.map(|first| format!("; the first is {}: {}", first.index, first.cause)).unwrap_or_default();
    ensure!(ended_early || delivered > 0 || bad == 0, "nothing was delivered: all {bad} samples are bad{first}");
    Ok(())
}

fn print(args: &RunArgs, runs: Vec<DeviceRun>, endings: &[Ending]) -> Result<()> {
    let report =
        |(run, ending): (&DeviceRun, &Ending)| Report::new(&run.loader, args, ending).with_auto(run.tuned.as_ref());
    let mut devices: Vec<Report> = runs.iter().zip(endings).map(report).collect();
    if args.observe.explain {
        estimate::estimate(runs, &mut devices);
    }
    match devices.pop() {
        Some(only) if devices.is_empty() => {
            if args.json {
                output::print_json(&only)
            } else {
                output::print(only.text())
            }
        }
        last => {
            devices.extend(last);
            let reports = Reports::new(devices);
            if args.json { output::print_json(&reports) } else { output::print(reports.text()) }
        }
    }
}

/// The first error is the command's; others, of devices that failed at the same time, are printed before it.
fn first(errors: impl Iterator<Item = Error>) -> Result<()> {
    let mut errors = errors;
    let Some(first) = errors.next() else { return Ok(()) };
    errors.for_each(|error| output::error(&error));
    Err(first)
}
