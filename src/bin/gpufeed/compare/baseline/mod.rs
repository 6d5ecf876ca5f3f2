//! `gpufeed compare --baseline`: is this build slower than another, or than it was?
//!
//! Given an executable, both builds run at once and take rounds in turn: what else the machine does meets both. Given a report, what is
//! measured now is compared with what was measured then, and the host's memcpy shows how far the machine itself has changed.

mod args;
mod build;
mod paced;
mod record;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use gpufeed::measure::report::{DeviceReport, Report, Settings};
use gpufeed::measure::{Gate, RatioInterval};

pub use args::BaselineArgs;
pub use paced::{PacedJob, compare_paced};

use super::job::Job;
use crate::{output, units};

/// What a comparison is held against.
pub enum Baseline {
    /// An earlier report.
    Record(Box<Report>),
    /// Another build.
    Build,
}

impl Baseline {
    /// Reads the start of a file to see what it is, and a report whole.
    ///
    /// # Errors
    /// It cannot be read, or is neither.
    pub fn open(path: &Path) -> Result<Self> {
        let named = || format!("--baseline {}", path.display());
        let mut start = [0; 64];
        let read = fs::File::open(path).and_then(|mut file| file.read(&mut start)).with_context(named)?;
        let text = start[..read].trim_ascii_start();
        if !text.starts_with(b"{") {
            return if is_program(path, text) {
                Ok(Self::Build)
            } else {
                Err(anyhow::anyhow!("{}: neither a report nor a program", named()))
            };
        }
        crate::report_file::read(path).map(Box::new).map(Self::Record).with_context(named)
    }
}

/// Whether it can be run: by its magic number where there is no such right as to execute.
fn is_program(path: &Path, start: &[u8]) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = start;
        fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        start.starts_with(b"MZ")
    }
}

/// Whether this build is slower than the baseline's with any of these configurations.
///
/// # Errors
/// A build cannot go on, or is of another kind.
pub fn against_build(path: &Path, args: &BaselineArgs, jobs: &[Job]) -> Result<ExitCode> {
    let mut verdicts = Vec::new();
    for job in jobs {
        for settings in &job.settings {
            let paced = PacedJob { job: Job { settings: vec![*settings], ..job.clone() }, slice_s: ROUND_S };
            let name = called(&job.device, settings);
            let found = build::compare(path, &paced, args.max_slowdown.0, &mut |run, ratio| {
                output::note(format_args!("{name}: run {run}: {ratio:.3} times the baseline's rate"));
            })?;
            if found.ours.debug_build != found.theirs.debug_build {
                bail!("one of the two is a debug build");
            }
            if (&found.ours.device, &found.ours.driver) != (&found.theirs.device, &found.theirs.driver) {
                bail!("the two builds opened different devices: {} and {}", found.ours.device, found.theirs.device);
            }
            let debug = if found.ours.debug_build { "; debug builds" } else { "" };
            let rates = format!(
                "{} samples/s against {} by {}{debug}",
                units::digits(found.ours_s),
                units::digits(found.theirs_s),
                found.theirs.gpufeed
            );
            output::print(format_args!("{name}: {} ({rates})", describe(&found.interval, args.max_slowdown.0)))?;
            verdicts.push(decided(found.gate, &found.interval, args.max_slowdown.0));
        }
    }
    Ok(exit_code(&verdicts))
}

/// How long a round of one build is, if its fewest batches take no longer: short, so that a change of the machine meets both builds.
const ROUND_S: f64 = 0.005;

/// Whether what was measured is slower than what a report has; says so device by device.
///
/// # Errors
/// The report is of other data, another build, device or driver.
pub fn against_record(then: &Report, args: &BaselineArgs, now: &Report) -> Result<ExitCode> {
    if let Some(why) = record::refusal(now, then) {
        bail!("--baseline: {why}");
    }
    let max_slowdown = args.max_slowdown.0;
    output::print(format_args!("\nAgainst the baseline of {}, gpufeed {}", then.date, then.gpufeed))?;
    let mut verdicts = Vec::new();
    for device in &now.devices {
        let old = record::same_device(device, then, args.other_device)
            .map_err(|why| anyhow::anyhow!("--baseline: {why}; --other-device compares all the same"))?;
        verdicts.extend(of_device(device, old, max_slowdown)?);
    }
    if verdicts.is_empty() {
        bail!("--baseline: none of these settings was measured then");
    }
    Ok(exit_code(&verdicts))
}

fn of_device(device: &DeviceReport, old: &DeviceReport, max_slowdown: f64) -> Result<Vec<bool>> {
    let mut verdicts = Vec::new();
    for row in device.configurations.iter().filter(|row| row.is_measured()) {
        let name = called(&device.adapter.id, &row.settings);
        let Some(found) = record::then((device, row), old, max_slowdown) else { continue };
        let Some(interval) = found.interval else {
            bail!("--baseline: {name}: too few rounds, then or now, to compare; --time makes more");
        };
        let said = describe(&interval, max_slowdown);
        let changed = found.reference.filter(|ratio| (ratio - 1.0).abs() > max_slowdown / 2.0);
        let changed = changed.map(|ratio| {
            format!("; the host's own memcpy is {ratio:.2} times as fast as then, so that the machine has changed: a build as the baseline is measured in turn")
        });
        output::print(output::paragraph(2, &format!("{name}: {said}{}.", changed.unwrap_or_default())))?;
        verdicts.push(decided(found.gate, &interval, max_slowdown));
    }
    Ok(verdicts)
}

fn called(device: &str, settings: &Settings) -> String {
    let Settings { strategy, batch_size, workers, slots, .. } = settings;
    format!("{device} {strategy} (batch {batch_size}, {workers} workers, {slots} slots)")
}

/// What the interval says in words.
fn describe(interval: &RatioInterval, max_slowdown: f64) -> String {
    let RatioInterval { ratio, low, high, samples, .. } = interval;
    let verdict = match interval.gate(max_slowdown) {
        Gate::Passes => "passes",
        Gate::Fails => "TOO SLOW",
        Gate::Undecided if *ratio < 1.0 - max_slowdown => "TOO SLOW, though not surely",
        Gate::Undecided => "passes, though not surely",
    };
    format!(
        "{verdict}: {ratio:.3} times the baseline's rate, {low:.3} to {high:.3} over {samples} samples; at least {:.3} is allowed",
        1.0 - max_slowdown
    )
}

/// Whether it is too slow: where the interval does not decide, the ratio itself does.
fn decided(gate: Gate, interval: &RatioInterval, max_slowdown: f64) -> bool {
    match gate {
        Gate::Passes => false,
        Gate::Fails => true,
        Gate::Undecided => interval.ratio < 1.0 - max_slowdown,
    }
}

fn exit_code(too_slow: &[bool]) -> ExitCode {
    if too_slow.contains(&true) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
