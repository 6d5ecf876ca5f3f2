//! What the command tells.

use std::collections::BTreeSet;

use crate::data;
use crate::support::{cards, devices, gpufeed, run, skip};

#[test]
fn devices_lists_each_once_with_its_strategies_and_limits() {
    let cards = cards();
    let ids: Vec<&str> = cards.iter().flatten().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    assert!(ids.contains(&"host"));
    let table = run(&["devices"]).ended_with(0).stdout;
    for entry in cards.iter().flatten() {
        assert!(table.contains(&entry.id) && table.contains(&entry.name), "{}:\n{table}", entry.id);
        assert!(entry.strategies.iter().all(|known| table.contains(known.strategy.key())), "{table}");
        assert!(entry.limits.iter().all(|(name, _)| table.contains(name)), "{table}");
        assert!(!entry.is_software() || entry.id == "host" || table.contains("software"), "{table}");
    }
}

#[test]
fn a_report_adds_up_on_every_device() {
    let data = data::array();
    for device in devices("a_report_adds_up_on_every_device") {
        let args = ["run", data.arg(), "--device", device, "--epochs", "3", "--batch-size", "2", "--json"];
        let report: serde_json::Value = serde_json::from_str(&run(&args).ended_with(0).stdout).expect("JSON");
        assert_eq!((&report["device"]["id"], &report["error"]), (&device.into(), &serde_json::Value::Null));
        let stats = &report["stats"];
        assert_eq!((&stats["batches"], &stats["samples"]), (&12.into(), &21.into()), "{report}");
        assert_eq!(stats["bytes"], 21 * data::BYTES);
        let rate = report["samples_per_s"].as_f64().expect("a rate") * report["elapsed_s"].as_f64().expect("a time");
        assert!((rate - 21.0).abs() < 1e-6, "{report}");
        assert!(stats["latency"]["p50_us"].as_f64() > Some(0.0), "{report}");
        assert_eq!(report["tensor_shape"], serde_json::json!([2, 3, data::HEIGHT, data::WIDTH]));
    }
}

#[test]
fn a_report_for_people_names_the_device_and_what_it_is() {
    let data = data::array();
    for device in devices("a_report_for_people_names_the_device_and_what_it_is") {
        let text = run(&["run", data.arg(), "--device", device]).ended_with(0).stdout;
        assert!(text.starts_with("7 images in 1 batch in "), "{text}");
        for part in [device, "latency", "wait in next", "source, per worker", "submit", "GPU", "staging"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert_eq!(text.contains("debug build"), cfg!(debug_assertions), "{text}");
    }
}

#[test]
fn without_any_driver_the_host_runs_and_it_is_said_in_plain_sight() {
    let data = data::array();
    let mut command = gpufeed(&["run", data.arg()]);
    // No driver is installed where these look for them.
    for name in ["VK_ICD_FILENAMES", "VK_DRIVER_FILES", "__EGL_VENDOR_LIBRARY_FILENAMES", "LIBGL_DRIVERS_PATH"] {
        command.env(name, "/nonexistent");
    }
    let ran = crate::support::Ran::of(command.output().expect("the binary runs")).ended_with(0);
    if ran.stdout.contains("device    host") {
        assert!(
            ran.stderr.contains("note: no GPU driver was found. The `host` backend runs instead"),
            "{}",
            ran.stderr
        );
    } else {
        skip("without_any_driver_the_host_runs_and_it_is_said_in_plain_sight", "a driver was found all the same");
    }
}
