//! Input that lies, is damaged, or changes underneath: an error that says so, never a panic, a signal or a huge allocation.

#[path = "../support/counting.rs"]
mod counting;

#[cfg(unix)]
mod changing;
mod images;
#[cfg(all(unix, feature = "wgpu"))]
mod mapped;
mod npy;
mod options;
#[cfg(all(unix, feature = "wgpu"))]
#[path = "../support/skip.rs"]
mod skip;

use std::sync::{Mutex, MutexGuard};

use proptest::test_runner::Config;

/// A bounded number of cases, or as many as `PROPTEST_CASES` says.
fn cases(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    Config { cases: asked.unwrap_or(cases), failure_persistence: None, ..Config::default() }
}

/// Allocations are counted for the whole process, so tests that count take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Does the work and checks that at most `most` bytes were live for it at once.
fn within<R>(most: usize, work: impl FnOnce() -> R) -> R {
    let (result, peak, largest) = counting::peak(work);
    assert!(peak <= most as i64, "{peak} bytes at once, {largest} the largest, and {most} are allowed");
    result
}
