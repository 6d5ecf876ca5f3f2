//! What is left to the command: strategy and workers to measuring, rank and world to the environment.

use serde_json::Value;

use crate::data;
use crate::support::{Ran, devices, gpufeed, run, skip};

#[test]
fn what_auto_chose_is_told_with_its_reason_and_kept_for_the_next_run() {
    let data = data::array();
    let cache = data.folder.path().join("auto.json");
    let cache = cache.to_str().expect("a path in ASCII");
    for device in devices("what_auto_chose_is_told_with_its_reason_and_kept_for_the_next_run") {
        let args = ["run", data.arg(), "--device", device, "--batch-size", "2"];
        let auto = ["--strategy", "auto", "--workers", "auto", "--auto-cache", cache, "--json"];
        let report = || -> Value {
            serde_json::from_str(&run(&[&args[..], &auto].concat()).ended_with(0).stdout).expect("JSON")
        };
        let (first, second) = (report(), report());
        assert_eq!(first["stats"]["samples"], 7, "{first}");
        let trials = first["auto"]["trials"].as_array().expect("trials");
        let chosen = |trial: &&Value| trial["strategy"] == first["strategy"] && trial["workers"] == first["workers"];
        assert!(trials.iter().any(|trial| chosen(&trial)), "{first}");
        assert_eq!((&first["auto"]["from_cache"], &second["auto"]["from_cache"]), (&false.into(), &true.into()));
        assert_eq!((&second["strategy"], &second["workers"]), (&first["strategy"], &first["workers"]));
        let text = run(&[&args[..], &auto[..6]].concat()).ended_with(0).stdout;
        assert!(text.contains("auto      measured earlier: `"), "{text}");
        let plain = run(&[&args[..], &["--json"]].concat()).ended_with(0).stdout;
        assert!(!plain.contains("\"auto\""), "{plain}");
    }
}

#[test]
fn auto_measures_beside_the_compute_that_it_is_told_of() {
    let data = data::array();
    let test = "auto_measures_beside_the_compute_that_it_is_told_of";
    for device in devices(test) {
        let args = ["run", data.arg(), "--device", device, "--batch-size", "2", "--json"];
        let auto = ["--strategy", "auto", "--workers", "auto", "--compute", "300"];
        let report = run(&[&args[..], &auto].concat()).ended_with(0).stdout;
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let why = report["auto"]["why"].as_str().expect("words");
        // Under a driver that compiles for seconds the time is over by then.
        if why.starts_with("nothing could be measured") {
            skip(test, &format!("{device}: {why}"));
            continue;
        }
        assert!(why.contains("beside a consumer that computes for 300 us a batch"), "{report}");
        assert_eq!((&report["auto"]["compute_us"], &report["stats"]["samples"]), (&300.into(), &7.into()), "{report}");
    }
    let ran = run(&["run", "x.npy", "--compute", "300"]).ended_with(2);
    assert!(ran.stderr.contains("--compute is only for --strategy auto"), "{}", ran.stderr);
}

#[test]
fn a_file_for_auto_without_auto_is_wrong_usage() {
    let ran = run(&["run", "x.npy", "--auto-cache", "x.json"]).ended_with(2);
    assert!(ran.stderr.contains("--auto-cache is only for --strategy auto"), "{}", ran.stderr);
}

/// Every variable that a launcher may have set around the tests is taken away first.
fn launched(args: &[&str], set: &[(&str, &str)]) -> Ran {
    let mut command = gpufeed(args);
    for name in ["RANK", "WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"] {
        command.env_remove(name);
    }
    for name in ["OMPI_COMM_WORLD", "MV2_COMM_WORLD"] {
        command.env_remove(format!("{name}_RANK")).env_remove(format!("{name}_SIZE"));
    }
    Ran::of(command.envs(set.iter().copied()).output().expect("the binary runs"))
}

#[test]
fn rank_and_world_come_from_the_environment_where_that_is_asked_for() {
    let data = data::array();
    let args = ["run", data.arg(), "--device", "host", "--seed", "1", "--json", "--share-from-env"];
    let share = |set| -> Value {
        let report: Value = serde_json::from_str(&launched(&args, set).ended_with(0).stdout).expect("JSON");
        report["share"].clone()
    };
    let expected = serde_json::json!({ "rank": 1, "world": 3, "samples_per_epoch": 2 });
    assert_eq!(share(&[("RANK", "1"), ("WORLD_SIZE", "3")]), expected);
    assert_eq!(share(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "3"), ("SLURM_NTASKS", "9")]), expected);
    let unasked = launched(&args[..7], &[("RANK", "1"), ("WORLD_SIZE", "3")]).ended_with(0).stdout;
    assert!(unasked.contains("\"samples\": 7"), "{unasked}");
}

#[test]
fn an_environment_without_a_share_is_an_error_and_not_the_whole_epoch() {
    let data = data::array();
    let args = ["run", data.arg(), "--device", "host", "--share-from-env"];
    let batch = launched(&args, &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]).ended_with(1);
    assert!(batch.stderr.contains("no launcher has set a rank"), "{}", batch.stderr);
    let half = launched(&args, &[("RANK", "1")]).ended_with(1);
    assert!(half.stderr.contains("has RANK and lacks WORLD_SIZE"), "{}", half.stderr);
    let both = launched(&[&args[..], &["--rank", "0", "--world", "2"]].concat(), &[]).ended_with(2);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
}
