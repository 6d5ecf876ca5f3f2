//! Running the binary, and skipping in sight.

#![allow(clippy::print_stderr)] // A test that skips itself says so.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use gpufeed::AdapterInfo;

/// What a call of the command gave.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let ran = Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }

    /// What it printed, on one line: where lines are broken depends on what stands in them.
    pub fn on_one_line(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The same, if it ended with this exit code.
    pub fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// The command, away from any terminal, with the environment that its output depends on fixed.
pub fn gpufeed(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpufeed"));
    command.args(args).stdin(Stdio::null()).env("COLUMNS", "100").env_remove("RUST_LOG");
    command
}

pub fn run(args: &[&str]) -> Ran {
    Ran::of(gpufeed(args).output().expect("the binary runs"))
}

/// The cards that `gpufeed devices --json` lists.
pub fn cards() -> Vec<Vec<AdapterInfo>> {
    serde_json::from_str(&run(&["devices", "--json"]).ended_with(0).stdout).expect("cards as JSON")
}

/// The host, and the first device of each API that this system has.
const DEVICES: &[&str] = if cfg!(windows) {
    &["host", "vulkan:0", "dx12:0", "gl:0"]
} else if cfg!(target_os = "macos") {
    &["host", "metal:0"]
} else {
    &["host", "vulkan:0", "gl:0"]
};

/// Of these devices those that are there; the others are skipped in sight. wgpu's `WGPU_BACKEND` narrows them to one API.
pub fn devices(test: &str) -> Vec<&'static str> {
    static IDS: OnceLock<Vec<String>> = OnceLock::new();
    let ids = IDS.get_or_init(|| cards().into_iter().flatten().map(|entry| entry.id).collect());
    let only = env::var("WGPU_BACKEND").ok();
    let wanted = |id: &&str| *id == "host" || only.as_ref().is_none_or(|api| id.split(':').next() == Some(api));
    let (there, missing): (Vec<&str>, Vec<&str>) =
        DEVICES.iter().copied().filter(wanted).partition(|id| ids.iter().any(|found| found == id));
    missing.iter().for_each(|id| skip(test, &format!("there is no {id}")));
    there
}

/// Says that a test, or a part of it, did not run: cargo hides what passing tests print, so a file is told as well.
pub fn skip(test: &str, reason: &str) {
    let line = format!("skipped: {test}: {reason}");
    eprintln!("{line}");
    if let Some(path) = env::var_os("GPUFEED_SKIP_LOG") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).expect("the skip log can be written");
    }
}

/// Sends a process a signal such as `-INT`, by the shell's own `kill`: a small system has no program of that name.
#[cfg(unix)]
pub fn signal(child: &Child, signal: &str) {
    let kill = format!("kill {signal} {}", child.id());
    let status = Command::new("sh").args(["-c", &kill]).status().expect("the shell runs");
    assert!(status.success(), "`{kill}` ended with {status}");
}
