//! What a loader does, and how long it takes: for its watchdog, its counters, traces and verdict. Nothing here changes what it does.

pub(super) mod activity;
pub(super) mod distribution;
pub(super) mod metrics;
pub(super) mod monitor;
pub(super) mod stats;
pub(super) mod trace;
pub(super) mod verdict;
pub(super) mod watchdog;
