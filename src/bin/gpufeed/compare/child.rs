//! Each device in a process of its own, so that a driver's crash or hang is a row and not the end.
//!
//! The process gets its job as the first line on standard input; when that is closed, it ends early. It reports on standard output
//! what happens, one line of JSON each. Standard error is the parent's.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use gpufeed::AnyBackend;
use gpufeed::measure::report::DeviceReport;
use gpufeed::measure::{Event, Observer};
use serde::de::DeserializeOwned;

use super::job::{Job, Line};
use crate::{interrupt, output};

/// How often the parent looks for an end, a deadline or Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a process may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// How a process ended.
#[derive(Debug, PartialEq)]
pub enum Ending {
    /// By itself, successfully or after an error that it reported.
    Exited,
    /// Otherwise.
    Crashed(String),
    /// It was killed after this long.
    TimedOut(Duration),
}

/// The process on one device.
pub fn compare_device() -> Result<ExitCode> {
    interrupt::catch()?;
    let mut stdin = BufReader::new(io::stdin());
    let mut job = String::new();
    stdin.read_line(&mut job).context("no job on standard input")?;
    let job: Job = serde_json::from_str(&job).context("the job cannot be read")?;
    let ended = Arc::new(AtomicBool::new(false));
    let parent_gone = Arc::clone(&ended);
    thread::spawn(move || {
        // An error is an end as well.
        let _ = stdin.read_to_end(&mut Vec::new());
        parent_gone.store(true, Ordering::Relaxed);
    });
    let line = match work(&job, ended) {
        Ok(report) => Line::Done { report },
        Err(error) => Line::Failed { message: format!("{error:#}") },
    };
    send(&line)?;
    Ok(ExitCode::SUCCESS)
}

fn work(job: &Job, ended: Arc<AtomicBool>) -> Result<DeviceReport> {
    let source = job.feed.samples.open()?;
    let device = AnyBackend::open(&job.device)?;
    let plan = job.plan(&source.layout())?;
    Ok(device.compare(source, &plan, &mut Reporter { ended }))
}

fn send(line: &Line) -> Result<()> {
    output::print(serde_json::to_string(line)?)
}

/// Reports to the parent.
struct Reporter {
    ended: Arc<AtomicBool>,
}

impl Observer for Reporter {
    fn event(&mut self, event: &Event, so_far: &DeviceReport) {
        // Without a reader there is nothing to go on for.
        if send(&Line::Event { event: event.clone(), so_far: so_far.clone() }).is_err() {
            self.ended.store(true, Ordering::Relaxed);
        }
    }

    fn stop(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || interrupt::requested()
    }
}

/// Runs a process on a job and passes on what it reports.
///
/// # Errors
/// The process cannot be started.
pub fn supervise<L: DeserializeOwned>(
    mut command: Command,
    job: &str,
    deadline: Duration,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(L) -> Result<()>,
) -> Result<Ending> {
    let started = Instant::now();
    let mut child = Guard(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let mut stdin = child.0.stdin.take();
    if let Some(stdin) = &mut stdin {
        // If it has ended already, its exit status says more than this error.
        let _ = writeln!(stdin, "{job}");
    }
    let Some(lines) = child.0.stdout.take().map(read_lines) else { bail!("there is no pipe to the process") };
    let mut ends_at = started + deadline;
    while Instant::now() < ends_at {
        match lines.recv_timeout(POLL_INTERVAL) {
            Ok(line) => pass_on(&line, each)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if stop() && stdin.take().is_some() {
            ends_at = ends_at.min(Instant::now() + GRACE);
        }
    }
    drop(stdin);
    // What has closed its output has a moment to end; what has not is late already.
    let ends_at = if Instant::now() < ends_at { Instant::now() + GRACE } else { ends_at };
    Ok(match wait(&mut child.0, ends_at)? {
        None => Ending::TimedOut(started.elapsed()),
        Some(status) if status.success() => Ending::Exited,
        Some(status) => Ending::Crashed(format!("the process on this device ended with {status}")),
    })
}

/// A line that is not ours comes from a driver.
fn pass_on<L: DeserializeOwned>(line: &str, each: &mut dyn FnMut(L) -> Result<()>) -> Result<()> {
    match serde_json::from_str(line) {
        Ok(line) => each(line)?,
        Err(_) => output::note(line),
    }
    Ok(())
}

fn read_lines(out: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines() {
            let Ok(line) = line else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Waits for the end; `None` if it is not there in time.
fn wait(child: &mut Child, ends_at: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= ends_at {
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL / 10);
    }
}

/// A process that does not outlive its supervisor.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail only if it has ended, and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, deadline: Duration, stop: bool) -> (Ending, Vec<Line>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut lines = Vec::new();
        let mut each = |line| {
            lines.push(line);
            Ok(())
        };
        let ending = supervise(command, "{}", deadline, &|| stop, &mut each).expect("started");
        (ending, lines)
    }

    const LONG: Duration = Duration::from_secs(600);
    const LINE: &str = r#"{"failed":{"message":"so it goes"}}"#;

    #[test]
    fn a_crash_is_reported_with_its_signal_and_what_was_said_before_is_kept() {
        let (ending, lines) = shell(&format!("read job; echo '{LINE}'; kill -SEGV $$"), LONG, false);
        assert_eq!(lines, [Line::Failed { message: "so it goes".to_owned() }]);
        let Ending::Crashed(message) = ending else { panic!("{ending:?}") };
        assert!(message.contains("signal: 11"), "{message}");
    }

    #[test]
    fn an_exit_code_is_a_crash_and_success_is_none() {
        assert!(matches!(shell("exit 101", LONG, false).0, Ending::Crashed(_)));
        assert_eq!(shell("read job; echo no JSON", LONG, false), (Ending::Exited, Vec::new()));
    }

    #[test]
    fn a_process_that_hangs_is_killed() {
        let (ending, lines) = shell(&format!("echo '{LINE}'; exec sleep 600"), Duration::from_millis(300), false);
        assert!(matches!(ending, Ending::TimedOut(_)), "{ending:?}");
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn a_process_is_asked_to_end_by_the_end_of_its_input() {
        let (ending, lines) = shell(&format!("cat > /dev/null; echo '{LINE}'"), LONG, true);
        assert_eq!((ending, lines.len()), (Ending::Exited, 1));
    }
}
