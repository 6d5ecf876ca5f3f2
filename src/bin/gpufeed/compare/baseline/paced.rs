//! Rounds one at a time: the process on a device takes one each time it is told to, so that two builds can be measured in turn.
//!
//! The job is the first line on standard input; each further line is one round. What was measured comes as a line each.

use std::io::{self, BufRead, BufReader, Stdin, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use gpufeed::AnyBackend;
use gpufeed::measure::report::{DeviceReport, DeviceStatus, Status};
use gpufeed::measure::{Event, Observer, Plan, Timing};
use serde::{Deserialize, Serialize};

use super::super::job::Job;
use crate::{interrupt, output};

/// More rounds than anybody asks for.
const MANY: usize = 1 << 20;
/// Every configuration is checked for this long before it is timed.
const VERIFYING: Duration = Duration::from_millis(100);

/// What a paced process is told first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PacedJob {
    /// With one configuration.
    pub job: Job,
    /// How long a round is, or as long as its fewest batches need.
    pub slice_s: f64,
}

/// What it reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// The device, its driver and the build, before the first round.
    Ready { gpufeed: String, debug_build: bool, device: String, driver: String },
    /// A round's samples a second.
    Round { samples_s: f64 },
    /// It cannot go on.
    Failed { message: String },
}

/// The process.
pub fn compare_paced() -> Result<ExitCode> {
    interrupt::catch()?;
    let mut stdin = BufReader::new(io::stdin());
    let mut text = String::new();
    stdin.read_line(&mut text).context("no job on standard input")?;
    let paced: PacedJob = serde_json::from_str(&text).context("the job cannot be read")?;
    if let Err(error) = work(&paced, stdin) {
        send(&Line::Failed { message: format!("{error:#}") })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn work(paced: &PacedJob, stdin: BufReader<Stdin>) -> Result<()> {
    let source = paced.job.feed.samples.open()?;
    let device = AnyBackend::open(&paced.job.device)?;
    let info = device.info();
    let driver = format!("{} {}", info.driver, info.driver_info);
    let mut pacer = Pacer { stdin, ended: false };
    send(&Line::Ready {
        gpufeed: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: cfg!(debug_assertions),
        device: info.name.clone(),
        driver: driver.trim().to_owned(),
    })?;
    pacer.wait();
    let mut plan: Plan = paced.job.plan(&source.layout())?;
    plan.timing = Timing::rounds_only(MANY, Duration::from_secs_f64(paced.slice_s), VERIFYING);
    plan.hold_bytes = u64::MAX;
    let report = device.compare(source, &plan, &mut pacer);
    match (&report.status, report.configurations.first().map(|row| &row.status)) {
        (DeviceStatus::Error { message }, _) | (_, Some(Status::Failed { message, .. })) => bail!("{message}"),
        (_, Some(Status::Unsupported { reason })) => bail!("not available: {reason}"),
        _ => Ok(()),
    }
}

fn send(line: &Line) -> Result<()> {
    output::print(serde_json::to_string(line)?)
}

/// Reports each round, and waits for the next to be asked for.
struct Pacer {
    stdin: BufReader<Stdin>,
    ended: bool,
}

impl Pacer {
    fn wait(&mut self) {
        let asked = self.stdin.read_line(&mut String::new());
        self.ended |= !asked.is_ok_and(|bytes| bytes > 0);
    }
}

impl Observer for Pacer {
    fn event(&mut self, event: &Event, _: &DeviceReport) {
        if let Event::Timed { samples_s, .. } = event {
            self.ended |= send(&Line::Round { samples_s: *samples_s }).is_err();
            self.wait();
        }
    }

    fn stop(&self) -> bool {
        self.ended || interrupt::requested()
    }
}

/// A build's process, between rounds.
pub struct Paced {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
    /// What it said of itself.
    pub about: About,
}

/// Who measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    pub gpufeed: String,
    pub debug_build: bool,
    pub device: String,
    pub driver: String,
}

impl Paced {
    /// Starts it, and waits until the device is open.
    ///
    /// # Errors
    /// It cannot be started, or says why it cannot go on.
    pub fn start(mut command: Command, job: &PacedJob) -> Result<Self> {
        let mut child = command.arg("compare-paced").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else { bail!("there is no pipe to the process") };
        // If it has ended already, what it says is read below.
        let _ = writeln!(stdin, "{}", serde_json::to_string(job)?);
        let mut paced = Self { child, stdin, lines: BufReader::new(stdout), about: About::default() };
        let Line::Ready { gpufeed, debug_build, device, driver } = paced.line()? else {
            bail!("it does not speak of itself first")
        };
        paced.about = About { gpufeed, debug_build, device, driver };
        Ok(paced)
    }

    /// One round, in samples a second.
    pub fn round(&mut self) -> Result<f64> {
        writeln!(self.stdin).context("the process has ended")?;
        match self.line()? {
            Line::Round { samples_s } => Ok(samples_s),
            _ => bail!("it answers with something else than a round"),
        }
    }

    fn line(&mut self) -> Result<Line> {
        loop {
            let mut text = String::new();
            if self.lines.read_line(&mut text)? == 0 {
                bail!("the process ended, {}; it may be a build without paced rounds", self.child.wait()?);
            }
            match serde_json::from_str(&text) {
                Ok(Line::Failed { message }) => bail!("{message}"),
                Ok(line) => return Ok(line),
                // A line that is not ours comes from a driver.
                Err(_) => output::note(text.trim_end()),
            }
        }
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        // Both fail only if it has ended, and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
