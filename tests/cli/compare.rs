//! `gpufeed compare`, from the command line to its files. No test asserts a time.

use std::path::Path;

use gpufeed::measure::report::{JSON_SCHEMA, Report, Status};
use gpufeed::source::{NpyType, write_npy};

use crate::support::{Ran, devices, run};

fn compare(args: &[&str]) -> Ran {
    run(&[&["compare"], args].concat())
}

fn read_report(path: &Path) -> Report {
    let text = std::fs::read_to_string(path).expect("the file was written");
    let json = serde_json::from_str(&text).expect("it is JSON");
    let schema = serde_json::from_str(JSON_SCHEMA).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is a schema");
    let problems: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
    assert_eq!(problems, Vec::<String>::new());
    serde_json::from_value(json).expect("it is a report")
}

#[test]
fn the_host_is_compared_and_everything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (json, csv, markdown) = (path("a.json"), path("a.csv"), path("a.md"));
    let sizes = ["--size", "9x7", "--batch-size", "4,8", "--workers", "1", "--slots", "2", "--seed", "7"];
    let files = ["--json", &json, "--csv", &csv, "--markdown", &markdown];
    let shown = compare(&[&["--device", "host", "--time", "2"], &sizes[..], &files[..]].concat()).ended_with(0).stdout;
    assert!(
        shown.contains("memcpy") && shown.contains("batch") && shown.contains("in your code: LoaderOptions"),
        "{shown}"
    );
    assert!(shown.contains("copying alone, batch 4, 1 workers"), "{shown}");
    let report = read_report(Path::new(&json));
    assert_eq!((report.devices.len(), report.data.seed, report.interrupted), (1, Some(7), false));
    let device = &report.devices[0];
    assert_eq!((device.configurations.len(), device.sweep.len()), (2, 2));
    for row in &device.configurations {
        assert!(row.is_measured() && !row.rounds.is_empty() && row.figures.get("gb_s").is_some(), "{row:?}");
        assert!(row.verified.is_some_and(|verified| verified.batches >= 8));
    }
    let rounds: usize = device.configurations.iter().map(|row| row.rounds.len()).sum();
    assert_eq!(std::fs::read_to_string(csv).expect("CSV").lines().count(), 1 + rounds);
    assert!(std::fs::read_to_string(markdown).expect("Markdown").contains("| memcpy | 4 |"));
}

#[test]
fn a_consumer_that_computes_is_measured_beside_one_that_does_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    for device in devices("a_consumer_that_computes_is_measured_beside_one_that_does_nothing") {
        let (json, markdown) = (path(&format!("{device}.json")), path(&format!("{device}.md")));
        let sizes = ["--size", "16x16", "--batch-size", "8", "--time", "1", "--device", device];
        let used = ["--compute", "400", "--hand-over", "queued,blocking"];
        let strategies = ["--strategy", "memcpy", "--strategy", "mapped-ring"];
        let files = ["--json", &json, "--markdown", &markdown];
        let shown = compare(&[&sizes[..], &used, &strategies, &files].concat()).ended_with(0).stdout;
        let told =
            ["that does nothing", "what is hidden", "computes", "hand-over", "Beside a consumer that computes for 400"];
        assert!(told.iter().all(|part| shown.contains(part)), "{shown}");
        let device = &read_report(Path::new(&json)).devices[0];
        let rows: Vec<_> = device.configurations.iter().filter(|row| row.is_measured()).collect();
        // Idle and busy, each with both hand-overs, of each strategy that runs here.
        assert!(rows.len() >= 4 && rows.len().is_multiple_of(4), "{rows:?}");
        for row in rows {
            let busy = row.settings.compute_us > 0;
            let figures = ["step_us", "ideal_us", "compute_us", "cpu_waits_us"].map(|key| row.figures.get(key));
            assert!(figures.iter().all(Option::is_some) && row.verified.is_some(), "{row:?}");
            assert_eq!((busy, busy), (row.compute_alone_us.is_some(), row.figures.get("hidden_percent").is_some()));
        }
        let tables = std::fs::read_to_string(&markdown).expect("Markdown");
        assert!(tables.contains("Beside a consumer that computes, and beside one that does nothing (0):"), "{tables}");
    }
    // What was not asked for is not measured, and that is said.
    let idle = compare(&["--size", "4x4", "--batch-size", "2", "--time", "1", "--device", "host"]).ended_with(0).stdout;
    assert!(idle.contains("that does nothing") && idle.contains("--compute 1000"), "{idle}");
}

#[test]
fn a_strategy_that_cannot_run_is_a_row_and_without_any_other_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("a.json");
    let file = json.to_str().expect("UTF-8");
    let sizes = ["--size", "4x4", "--batch-size", "2", "--time", "1", "--device", "host", "--json", file];
    let shown = compare(&[&sizes[..], &["--strategy", "mapped-ring"]].concat()).ended_with(1).stdout;
    assert!(shown.contains("mapped-ring        not available: host memory"), "{shown}");
    compare(&[&sizes[..], &["--strategy", "mapped-ring", "--strategy", "memcpy"]].concat()).ended_with(0);
    let rows = &read_report(&json).devices[0].configurations;
    assert!(matches!(&rows[0].status, Status::Unsupported { reason } if reason.contains("memcpy")), "{rows:?}");
    assert!(rows[1].is_measured());
}

#[test]
fn a_file_of_any_array_can_be_fed() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("points.npy");
    write_npy(&data, NpyType::F32, &[10, 3], &1.5f32.to_ne_bytes().repeat(30)).expect("written");
    let data = data.to_str().expect("UTF-8");
    let shown = compare(&[data, "--device", "host", "--time", "1", "--batch-size", "4"]).ended_with(0).stdout;
    assert!(shown.contains("points.npy: 10 samples, f32 arrays of [3]") && shown.contains("samples/s"), "{shown}");
}

#[test]
fn mistakes_have_their_exit_codes_before_anything_is_measured() {
    compare(&["--device", "nosuch"]).ended_with(3);
    compare(&["--batch-size", "0"]).ended_with(2);
    compare(&["--strategy", "nosuch"]).ended_with(2);
    for args in [&["no/such/place"][..], &["--json", "no/such/place/a.json"]] {
        let ran = compare(&[args, &["--device", "host"]].concat()).ended_with(1);
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("no/such/place"), "{}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_comparison_keeps_what_was_measured() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    use crate::support::{self, gpufeed};

    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("a.json");
    let mut command =
        gpufeed(&["compare", "--device", "host", "--time", "60", "--size", "4x4", "--batch-size", "2", "--json"]);
    let mut child = command.arg(&json).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("round 1 of") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("read") > 0, "it ended without a round");
    }
    // Only the parent is told, as by `kill`; the process on the device learns it from the parent.
    support::signal(&child, "-INT");
    lines.read_to_end(&mut Vec::new()).expect("the rest");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let report = read_report(&json);
    assert!(report.interrupted && report.devices[0].configurations[0].is_measured(), "{report:?}");
}
