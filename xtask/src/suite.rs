//! `cargo xtask test` and `validate`: run cargo test, let its output through, and read along.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::{cargo, drivers, root, shown, target_dir};

/// The file that tests append a line `skipped: <test>: <reason>` to, because cargo hides what passing tests print.
pub const SKIP_LOG: &str = "GPUFEED_SKIP_LOG";
/// The tests that use Vulkan: those of the library's wgpu backend, and Vulkan's part of the contract. One after the other: version
/// 1.3.239 of the layers looks its data up without a lock, and crashes where a device is used while another is made or destroyed
/// (Vulkan-ValidationLayers#4391).
const VULKAN_TESTS: &[&str] = &[
    "test",
    "--no-fail-fast",
    "--lib",
    "--test",
    "contract",
    "--",
    "backend::wgpu",
    "vulkan::",
    "--nocapture",
    "--test-threads=1",
];

/// Prepares the drivers and runs the whole suite, then once more those that use Vulkan under the validation layers.
pub fn test(install: bool, args: &[String]) -> bool {
    drivers::ensure(install);
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.args(args);
    let (passed, seen) = run(&mut command, "tests");
    let examples = examples();
    let valid = if drivers::layers_installed() {
        validate()
    } else {
        println!("validation: skipped: the Vulkan validation layers are not installed");
        true
    };
    seen.skips.iter().for_each(|line| println!("{line}"));
    if !passed {
        println!("the test suite failed");
    }
    if !valid {
        println!("the validation pass failed");
    }
    if !examples {
        println!("an example failed");
    }
    println!("{} passed, {} failed, {} skipped", seen.totals.passed, seen.totals.failed, seen.skips.len());
    passed && examples && valid
}

/// Runs every program in `examples/`, in order.
fn examples() -> bool {
    let files = fs::read_dir(root().join("examples")).into_iter().flatten().flatten();
    let names: BTreeSet<String> =
        files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned)).collect();
    names.iter().fold(true, |all, name| {
        let mut command = cargo(&["run", "--quiet", "--example", name]);
        println!("{}", shown(&command));
        command.status().is_ok_and(|status| status.success()) && all
    })
}

/// Runs the tests that use Vulkan under its validation layers. Any validation error is a failure.
pub fn validate() -> bool {
    if !drivers::layers_installed() {
        eprintln!("validation: the Vulkan validation layers are not installed");
        return false;
    }
    let mut command = cargo(VULKAN_TESTS);
    // Debug info is off because version 1.3.239 of the layers reports a false error about debug labels. The loader is
    // told to load the layers as well: were a test to open its instance without them, they would print to stdout.
    command.envs([("WGPU_VALIDATION", "1"), ("WGPU_DEBUG", "0"), ("RUST_LOG", "error")]);
    command.envs([("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation"), ("WGPU_BACKEND", "vulkan")]);
    let (passed, seen) = run(&mut command, "validation");
    let errors: BTreeSet<&str> = seen.errors.iter().map(String::as_str).collect();
    errors.iter().take(20).for_each(|line| println!("validation error: {line}"));
    let Totals { passed: good, failed } = seen.totals;
    let (skipped, errors) = (seen.skips.len(), seen.errors.len());
    println!("validation: {good} passed, {failed} failed, {skipped} skipped, {errors} lines of validation errors");
    passed && errors == 0
}

/// Sums of the test binaries' results.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub passed: u64,
    pub failed: u64,
}

/// What was read along the way.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub totals: Totals,
    pub skips: BTreeSet<String>,
    pub errors: Vec<String>,
    /// Tests that passed since the last program's counts.
    passed: u64,
}

impl Seen {
    pub fn line(&mut self, line: &str) {
        let line = without_colours(line);
        let line = line.trim_end();
        if let Some(result) = test_result(line) {
            self.totals.passed += result.passed;
            self.totals.failed += result.failed;
            self.passed = 0;
        } else if is_passed_test(line) {
            self.passed += 1;
        } else if is_start(line) {
            self.broken_off();
        }
        if line.starts_with("skipped: ") {
            self.skips.insert(line.to_owned());
        }
        if is_validation_error(line) {
            self.errors.push(line.trim_start().to_owned());
        }
    }

    /// Counts what passed in a program that did not come to its own counts.
    pub fn broken_off(&mut self) {
        self.totals.passed += std::mem::take(&mut self.passed);
    }
}

/// Runs a cargo test and reads its output and its skip log. False where it failed, or could not be run.
fn run(command: &mut Command, name: &str) -> (bool, Seen) {
    let log = target_dir().join(format!("skipped-{name}.log"));
    let _ = fs::create_dir_all(target_dir());
    let _ = fs::remove_file(&log);
    println!("{}", shown(command));
    command.env(SKIP_LOG, &log).stdout(Stdio::piped()).stderr(Stdio::piped());
    let seen = Mutex::new(Seen::default());
    let passed = stream(command, &seen).unwrap_or_else(|error| {
        eprintln!("cannot run cargo test: {error}");
        false
    });
    let mut seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    seen.broken_off();
    let skips = fs::read(&log).unwrap_or_default();
    String::from_utf8_lossy(&skips).lines().for_each(|line| seen.line(line));
    (passed, seen)
}

/// Runs the command to its end, passing both of its streams on line by line.
fn stream(command: &mut Command, seen: &Mutex<Seen>) -> io::Result<bool> {
    let mut child = command.spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| out.map(|from| pass_on(from, io::stdout(), seen)));
        scope.spawn(|| err.map(|from| pass_on(from, io::stderr(), seen)));
    });
    Ok(child.wait()?.success())
}

fn pass_on(from: impl Read, mut to: impl Write, seen: &Mutex<Seen>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        seen.lock().unwrap_or_else(PoisonError::into_inner).line(&String::from_utf8_lossy(&line));
        // Where nobody reads on, the tests still have to be read to their end.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        line.clear();
    }
}

/// The counts in a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn test_result(line: &str) -> Option<Totals> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |what: &str| counts.split("; ").find_map(|part| part.strip_suffix(what)?.trim().parse().ok());
    Some(Totals { passed: count("passed")?, failed: count("failed")? })
}

/// Whether the line tells of one test that passed.
fn is_passed_test(line: &str) -> bool {
    line.strip_prefix("test ").is_some_and(|rest| rest.ends_with(" ... ok"))
}

/// Whether a program says that it begins.
fn is_start(line: &str) -> bool {
    line.strip_prefix("running ").is_some_and(|rest| rest.ends_with(" tests") || rest == "1 test")
}

/// Whether the line comes from a Vulkan validation error: as wgpu logs it at level error, or as the layers print it.
fn is_validation_error(line: &str) -> bool {
    ["VALIDATION [", "Validation Error:", "VUID-"].iter().any(|mark| line.contains(mark))
}

/// The line without escape sequences for colours.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str]) -> Seen {
        let mut seen = Seen::default();
        lines.iter().for_each(|line| seen.line(line));
        seen
    }

    #[test]
    fn results_of_several_binaries_add_up_and_other_lines_do_not_count() {
        let seen = seen(&[
            "test result: ok. 16 passed; 0 failed; 1 ignored; 0 measured; 15 filtered out; finished in 0.11s\n",
            "test result: \u{1b}[31mFAILED\u{1b}[0m. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out\n",
            "test result_lines ... ok\n",
            "test result: nonsense\n",
        ]);
        assert_eq!(seen.totals, Totals { passed: 18, failed: 3 });
        assert!(seen.skips.is_empty() && seen.errors.is_empty());
    }

    #[test]
    fn what_passed_before_a_program_was_killed_counts() {
        let whole = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let mut seen = seen(&["test a ... ok\n", "test b ... ok\n", whole, "test c ... ok\n", "test d ... "]);
        seen.broken_off();
        assert_eq!(seen.totals, Totals { passed: 3, failed: 0 });
        seen.line("test e ... ok\n");
        seen.line("running 1 test\n");
        seen.line("test result: FAILED. 0 passed; 1 failed; 0 ignored\n");
        assert_eq!(seen.totals, Totals { passed: 4, failed: 1 });
    }

    #[test]
    fn a_skip_that_is_both_printed_and_logged_counts_once() {
        let seen =
            seen(&["skipped: a: no driver\n", "skipped: a: no driver", "skipped: b: no driver", "not skipped: c"]);
        assert_eq!(seen.skips.len(), 2);
    }

    #[test]
    fn validation_errors_are_found_however_they_are_printed() {
        assert_eq!(seen(&["[ERROR wgpu_hal::vulkan::instance] VALIDATION [name (0x1)]\n"]).errors.len(), 1);
        assert_eq!(seen(&["\tValidation Error: [ x ] Object 0: handle = 0x1"]).errors.len(), 1);
        assert_eq!(seen(&["VUID-vkCmdDispatch-None-02697(ERROR / SPEC): msgNum: 1"]).errors.len(), 1);
        assert!(seen(&["test validation::errors ... ok", "Validation of [a] is quiet"]).errors.is_empty());
    }

    #[test]
    fn both_streams_are_read_to_their_end_also_without_a_last_newline() {
        let seen = Mutex::new(Seen::default());
        let mut copy = Vec::new();
        pass_on(&b"skipped: a: b\n\xff\nskipped: c: d"[..], &mut copy, &seen);
        assert_eq!(copy, b"skipped: a: b\n\xff\nskipped: c: d");
        assert_eq!(seen.into_inner().map(|seen| seen.skips.len()).ok(), Some(2));
    }
}
