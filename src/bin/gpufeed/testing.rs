//! Adapters for tests: what a device is can be changed outside of the library, and not written as a literal.

use gpufeed::backend::{StrategySupport, host::host_info};
use gpufeed::{AdapterInfo, Strategy};

/// The host's, changed.
pub fn adapter(change: impl FnOnce(&mut AdapterInfo)) -> AdapterInfo {
    let mut adapter = host_info();
    change(&mut adapter);
    adapter
}

/// A strategy that runs, or why not, and its memory. Nothing is known of its queues.
pub fn support(strategy: Strategy, missing: Option<&str>, memory: Option<&str>) -> StrategySupport {
    let mut support = host_info().strategies.remove(0);
    support.strategy = strategy;
    (support.missing, support.memory) = (missing.map(str::to_owned), memory.map(str::to_owned));
    support
}
