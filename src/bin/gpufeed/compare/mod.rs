//! `gpufeed compare`: which staging strategy feeds each device fastest, by how much, and why.

mod args;
mod baseline;
mod child;
mod crossover;
mod events;
mod files;
mod job;
pub mod overlap;
mod personal;
mod size_args;
pub mod summary;
mod sweep;
mod table;
#[cfg(test)]
pub mod testing;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result};
use gpufeed::AdapterInfo;
use gpufeed::measure::report::{Data, DeviceReport, DeviceStatus, Report, Settings, Status};

pub use args::CompareArgs;
use baseline::Baseline;
pub use baseline::compare_paced;
pub use child::{Ending, compare_device, supervise};
use events::EventPrinter;
use files::Files;
use job::{Feed, Job, Line, of_all_sizes};
use personal::Personal;

use crate::report::tells;
use crate::{fallback, interrupt, output};

/// Compares on each device in turn; what was measured is shown, and written, even if the rest fails.
pub fn compare(args: &CompareArgs) -> Result<ExitCode> {
    interrupt::catch()?;
    args.check()?;
    let baseline = args.baseline.baseline.as_deref().map(Baseline::open).transpose()?;
    let files = Files::new(&args.output, &args.inputs()?)?;
    let feeds = Feed::prepare(args)?;
    let found = gpufeed::devices();
    let chosen = args.choose(&found)?;
    let command = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let data: Vec<Data> = feeds.iter().map(|(_, data)| data.clone()).collect();
    let mut report = Report::new(of_all_sizes(&data), command);
    let personal = Personal::here(args.data.as_deref());
    if args.devices.is_empty()
        && let Some(text) = fallback::notice(&found)
    {
        output::note(format_args!("{text}\n"));
    }
    output::print(table::head(&report))?;
    if let (Some(Baseline::Build), Some(path)) = (&baseline, &args.baseline.baseline) {
        return against_build(path, args, jobs(args, &feeds, &chosen), &chosen);
    }
    let jobs = jobs(args, &feeds, &chosen);
    for adapter in &chosen {
        if interrupt::requested() {
            break;
        }
        output::print(format_args!("\n{}", table::title(adapter)))?;
        let of_device = jobs.iter().filter(|job| job.device == adapter.id);
        let Some(device) = measure_all(adapter, of_device, args, report.debug_build)? else { continue };
        output::print(summary::device(&device, &report))?;
        output::print(table::device(&device, report.debug_build))?;
        report.devices.push(device);
        report.interrupted = interrupt::requested();
        files.write(&personal.scrub(&report))?;
    }
    report.interrupted = interrupt::requested();
    let shared = personal.scrub(&report);
    files.write(&shared)?;
    say_what_is_told(args, &shared)?;
    finish(&report, baseline.as_ref(), args)
}

/// What the JSON that was written tells whoever is given it.
fn say_what_is_told(args: &CompareArgs, shared: &Report) -> Result<()> {
    let Some(name) = args.output.json.as_deref().and_then(Path::file_name) else { return Ok(()) };
    output::print(format_args!("\n{}", output::paragraph(0, &tells(&name.to_string_lossy(), shared))))
}

/// What is said at the end, and the exit code.
fn finish(report: &Report, baseline: Option<&Baseline>, args: &CompareArgs) -> Result<ExitCode> {
    if let Some(closing) = summary::closing(report) {
        output::print(format_args!("\n{closing}"))?;
    }
    match (exit_code(report), baseline) {
        (ExitCode::SUCCESS, Some(Baseline::Record(then))) => baseline::against_record(then, &args.baseline, report),
        (code, _) => Ok(code),
    }
}

/// What each device can run, against another build.
fn against_build(path: &Path, args: &CompareArgs, mut jobs: Vec<Job>, chosen: &[&AdapterInfo]) -> Result<ExitCode> {
    for job in &mut jobs {
        let adapter = chosen.iter().find(|adapter| adapter.id == job.device);
        job.settings.retain(|settings| adapter.is_some_and(|adapter| runs(adapter, settings)));
    }
    baseline::against_build(path, &args.baseline, &jobs)
}

/// What each device does, one job for each size of samples, and its share of the time: by what it can run, as every configuration takes the
/// same.
fn jobs(args: &CompareArgs, feeds: &[(Feed, Data)], chosen: &[&AdapterInfo]) -> Vec<Job> {
    // Opening a device and copying for its ceilings take their time too.
    let share =
        |adapter: &AdapterInfo| 1 + args.settings(adapter).iter().filter(|settings| runs(adapter, settings)).count();
    let all: usize = chosen.iter().map(|adapter| share(adapter) * feeds.len()).sum();
    let job = |adapter: &AdapterInfo, number: usize, (feed, data): &(Feed, Data)| {
        // What cannot run is listed once.
        let listed = |settings: &Settings| number == 0 || runs(adapter, settings);
        let of_size = |settings: Settings| Settings { sample_bytes: data.sample_bytes, ..settings };
        Job {
            device: adapter.id.clone(),
            settings: args.settings(adapter).into_iter().filter(listed).map(of_size).collect(),
            feed: feed.clone(),
            budget_s: args.sizes.time * share(adapter) as f64 / all as f64,
        }
    };
    let of_device = |adapter: &&AdapterInfo| {
        feeds.iter().enumerate().map(|(number, fed)| job(adapter, number, fed)).collect::<Vec<_>>()
    };
    chosen.iter().flat_map(of_device).collect()
}

/// Whether a device can run what is asked.
fn runs(adapter: &AdapterInfo, settings: &Settings) -> bool {
    adapter.strategies.iter().any(|support| support.strategy == settings.strategy && support.missing.is_none())
}

/// What is found on one device, with samples of every size; `None` without any.
fn measure_all<'a>(
    adapter: &AdapterInfo,
    jobs: impl Iterator<Item = &'a Job>,
    args: &CompareArgs,
    debug_build: bool,
) -> Result<Option<DeviceReport>> {
    let mut found: Option<DeviceReport> = None;
    for job in jobs.take_while(|_| !interrupt::requested()) {
        if let Some(sizes) = job.settings.first().filter(|_| !args.sizes.samples().is_empty()) {
            output::note(format_args!("{}: samples of {} bytes", adapter.id, sizes.sample_bytes));
        }
        let deadline = args.sizes.deadline(Duration::from_secs_f64(job.budget_s));
        let of_size = measure(adapter, job, deadline, debug_build)?;
        match &mut found {
            Some(device) => device.merge(of_size),
            None => found = Some(of_size),
        }
    }
    Ok(found)
}

/// What a process of its own finds on one device.
fn measure(adapter: &AdapterInfo, job: &Job, deadline: Duration, debug_build: bool) -> Result<DeviceReport> {
    let mut command = Command::new(std::env::current_exe().context("gpufeed's own file is not known")?);
    command.arg("compare-device");
    let text = serde_json::to_string(job).context("the job cannot be sent to the process on the device")?;
    let printer = EventPrinter::new(adapter, job.settings.len(), debug_build);
    let mut latest = DeviceReport::new(adapter, &job.settings);
    let (mut done, mut failure) = (false, None);
    let ending = supervise(command, &text, deadline, &interrupt::requested, &mut |line| {
        match line {
            Line::Event { event, so_far } => {
                printer.event(&event);
                latest = so_far;
            }
            Line::Done { report } => (latest, done) = (report, true),
            Line::Failed { message } => failure = Some(message),
        }
        Ok(())
    })?;
    drop(printer);
    if !done {
        latest.status = broken_off(ending, failure);
        latest.summarise();
    } else if let Ending::Crashed(message) = ending {
        output::note(format_args!("{}: after all was measured, {message}", adapter.id));
    }
    Ok(latest)
}

/// What became of a device whose process did not get to its end.
fn broken_off(ending: Ending, failure: Option<String>) -> DeviceStatus {
    match (failure, ending) {
        (Some(message), _) => DeviceStatus::Error { message },
        (None, _) if interrupt::requested() => DeviceStatus::Interrupted,
        (None, Ending::TimedOut(time)) => DeviceStatus::Timeout { seconds: time.as_secs_f64() },
        (None, Ending::Crashed(message)) => DeviceStatus::Crashed { message },
        (None, Ending::Exited) => {
            DeviceStatus::Crashed { message: "the process on this device ended without a result".to_owned() }
        }
    }
}

/// Wrong data is a failure, whatever else went well; so is nothing measured at all.
fn exit_code(report: &Report) -> ExitCode {
    let mut rows = report.devices.iter().flat_map(|device| &device.configurations);
    let wrong = rows.clone().any(|row| matches!(row.status, Status::Failed { wrong_data: true, .. }));
    if wrong {
        ExitCode::FAILURE
    } else if report.interrupted {
        ExitCode::from(interrupt::EXIT_CODE)
    } else if rows.any(|row| row.is_measured()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;

    use super::*;

    #[test]
    fn wrong_data_fails_whatever_else_was_measured() {
        let code = |report: &Report| format!("{:?}", exit_code(report));
        let is = |code: u8| format!("{:?}", ExitCode::from(code));
        let good = testing::device("host", &[(Strategy::Memcpy, 8, 100.0)]);
        assert_eq!(code(&testing::report(vec![good.clone()])), is(0));
        assert_eq!(code(&testing::report(Vec::new())), is(1));
        let mut bad = good.clone();
        let failed = |wrong_data| Status::Failed { message: String::new(), wrong_data };
        bad.configurations[0].status = failed(false);
        assert_eq!(code(&testing::report(vec![bad.clone()])), is(1), "nothing was measured");
        assert_eq!(code(&testing::report(vec![bad.clone(), good.clone()])), is(0));
        bad.configurations[0].status = failed(true);
        let mut report = testing::report(vec![good, bad]);
        assert_eq!(code(&report), is(1));
        report.interrupted = true;
        assert_eq!(code(&report), is(1), "an interruption does not hide it");
        report.devices.pop();
        assert_eq!(code(&report), is(130));
    }

    #[test]
    fn a_process_that_breaks_off_is_a_status() {
        assert_eq!(broken_off(Ending::Exited, Some("no".into())), DeviceStatus::Error { message: "no".into() });
        assert_eq!(broken_off(Ending::Crashed("x".into()), None), DeviceStatus::Crashed { message: "x".into() });
        let timeout = broken_off(Ending::TimedOut(Duration::from_secs(2)), None);
        assert_eq!(timeout, DeviceStatus::Timeout { seconds: 2.0 });
    }
}
