//! The help texts, kept as files. `GPUFEED_UPDATE_SNAPSHOTS=1` writes them anew.

use std::path::PathBuf;
use std::{env, fs};

use crate::support::run;

fn check(name: &str, args: &[&str]) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "snapshots", name].iter().collect();
    // Trailing blanks are clap's, and nobody sees them.
    let text: String = run(args).ended_with(0).stdout.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if env::var_os("GPUFEED_UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &text).expect("the snapshot can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, kept, "{} differs; GPUFEED_UPDATE_SNAPSHOTS=1 writes it anew", path.display());
}

#[test]
fn the_help_of_the_command_is_as_kept() {
    check("help.txt", &["--help"]);
}

#[test]
fn the_help_of_devices_is_as_kept() {
    check("help-devices.txt", &["devices", "--help"]);
}

#[test]
fn the_help_of_run_is_as_kept() {
    check("help-run.txt", &["run", "--help"]);
}

#[test]
fn the_help_of_compare_is_as_kept() {
    check("help-compare.txt", &["compare", "--help"]);
}

#[test]
fn the_help_of_doctor_is_as_kept() {
    check("help-doctor.txt", &["doctor", "--help"]);
}

#[test]
fn the_help_of_report_is_as_kept() {
    check("help-report.txt", &["report", "--help"]);
}

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).ended_with(0).stdout;
        assert!(script.contains("gpufeed") && script.contains("doctor") && script.contains("max-slowdown"), "{shell}");
    }
}
