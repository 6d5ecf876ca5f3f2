//! `gpufeed run --shrink`: less memory, and said so.

use serde_json::Value;

use crate::data::{self, Data};
use crate::support::{Ran, run};

fn ran(data: &Data, more: &[&str]) -> Ran {
    run(&[&["run", data.arg(), "--device", "host", "--batch-size", "2", "--json"], more].concat())
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// The bytes that a run of these sizes takes.
fn needed(data: &Data, slots: &str, outputs: &str) -> u64 {
    let footprint = &report(&ran(data, &["--slots", slots, "--outputs", outputs]).ended_with(0))["footprint"];
    ["staging", "device", "outputs", "host"].iter().filter_map(|part| footprint[part].as_u64()).sum()
}

#[test]
fn a_budget_that_is_too_small_for_all_slots_is_kept_with_fewer() {
    let data = data::array();
    let budget = needed(&data, "2", "8").to_string();
    let sizes = ["--slots", "8", "--outputs", "8", "--budget", &budget];
    let refused = ran(&data, &sizes).ended_with(1);
    assert!(refused.stdout.is_empty() && !refused.stderr.contains("shrink"), "{}", refused.stderr);
    let shrunk = ran(&data, &[&sizes[..], &["--shrink"]].concat()).ended_with(0);
    let report = report(&shrunk);
    assert_eq!((&report["slots"], &report["outputs"], &report["stats"]["samples"]), (&2.into(), &8.into(), &7.into()));
    let because = format!("and the budget is {budget}");
    assert_eq!(shrunk.stderr.matches(&because).count(), 2, "each try says why: {}", shrunk.stderr);
    for said in ["note: host: ", "trying 4 slots and 8 outputs instead of 8 and 8", "trying 2 slots and 8 outputs"] {
        assert!(shrunk.stderr.contains(said), "{said}: {}", shrunk.stderr);
    }
}

#[test]
fn outputs_shrink_after_slots_and_too_little_memory_stays_an_error() {
    let data = data::array();
    let least = needed(&data, "2", "2");
    let sizes =
        |budget: u64| ran(&data, &["--slots", "3", "--outputs", "6", "--shrink", "--budget", &budget.to_string()]);
    let shrunk = sizes(least).ended_with(0);
    let report = report(&shrunk);
    assert_eq!((&report["slots"], &report["outputs"]), (&2.into(), &2.into()), "{}", shrunk.stderr);
    let refused = sizes(least - 1).ended_with(1);
    let last = refused.stderr.lines().last().expect("an error");
    assert!(last.starts_with(&format!("error: {least} bytes are needed")), "{}", refused.stderr);
    assert!(refused.stdout.is_empty(), "{}", refused.stdout);
}

#[test]
fn where_memory_suffices_nothing_is_shrunk_or_said() {
    let ran = ran(&data::array(), &["--shrink"]).ended_with(0);
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
}
