//! A run from its start until nothing of it is left.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::device::FaultyDevice;
use super::plan::Plan;
use super::run::{Tally, run};
use super::watch::Watch;
use super::{counting, process, source};

/// Panics that are injected are not shown.
pub fn quiet() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload_as_str().is_some_and(|text| text.starts_with(source::INJECTED)) {
            before(info);
        }
    }));
}

/// Runs a plan on its own thread and waits until nothing of it is left; `bytes` are live when it is.
///
/// # Errors
/// What went wrong, with the seed and the plan.
pub fn attempt<B: FaultyDevice>(plan: Plan, backend: B, bytes: Option<i64>) -> Result<Tally, String> {
    let (watch, seed, shown) = (Watch::new(), plan.seed, format!("{plan:#?}"));
    let tally = Arc::<Mutex<Tally>>::default();
    let on_its_own = {
        let (watch, tally) = (watch.clone(), Arc::clone(&tally));
        move || {
            let told = run(&plan, &backend, &watch);
            *tally.lock().expect("nobody panics with it") = told;
        }
    };
    let thread = std::thread::Builder::new().name("fault-run".into()).spawn(on_its_own);
    let ended = watch.wait(thread.map_err(|error| error.to_string())?);
    drop(watch);
    let told = *tally.lock().expect("nobody panics with it");
    drop(tally);
    ended
        .and_then(|()| gone(bytes.map(|bytes| bytes + shown.capacity() as i64)))
        .map(|()| told)
        .map_err(|what| format!("seed {seed}: {what}\nrun it alone with GPUFEED_FAULT_SEED={seed}\n{shown}"))
}

/// Waits for what nobody joins: the thread that waits for asynchronous callers, and what ended threads take along.
fn gone(bytes: Option<i64>) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let threads = process::own_threads();
        let leaked = bytes.map_or(0, |bytes| counting::live() - bytes);
        if threads == 0 && leaked == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            let threads = process::threads().join("\n    ");
            return Err(format!("{leaked} bytes are left; threads:\n    {threads}"));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
