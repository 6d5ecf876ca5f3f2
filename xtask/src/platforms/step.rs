//! One program run on one platform, into a log of its own.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::folder;
use super::outcome::Tally;
use crate::suite::{SKIP_LOG, Seen};

/// A driver that hangs costs this, and not the whole run.
const LIMIT: Duration = Duration::from_secs(25 * 60);
/// Lines of a failed program that are shown.
const SHOWN: usize = 60;

/// Runs tests, and reads what they printed. A program that fails without a failed test is one failure.
pub fn tests(command: &mut Command, platform: &str, name: &str) -> Tally {
    let skips = log(platform, name, "skips");
    let _ = fs::remove_file(&skips);
    command.env(SKIP_LOG, &skips);
    run(command, platform, name, |good, text| {
        let mut seen = Seen::default();
        text.lines().for_each(|line| seen.line(line));
        seen.broken_off();
        let logged = fs::read(&skips).unwrap_or_default();
        String::from_utf8_lossy(&logged).lines().for_each(|line| seen.line(line));
        let mut tally =
            Tally { passed: seen.totals.passed, failed: seen.totals.failed, skipped: seen.skips.len() as u64 };
        if !good && tally.failed == 0 {
            tally.failed = 1;
        }
        tally
    })
}

/// Runs a program that passes or fails as a whole.
pub fn whole(command: &mut Command, platform: &str, name: &str) -> Tally {
    run(command, platform, name, |good, _| Tally { passed: good.into(), failed: (!good).into(), skipped: 0 })
}

fn run(command: &mut Command, platform: &str, name: &str, judge: impl FnOnce(bool, &str) -> Tally) -> Tally {
    let start = Instant::now();
    let path = log(platform, name, "log");
    let (good, end) = match to_file(command, &path) {
        Ok(Some(status)) => (status.success(), status.to_string()),
        Ok(None) => (false, format!("stopped after {} minutes", LIMIT.as_secs() / 60)),
        Err(error) => (false, error.to_string()),
    };
    let bytes = fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let tally = judge(good, &text);
    let Tally { passed, failed, skipped } = tally;
    let took = start.elapsed().as_secs();
    // Several run side by side, and each one's lines stay together.
    let _lines = io::stdout().lock();
    println!("  {name}: {passed} passed, {failed} failed, {skipped} skipped, {took} s");
    if failed > 0 {
        println!("  {name} ended with {end}; the whole log is {}", path.display());
        telling(&text).iter().for_each(|line| println!("    {line}"));
    }
    tally
}

/// The exit status, or none where it took too long.
fn to_file(command: &mut Command, path: &Path) -> io::Result<Option<ExitStatus>> {
    fs::create_dir_all(folder::at("logs"))?;
    let out = File::create(path)?;
    let mut child = command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out).spawn()?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn log(platform: &str, name: &str, extension: &str) -> PathBuf {
    folder::at("logs").join(format!("{platform}-{name}.{extension}"))
}

/// The lines that say why: of failed tests and panics, or the last ones.
fn telling(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let says_why = |at: usize| {
        let panicked = lines[at].contains("panicked at") || at > 0 && lines[at - 1].contains("panicked at");
        panicked || lines[at].ends_with("... FAILED") || lines[at].starts_with("error")
    };
    let told: Vec<&str> = (0..lines.len()).filter(|&at| says_why(at)).map(|at| lines[at]).take(SHOWN).collect();
    if told.is_empty() { lines[lines.len().saturating_sub(SHOWN / 3)..].to_vec() } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_and_panics_are_shown_or_else_the_end() {
        let text = "test a ... ok\nthread 'b' panicked at x.rs:1:2:\nleft is not right\nnote: a\ntest b ... FAILED\n";
        let shown = ["thread 'b' panicked at x.rs:1:2:", "left is not right", "test b ... FAILED"];
        assert_eq!(telling(text), shown);
        assert_eq!(telling("one\ntwo\n"), ["one", "two"]);
    }
}
