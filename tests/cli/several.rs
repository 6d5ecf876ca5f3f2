//! Several devices, or several machines, that share each epoch.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::data::{self, Array, BYTES, Data, IMAGES};
use crate::support::{devices, run, skip};

const BATCH: usize = 2;
const EPOCHS: usize = 2;
const BOTH: [&str; 4] = ["--device", "host", "--device", "vulkan:0"];

/// Whether there is a second device beside the host.
fn both_are_there(test: &str) -> bool {
    let there = devices(test).contains(&"vulkan:0");
    if !there {
        skip(test, "it needs host and vulkan:0");
    }
    there
}

/// What was saved into a folder of `samples` samples an epoch, epoch by epoch.
fn saved(folder: &Path, samples: usize) -> Vec<Vec<i64>> {
    let per_epoch = samples.div_ceil(BATCH);
    let files = fs::read_dir(folder).expect("the folder").count();
    assert_eq!(files, 3 * EPOCHS * per_epoch, "{}: nothing but these batches", folder.display());
    let indices = |number: usize| Array::read(&folder.join(format!("batch-{number:06}.indices.npy"))).i64s();
    (0..EPOCHS).map(|epoch| (0..per_epoch).flat_map(|batch| indices(epoch * per_epoch + batch)).collect()).collect()
}

/// Each epoch of the two together is every sample once.
fn check_epochs(first: &[Vec<i64>], second: &[Vec<i64>]) {
    assert_eq!((first.len(), second.len()), (EPOCHS, EPOCHS));
    for (first, second) in first.iter().zip(second) {
        let mut all = [&first[..], second].concat();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..IMAGES as i64), "{first:?} and {second:?}");
    }
    assert_ne!(first[0], first[1], "each epoch is shuffled anew");
}

fn shuffled(data: &Data, folder: &Path, more: &[&str]) -> Value {
    let args = ["run", data.arg(), "--batch-size", "2", "--epochs", "2", "--seed", "5", "--json", "--save"];
    let ran = run(&[&args[..], &[folder.to_str().expect("a path in ASCII")], more].concat()).ended_with(0);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn two_devices_share_each_epoch_and_the_report_has_each_and_the_sum() {
    if !both_are_there("two_devices_share_each_epoch_and_the_report_has_each_and_the_sum") {
        return;
    }
    let data = data::array();
    let folder = data.folder.path().join("saved");
    let report = shuffled(&data, &folder, &BOTH);
    check_epochs(&saved(&folder.join("host"), 4), &saved(&folder.join("vulkan-0"), 3));
    let (each, sum) = (&report["devices"], &report["sum"]);
    assert_eq!(each.as_array().map(Vec::len), Some(2), "{report}");
    for (rank, (id, samples)) in [("host", 8), ("vulkan:0", 6)].into_iter().enumerate() {
        let device = &each[rank];
        assert_eq!((&device["device"]["id"], &device["stats"]["samples"]), (&id.into(), &samples.into()), "{report}");
        assert_eq!((&device["share"]["rank"], &device["share"]["world"]), (&rank.into(), &2.into()), "{report}");
        assert!(device["elapsed_s"].as_f64() <= sum["elapsed_s"].as_f64(), "{report}");
    }
    assert_eq!((&sum["samples"], &sum["batches"], &sum["bytes"]), (&14.into(), &8.into(), &(14 * BYTES).into()));
    assert_eq!((&sum["interrupted"], &sum["error"]), (&false.into(), &Value::Null));
    let rate = sum["samples_per_s"].as_f64().expect("a rate") * sum["elapsed_s"].as_f64().expect("a time");
    assert!((rate - 14.0).abs() < 1e-6, "{report}");
}

#[test]
fn the_report_of_two_devices_for_people_begins_with_the_sum() {
    if both_are_there("the_report_of_two_devices_for_people_begins_with_the_sum") {
        let data = data::array();
        let text =
            run(&[&["run", data.arg(), "--drop-last", "--batch-size", "3"][..], &BOTH].concat()).ended_with(0).stdout;
        assert!(text.starts_with("6 images in 2 batches on 2 devices in "), "{text}");
        for part in ["\nhost: 3 images in 1 batch in ", "\nvulkan:0: 3 images in 1 batch in ", "rank 1 of 2: 3 images"]
        {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }
}

#[test]
fn an_error_on_one_device_stops_all_and_names_it() {
    if !both_are_there("an_error_on_one_device_stops_all_and_names_it") {
        return;
    }
    let data = data::folder_of("png");
    // In the source's order, the second device gets each sample with an odd number.
    fs::write(data.path.join("dog").join("5.png"), b"no image").expect("damaged");
    let args = ["run", data.arg(), "--size", "9x13", "--batch-size", "1", "--epochs", "4000000000"];
    let ran = run(&[&args[..], &BOTH].concat()).ended_with(1);
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("could not be read")).collect();
    assert_eq!(told.len(), 1, "only the device that failed tells: {}", ran.stderr);
    assert!(told[0].starts_with("error: vulkan:0: sample 5 "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("another device failed"), "{}", ran.stderr);
    let headline = ran.stdout.lines().next().expect("a summary");
    assert!(headline.contains("on 2 devices") && headline.ends_with("(stopped by an error)"), "{headline}");
}

#[test]
fn what_one_device_cannot_do_is_told_with_its_id() {
    if both_are_there("what_one_device_cannot_do_is_told_with_its_id") {
        let data = data::array();
        let ran = run(&[&["run", data.arg(), "--strategy", "memcpy"][..], &BOTH].concat()).ended_with(1);
        assert!(ran.stderr.contains("error: vulkan:0: strategy `memcpy` is not available here"), "{}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
}

#[test]
fn the_same_device_twice_is_wrong_usage_whatever_it_is_called() {
    let data = data::array();
    for second in ["host", "HOST"] {
        let ran = run(&["run", data.arg(), "--device", "host", "--device", second]).ended_with(2);
        assert!(
            ran.stderr.contains("host is given twice") && ran.stderr.contains("Usage: gpufeed run"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn two_machines_share_each_epoch() {
    let data = data::array();
    let machine = |rank: &str| {
        let folder = data.folder.path().join(rank);
        let report = shuffled(&data, &folder, &["--device", "host", "--rank", rank, "--world", "2"]);
        assert_eq!(report["share"]["world"], 2, "{report}");
        let samples = report["share"]["samples_per_epoch"].as_u64().expect("a count");
        saved(&folder, samples as usize)
    };
    check_epochs(&machine("0"), &machine("1"));
}

#[test]
fn a_rank_without_samples_is_told_so() {
    let data = data::array();
    let args = ["run", data.arg(), "--device", "host", "--rank", "8", "--world", "9"];
    let ran = run(&args).ended_with(1);
    assert!(ran.stderr.contains("error: 7 samples are too few for 9 ranks: rank 8 has none"), "{}", ran.stderr);
    let ran = run(&[&args[..], &["--drop-last"]].concat()).ended_with(1);
    assert!(ran.stderr.contains("do not fill a batch of 64 on each of 9 ranks"), "{}", ran.stderr);
}
