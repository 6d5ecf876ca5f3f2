//! Loaders under random faults: samples that fail, panic, are short or slow; devices that refuse, delay or are lost; and users who
//! stop, hold, drop and read in any order. Every run must end, leak nothing, and tell every cause.
//!
//! A run is chosen by its seed, and a failure prints it: `GPUFEED_FAULT_SEED=n` runs that one alone, a thousand times over, since the
//! threads' timing is no part of it. `GPUFEED_FAULT_RUNS=n` sets the number of runs.

#[path = "../support/counting.rs"]
mod counting;
mod device;
mod harness;
mod pass;
mod plan;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/random.rs"]
mod random;
mod run;
#[cfg(feature = "wgpu")]
#[path = "../support/skip.rs"]
mod skip;
mod source;
mod watch;
mod witness;

use std::sync::{Mutex, MutexGuard};

use device::FaultyDevice;
use gpufeed::Strategy;
use plan::{Plan, Size};

/// Small enough for a thousand runs in seconds.
const SMALL: Size = Size { samples: 60, batch: 9, bytes: 90, side: 9 };

/// What is measured is the whole process, so tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// The seeds to run.
fn seeds(runs: u64) -> Vec<u64> {
    match number("GPUFEED_FAULT_SEED") {
        Some(seed) => vec![seed; 1000],
        None => (0..number("GPUFEED_FAULT_RUNS").unwrap_or(runs)).collect(),
    }
}

/// Runs a plan; `bytes` are live when nothing of it is left.
fn one<B: FaultyDevice>(plan: Plan, backend: B, bytes: Option<i64>) {
    harness::attempt(plan, backend, bytes).unwrap_or_else(|what| panic!("{what}"));
}

#[test]
fn a_thousand_runs_on_the_host_end_leak_nothing_and_tell_every_cause() {
    let _turn = alone();
    harness::quiet();
    let run = |seed, bytes| {
        let plan = Plan::new(seed, &[Strategy::Memcpy], SMALL);
        let backend = device::host(&plan);
        one(plan, backend, bytes);
    };
    let seeds = seeds(1000);
    // What is made once and kept is the standard library's own.
    (0..50).for_each(|seed| run(u64::MAX - seed, None));
    let bytes = counting::live();
    for seed in seeds {
        run(seed, Some(bytes));
    }
}

/// The same on a device of wgpu's, whose own memory this process does not count.
#[cfg(feature = "wgpu")]
fn runs_on(id: &str, name: &str, runs: u64) {
    use gpufeed::OpenError;
    use gpufeed::backend::wgpu::{CopyQueue, KernelQueue, Tuning, WgpuBackend};

    let _turn = alone();
    harness::quiet();
    let shared = match WgpuBackend::open(id) {
        Err(OpenError::NoDevice { found, .. }) => {
            return skip::skip(name, &format!("no such device here (found: {found})"));
        }
        opened => opened.expect("the device is there and opens"),
    };
    let strategies = shared.strategies();
    for seed in seeds(runs) {
        let plan = Plan::new(seed, &strategies, SMALL);
        // One that is lost is of no use to the next run.
        let backend = if plan.loss.is_some() { WgpuBackend::open(id).expect("again") } else { shared.clone() };
        // Every other run copies on a queue of its own, and every third has its kernels on one, where there are any.
        let copies = if seed % 2 == 1 { CopyQueue::Beside } else { CopyQueue::Main };
        let kernels = if seed % 3 == 2 { KernelQueue::Beside } else { KernelQueue::Main };
        one(plan, backend.with_tuning(Tuning { copies, kernels, ..Tuning::default() }), None);
    }
}

#[cfg(feature = "wgpu")]
#[test]
fn runs_on_vulkan_end_and_tell_every_cause() {
    runs_on("vulkan:0", "runs_on_vulkan_end_and_tell_every_cause", 60);
}

#[cfg(feature = "wgpu")]
#[test]
fn runs_on_gl_end_and_tell_every_cause() {
    runs_on("gl:0", "runs_on_gl_end_and_tell_every_cause", 40);
}
