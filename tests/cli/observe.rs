//! What a run tells of itself: a verdict, ceilings, lines of counters, a trace, and the log.

use serde_json::Value;

use crate::data;
use crate::support::{Ran, devices, gpufeed, run};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn counters_come_as_lines_and_a_trace_as_a_file_on_every_device() {
    let data = data::array();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("ASCII").to_owned();
    for device in devices("counters_come_as_lines_and_a_trace_as_a_file_on_every_device") {
        let (lines, trace) = (path("metrics.jsonl"), path("trace.json"));
        let observe = ["--metrics", &lines, "--metrics-every", "0.01", "--trace", &trace];
        run(&[&["run", data.arg(), "--device", device, "--epochs", "40", "--batch-size", "2"], &observe[..]].concat())
            .ended_with(0);
        let text = std::fs::read_to_string(&lines).expect("lines were written");
        let lines: Vec<Value> = text.lines().map(json).collect();
        let (last, others) = lines.split_last().expect("there is at least the last line");
        assert_eq!(
            (&last["last"], &last["device"], &last["stats"]["batches"]),
            (&true.into(), &device.into(), &160.into())
        );
        assert!(others.iter().all(|line| line["last"] == false), "{text}");
        let batches: Vec<u64> = lines.iter().map(|line| line["stats"]["batches"].as_u64().expect("a count")).collect();
        assert!(batches.is_sorted(), "{batches:?}");
        let trace = json(&std::fs::read_to_string(&trace).expect("the trace was written"));
        let sent = trace["traceEvents"].as_array().expect("an array").iter().filter(|event| event["name"] == "submit");
        assert_eq!((sent.count(), &trace["otherData"]["dropped_events"]), (160, &0.into()), "{device}");
    }
}

#[test]
fn a_verdict_stands_at_the_end_and_ceilings_where_they_are_asked_for() {
    let data = data::array();
    let args = ["run", data.arg(), "--device", "host", "--batch-size", "1", "--epochs", "30"];
    let text = run(&args).ended_with(0).stdout;
    assert!(text.contains("\nHeld back by ") && !text.contains("estimates"), "{text}");
    let text = run(&[&args[..], &["--explain"]].concat()).ended_with(0).stdout;
    assert!(
        text.contains("what it would be (estimates, unverified)") && text.contains("with twice the slots"),
        "{text}"
    );
    let report = json(&run(&[&args[..], &["--explain", "--json"]].concat()).ended_with(0).stdout);
    let runs = report["what_if"].as_array().expect("an array");
    let free: Vec<&str> = runs.iter().map(|run| run["free"].as_str().expect("a name")).collect();
    assert_eq!(free, ["consumer", "source", "kernel", "source-and-kernel", "slots"]);
    assert!(runs.iter().all(|run| run["samples_s"].as_f64() > Some(0.0)), "{report}");
    let words = report["verdict_text"].as_str().expect("words");
    assert!(words.starts_with("held back by ") && report["verdict"]["bottleneck"].is_string(), "{words}");
    assert!(report["stats"]["gpu"]["batches"].as_u64() > Some(0), "--explain asks for the device's clock: {report}");
    // A single batch says nothing.
    let text = run(&["run", data.arg(), "--device", "host"]).ended_with(0).stdout;
    assert!(text.contains("Held back by its start: there were too few batches to tell"), "{text}");
}

#[test]
fn files_that_cannot_be_written_are_named_before_anything_is_loaded() {
    let data = data::array();
    for option in ["--trace", "--metrics"] {
        let ran = run(&["run", data.arg(), "--device", "host", option, "no/such/place"]).ended_with(1);
        assert!(
            ran.stderr.contains(&format!("error: {option} no/such/place: it cannot be written"))
                && ran.stdout.is_empty(),
            "{}",
            ran.stderr
        );
    }
    run(&["run", data.arg(), "--metrics-every", "1"]).ended_with(2);
    run(&["run", data.arg(), "--metrics", "x", "--metrics-every", "0"]).ended_with(2);
}

#[test]
fn the_log_tells_what_was_chosen_and_when_epochs_begin_and_end() {
    let data = data::array();
    let mut command = gpufeed(&["run", data.arg(), "--device", "host", "--epochs", "2"]);
    let log = Ran::of(command.env("RUST_LOG", "gpufeed=debug").output().expect("it runs")).ended_with(0).stderr;
    for part in ["strategy memcpy (the device's own)", "4 slots", "epoch 1 begins", "epoch 1 ends, 0 batches left"] {
        assert!(log.contains(part), "{part}:\n{log}");
    }
}
