//! `gpufeed doctor`, on machines that are made to lack something. No test asserts a time.

#[cfg(target_os = "linux")]
use std::process::Command;

use serde_json::Value;

#[cfg(target_os = "linux")]
use crate::control_group::ControlGroup;
use crate::support::{Ran, run};
#[cfg(target_os = "linux")]
use crate::support::{gpufeed, skip};

/// The findings of a check.
fn findings(ran: &Ran, check: &str) -> Vec<Value> {
    let all: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("JSON: {} {}", ran.stdout, ran.stderr));
    let all = all["findings"].as_array().expect("findings").clone();
    all.into_iter().filter(|found| found["check"] == check).collect()
}

fn finding(ran: &Ran, check: &str) -> Value {
    let found = findings(ran, check);
    assert_eq!(found.len(), 1, "{check}: {}", ran.stdout);
    found[0].clone()
}

#[test]
fn every_finding_says_what_is_and_how_to_mend_what_is_wrong() {
    let ran = run(&["doctor", "--device", "host", "--json", "--batch-size", "2"]);
    let all: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let all = all["findings"].as_array().expect("findings");
    let wrong = all.iter().filter(|found| found["state"] == "wrong");
    assert!(wrong.clone().all(|found| found["mend"].is_string()), "{}", ran.stdout);
    assert_eq!(ran.code, Some(i32::from(wrong.count() > 0)));
    for check in ["software-adapters", "locked-memory", "container-memory", "cores"] {
        assert!(finding(&ran, check)["what"].as_str().is_some_and(|what| !what.is_empty()), "{check}");
    }
    let shown = run(&["doctor", "--device", "host"]).stdout;
    assert!(shown.contains("cores: ") && shown.trim_end().ends_with('.'), "{shown}");
    run(&["doctor", "--device", "nosuch"]).ended_with(3);
}

#[test]
#[cfg(target_os = "linux")]
fn a_lock_limit_of_64_kib_is_found_with_what_fits_and_how_to_raise_it() {
    const TEST: &str = "a_lock_limit_of_64_kib_is_found_with_what_fits_and_how_to_raise_it";
    let plain = gpufeed(&["doctor", "--device", "host", "--json"]);
    let mut command = Command::new("sh");
    // The superuser may exceed the limit, so that somebody else is asked.
    let script = "ulimit -l 64 || exit 77; [ \"$(id -u)\" = 0 ] || exec \"$@\"; \
                  exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all -- \"$@\"";
    command.args(["-c", script, "sh"]).arg(plain.get_program()).args(plain.get_args());
    let ran = Ran::of(command.output().expect("sh runs"));
    if ran.stdout.is_empty() {
        return skip(TEST, &format!("the limit cannot be set, or another user cannot run it: {}", ran.stderr.trim()));
    }
    let found = finding(&ran, "locked-memory");
    assert_eq!((&found["state"], &found["figures"]["limit_bytes"]), (&"wrong".into(), &65_536.0.into()), "{found}");
    assert_eq!(found["figures"]["locked_bytes"], 65_536.0, "{found}");
    let said = |field: &str, part: &str| found[field].as_str().is_some_and(|text| text.contains(part));
    assert!(said("what", "a limit of 64.0 KiB") && said("mend", "ulimit -l unlimited"), "{found}");
    assert_eq!(ran.code, Some(1));
}

#[test]
#[cfg(target_os = "linux")]
fn a_container_that_is_too_small_is_found_before_the_system_ends_anything() {
    const TEST: &str = "a_container_that_is_too_small_is_found_before_the_system_ends_anything";
    const LIMIT: u64 = 300 << 20;
    let limit = LIMIT.to_string();
    let group = ControlGroup::new("memory", "memory", ("memory.limit_in_bytes", &limit), ("memory.max", &limit));
    let group = match group {
        Ok(group) => group,
        Err(why) => return skip(TEST, &why),
    };
    for device in crate::support::devices(TEST) {
        // 512 images in each of four slots are 294 MiB.
        let ran = group.member(&gpufeed(&["doctor", "--device", device, "--json", "--batch-size", "512"])).output();
        let ran = Ran::of(ran.expect("it runs")).ended_with(1);
        let found = finding(&ran, "container-memory");
        assert_eq!(
            (&found["state"], &found["figures"]["limit_bytes"]),
            (&"wrong".into(), &(LIMIT as f64).into()),
            "{found}"
        );
        assert!(found["what"].as_str().is_some_and(|what| what.starts_with("a limit of 300 MiB")), "{found}");
        assert!(found["mend"].as_str().is_some_and(|mend| mend.contains("--memory")), "{found}");
        for ring in findings(&ran, "largest-ring") {
            assert!(ring["figures"]["ring_bytes"].as_f64() < Some(LIMIT as f64), "{ring}");
        }
        let small = group.member(&gpufeed(&["doctor", "--device", device, "--json", "--batch-size", "2"])).output();
        assert_eq!(finding(&Ran::of(small.expect("it runs")), "container-memory")["state"], "ok");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn data_on_a_slow_disk_are_found_with_the_disks_rate() {
    use gpufeed::source::{NpyType, write_npy};
    use std::os::unix::fs::MetadataExt;
    const TEST: &str = "data_on_a_slow_disk_are_found_with_the_disks_rate";
    const BYTES_S: u64 = 4_000_000;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("images.npy");
    let images = vec![7u8; 160 * 224 * 224 * 3];
    write_npy(&path, NpyType::U8, &[160, 224, 224, 3], &images).expect("written");
    let device = std::fs::metadata(&path).expect("there").dev();
    let disk = format!("{}:{}", (device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
    let (first, second) = (format!("{disk} {BYTES_S}"), format!("{disk} rbps={BYTES_S}"));
    let group = ControlGroup::new("disk", "blkio", ("blkio.throttle.read_bps_device", &first), ("io.max", &second));
    let group = match group {
        Ok(group) => group,
        Err(why) => return skip(TEST, &why),
    };
    // Out of the system's memory, so that the disk is asked.
    let file = format!("of={}", path.display());
    let evicted = Command::new("dd").args([&file, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"]).output();
    if !evicted.is_ok_and(|output| output.status.success()) {
        return skip(TEST, "there is no dd that takes a file out of memory");
    }
    let file = path.to_str().expect("UTF-8");
    let ran = group.member(&gpufeed(&["doctor", file, "--device", "host", "--json"])).output().expect("it runs");
    let found = finding(&Ran::of(ran), "data");
    if found["figures"]["from_storage_share"].as_f64() < Some(0.5) {
        return skip(TEST, &format!("the file stayed in memory: {found}"));
    }
    assert_eq!(found["state"], "wrong", "{found}");
    let rate = found["figures"]["first_samples_s"].as_f64().expect("a rate") * 150_528.0;
    // What the kernel lets through: a slow machine makes it less, and nothing makes it much more.
    assert!(rate < 2.0 * BYTES_S as f64, "{found}");
    assert!(found["mend"].as_str().is_some_and(|mend| mend.starts_with("storage is what holds it back")), "{found}");
}
