//! What is tried in a process of its own: a driver may crash, and the system may end who takes too much memory.

use std::io;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use gpufeed::{AnyBackend, LoaderOptions, Preprocess, SampleLayout, Strategy, SyntheticSource};
use serde::{Deserialize, Serialize};

use super::largest::largest;
use super::memlock;
use crate::compare::{Ending, supervise};
use crate::{interrupt, output};

/// The bytes of a sample of a trial ring.
const SAMPLE: u64 = 4096;
/// How long a process may take.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long the device's copy is timed.
const COPYING: Duration = Duration::from_millis(400);
/// Large enough for any link's full speed.
const COPIED: usize = 64 << 20;

/// What to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// The most memory that can be page-locked, up to `most` bytes.
    Lock { most: u64 },
    /// The largest ring of `slots` slots on a device, up to `most` bytes.
    Ring { device: String, slots: usize, most: u64 },
    /// How fast a device copies.
    Copy { device: String },
}

/// What is found out, one line each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// This many bytes fit; more may.
    Fits { bytes: u64, strategy: Option<Strategy> },
    /// The device copies so many bytes a second.
    Copies { bytes_s: f64 },
    /// It does not work at all.
    Failed { message: String },
}

/// The process that tries: the task comes as a line on standard input.
pub fn doctor_probe() -> Result<ExitCode> {
    let mut task = String::new();
    io::stdin().read_line(&mut task).context("no task on standard input")?;
    let found = match serde_json::from_str(&task).context("the task cannot be read")? {
        Task::Lock { most } => lock(most),
        Task::Ring { device, slots, most } => ring(&device, slots, most),
        Task::Copy { device } => copy(&device),
    };
    send(&found.unwrap_or_else(|error| Found::Failed { message: format!("{error:#}") }))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a task in a process of its own; `while_waiting` is called again and again meanwhile. What was found last, or how it died.
pub fn run(task: &Task, while_waiting: &dyn Fn()) -> Result<(Option<Found>, Ending)> {
    let mut command = Command::new(std::env::current_exe().context("gpufeed's own file is not known")?);
    command.arg("doctor-probe");
    let stop = || {
        while_waiting();
        interrupt::requested()
    };
    let mut last = None;
    let ending = supervise(command, &serde_json::to_string(task)?, DEADLINE, &stop, &mut |found: Found| {
        // An error after sizes that did fit says less than they do.
        if last.is_none() || !matches!(found, Found::Failed { .. }) {
            last = Some(found);
        }
        Ok(())
    })?;
    Ok((last, ending))
}

fn send(found: &Found) -> Result<()> {
    output::print(serde_json::to_string(found)?)
}

fn lock(most: u64) -> Result<Found> {
    let fits = |bytes| usize::try_from(bytes).is_ok_and(memlock::locks);
    Ok(Found::Fits { bytes: trial(most, None, fits), strategy: None })
}

fn ring(device: &str, slots: usize, most: u64) -> Result<Found> {
    let backend = AnyBackend::open(device)?;
    let strategy = Some(backend.default_strategy());
    let mut failure = None;
    let bytes = trial(most, strategy, |bytes| match fill_ring(&backend, slots, bytes) {
        Ok(()) => true,
        Err(error) => {
            failure = Some(error);
            false
        }
    });
    match failure {
        Some(error) if bytes == 0 => Err(error),
        _ => Ok(Found::Fits { bytes, strategy }),
    }
}

/// Every size that fits is reported at once: if a larger one ends the process, that is known.
fn trial(most: u64, strategy: Option<Strategy>, mut fits: impl FnMut(u64) -> bool) -> u64 {
    largest(most, |bytes| {
        let fits = fits(bytes);
        if fits {
            // Nobody to report to is no reason to stop.
            let _ = send(&Found::Fits { bytes, strategy });
        }
        fits
    })
}

/// Opens a loader with a ring of this many bytes, and sends each slot once, so that its memory is there.
fn fill_ring(backend: &AnyBackend, slots: usize, bytes: u64) -> Result<()> {
    let batch_size = usize::try_from((bytes / SAMPLE / slots as u64).max(1))?;
    let layout = SampleLayout::image(1, usize::try_from(SAMPLE)?, 1)?;
    let samples = (batch_size as u64).saturating_mul(slots as u64);
    let source = Arc::new(SyntheticSource::new(layout, samples));
    let options = LoaderOptions {
        batch_size,
        slots,
        outputs: 1,
        workers: 1,
        preprocess: Preprocess::Raw,
        ..LoaderOptions::default()
    };
    let mut loader = backend.loader(source, options)?;
    for batch in loader.epoch(0) {
        batch?.wait()?;
    }
    Ok(())
}

fn copy(device: &str) -> Result<Found> {
    let bytes_s = AnyBackend::open(device)?.copy_ceiling(COPIED, COPYING)?;
    Ok(Found::Copies { bytes_s })
}
