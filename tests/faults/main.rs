//! Loaders under random faults: samples that fail, panic, are short or slow; devices that refuse, delay or are lost; and users who
//! stop, hold, drop and read in any order. Every run must end, leak nothing, and tell every cause.
//!
//! A run is chosen by its seed, and a failure prints it: `GPUFEED_FAULT_SEED=n` runs that one alone, a thousand times over, since the
//! threads' timing is no part of it. `GPUFEED_FAULT_RUNS=n` sets the number of runs.

#[path = "../support/counting.rs"]
mod counting;
mod device;
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
use std::time::{Duration, Instant};

use device::FaultyDevice;
use gpufeed::Strategy;
use plan::Plan;
use watch::Watch;

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

/// Panics that are injected are not shown.
fn quiet() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload_as_str().is_some_and(|text| text.starts_with(source::INJECTED)) {
            before(info);
        }
    }));
}

/// Runs a seed on its own thread and waits until nothing of it is left.
fn one<B: FaultyDevice>(plan: &Plan, backend: B) {
    let watch = Watch::new();
    let thread = {
        let (plan, watch) = (plan.clone(), watch.clone());
        std::thread::Builder::new().name("fault-run".into()).spawn(move || run::run(&plan, &backend, &watch))
    };
    let ended = watch.wait(thread.expect("a thread"));
    ended.and_then(|()| threads_end()).unwrap_or_else(|what| {
        panic!("seed {}: {what}\nrun it alone with GPUFEED_FAULT_SEED={}\n{plan:#?}", plan.seed, plan.seed);
    });
}

/// Waits for the loader's threads that nobody joins: the one that waits for asynchronous callers.
fn threads_end() -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(2);
    while process::own_threads() > 0 {
        if Instant::now() > deadline {
            return Err(format!("threads are left:\n    {}", process::threads().join("\n    ")));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

#[test]
fn a_thousand_runs_on_the_host_end_leak_nothing_and_tell_every_cause() {
    let _turn = alone();
    quiet();
    let plans = |seed| Plan::new(seed, &[Strategy::Memcpy]);
    // What is made once and kept: the standard library's own.
    (0..20).for_each(|seed| one(&plans(u64::MAX - seed), device::host(&plans(u64::MAX - seed))));
    for seed in seeds(1000) {
        let before = counting::live();
        let plan = plans(seed);
        one(&plan, device::host(&plan));
        drop(plan);
        let leaked = counting::live() - before;
        if leaked != 0 {
            eprintln!("seed {seed}: {leaked} bytes are left");
        }
    }
}
