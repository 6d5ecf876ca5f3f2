//! How the command ends: exit codes, closed pipes, Ctrl-C.

use std::fs;
use std::process::Stdio;

use crate::data;
use crate::support::{Ran, gpufeed, run};

#[test]
fn wrong_usage_is_exit_code_2() {
    for args in [
        &[][..],
        &["walk"],
        &["run"],
        &["run", "x.npy", "--batch-size", "0"],
        &["run", "x.npy", "--size", "3"],
        &["run", "x.npy", "--mean", "0.5"],
        &["run", "x.npy", "--strategy", "pinned"],
        &["run", "x.npy", "--budget", "much"],
        &["run", "x.npy", "--rank", "1"],
        &["run", "x.npy", "--rank", "2", "--world", "2"],
        &["run", "x.npy", "--rank", "0", "--world", "0"],
    ] {
        let ran = run(args).ended_with(2);
        assert!(
            ran.stdout.is_empty() && ran.stderr.contains("Usage:") | ran.stderr.contains("--help"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_device_that_is_not_there_is_exit_code_3_and_what_is_there_is_told() {
    let data = data::array();
    for device in ["vulkan:99", "voodoo 2", "cuda"] {
        let ran = run(&["run", data.arg(), "--device", device]).ended_with(3);
        let message = format!("error: no device matches `{device}`; found: ");
        assert!(ran.stderr.contains(&message) && ran.stderr.contains("host"), "{}", ran.stderr);
    }
}

#[test]
fn what_cannot_be_done_is_exit_code_1_with_the_reason() {
    let data = data::array();
    for (args, reason) in [
        (&["--budget", "1KiB"][..], "the budget is 1024"),
        (&["--strategy", "direct-map"], "strategy `direct-map` is not available here"),
        (&["--size", "3x3"], "--size is only for folders of images"),
        (&["--mean", "0.5", "--std", "0.5"], "mean has 1 values for 3 channels"),
        (&["--batch-size", "8", "--drop-last"], "7 samples do not fill a batch of 8"),
    ] {
        let ran = run(&[&["run", data.arg(), "--device", "host"], args].concat()).ended_with(1);
        assert!(ran.stderr.contains(&format!("error: {reason}")) || ran.stderr.contains(reason), "{}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
    let ran = run(&["run", "/no/such/folder"]).ended_with(1);
    assert!(ran.stderr.contains("error: /no/such/folder: "), "{}", ran.stderr);
}

#[test]
fn a_damaged_image_is_named_after_what_was_done_before_it() {
    let data = data::folder_of("png");
    let damaged = data.path.join("dog").join("5.png");
    let whole = fs::read(&damaged).expect("an image");
    fs::write(&damaged, &whole[..whole.len() / 2]).expect("cut in half");
    let args = ["run", data.arg(), "--device", "host", "--size", "9x13", "--batch-size", "2"];
    let ran = run(&args).ended_with(1);
    assert!(ran.stdout.starts_with("4 images in 2 batches"), "{}", ran.stdout);
    assert!(ran.stdout.contains("(stopped by an error)"), "{}", ran.stdout);
    assert!(ran.stderr.starts_with("error: sample 5 could not be read (batch 2): "), "{}", ran.stderr);
    assert!(ran.stderr.contains("5.png: "), "{}", ran.stderr);
    assert_eq!(ran.stderr.trim_end().lines().count(), 1, "a cause is told once: {}", ran.stderr);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let data = data::array();
    for args in [&["devices"][..], &["devices", "--json"], &["--help"], &["run", data.arg(), "--device", "host"]] {
        let mut child = gpufeed(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        drop(child.stdout.take());
        let ran = Ran::of(child.wait_with_output().expect("an end")).ended_with(0);
        assert!(!ran.stderr.contains("error: standard output"), "{args:?}: {}", ran.stderr);
    }
}

/// Mesa's GL would say `error: XDG_RUNTIME_DIR is invalid`, in the very form of our own errors.
#[test]
fn without_a_runtime_folder_standard_error_is_ours_alone() {
    let output = gpufeed(&["devices"]).env_remove("XDG_RUNTIME_DIR").output().expect("the binary runs");
    let ran = Ran::of(output).ended_with(0);
    assert!(!ran.stderr.contains("XDG_RUNTIME_DIR"), "{}", ran.stderr);
}

#[cfg(unix)]
mod interrupt {
    use std::path::Path;
    use std::process::{Child, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use crate::data;
    use crate::support::{self, Ran, devices, gpufeed};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn wait_for(what: &str, child: &mut Child, mut done: impl FnMut(&mut Child) -> bool) {
        let start = Instant::now();
        while !done(child) {
            if start.elapsed() > PATIENCE {
                let _ = child.kill();
                panic!("{what} takes more than {PATIENCE:?}");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Interrupts a run that would take hours, once it has delivered some batches.
    fn interrupted(more: &[&str]) -> Ran {
        interrupted_after("batch-000002.npy", more)
    }

    /// The same, once this file is saved.
    fn interrupted_after(file: &str, more: &[&str]) -> Ran {
        interrupted_by("-INT", file, more)
    }

    fn interrupted_by(signal: &str, file: &str, more: &[&str]) -> Ran {
        let data = data::blank(64, 1 << 16);
        let saved = data.folder.path().join("saved");
        let save = ["--save", saved.to_str().expect("a path in ASCII")];
        let args = ["run", data.arg(), "--device", "host", "--batch-size", "16", "--epochs", "4000000000"];
        let mut command = gpufeed(&[&args[..], &save, more].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let third: &Path = &saved.join(file);
        wait_for("delivering three batches", &mut child, |_| third.exists());
        support::signal(&child, signal);
        wait_for("ending", &mut child, |child| child.try_wait().expect("its state").is_some());
        Ran::of(child.wait_with_output().expect("an end")).ended_with(130)
    }

    #[test]
    fn ctrl_c_ends_a_run_cleanly_and_keeps_what_was_measured() {
        let ran = interrupted(&[]);
        let headline = ran.stdout.lines().next().expect("a summary");
        assert!(headline.ends_with("(interrupted)") && !headline.starts_with("0 "), "{headline}");
        assert!(ran.stdout.contains("where the time went"), "{}", ran.stdout);
    }

    #[test]
    fn sigterm_and_sighup_end_a_run_as_ctrl_c_does() {
        for signal in ["-TERM", "-HUP"] {
            let state = tempfile::tempdir().expect("a folder");
            let state = state.path().join("state.json");
            let ran = interrupted_by(
                signal,
                "batch-000002.npy",
                &["--json", "--save-state", state.to_str().expect("a path in ASCII")],
            );
            let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
            assert_eq!(report["interrupted"], true);
            let state = std::fs::read(&state).expect("the state was saved");
            let state: serde_json::Value = serde_json::from_slice(&state).expect("JSON");
            let at = &state["devices"][0];
            let (epoch, batch) = (at["epoch"].as_u64().expect("a number"), at["batch"].as_u64().expect("a number"));
            // 64 samples are 4 batches an epoch.
            assert_eq!(report["stats"]["batches"].as_u64(), Some(epoch * 4 + batch), "{report}");
        }
    }

    #[test]
    fn ctrl_c_leaves_whole_json() {
        let ran = interrupted(&["--json"]);
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(report["interrupted"], true);
        assert!(report["stats"]["batches"].as_u64() >= Some(2), "{report}");
    }

    #[test]
    fn ctrl_c_ends_all_devices() {
        if !devices("ctrl_c_ends_all_devices").contains(&"vulkan:0") {
            return;
        }
        let ran = interrupted_after("vulkan-0/batch-000002.npy", &["--device", "vulkan:0", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(report["sum"]["interrupted"], true, "{report}");
        for device in report["devices"].as_array().expect("an array") {
            assert_eq!(
                (&device["interrupted"], &device["error"]),
                (&true.into(), &serde_json::Value::Null),
                "{report}"
            );
        }
    }
}
