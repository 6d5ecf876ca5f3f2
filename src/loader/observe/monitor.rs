//! What is told about a loader while it runs: to whoever reads its counters from another thread, and to the log.

use std::ops::Range;
use std::sync::Arc;

use super::super::LoaderOptions;
use super::super::bad::BadSampleLog;
use super::metrics::Metrics;
use super::stats::LoaderStats;
use crate::backend::{AdapterInfo, Footprint, Strategy};

/// Reads a loader's counters, from any thread and while an epoch borrows the loader. It may outlive the loader.
#[derive(Clone, Debug)]
pub struct Monitor {
    metrics: Arc<Metrics>,
    bad_log: Arc<BadSampleLog>,
}

impl Monitor {
    pub(in crate::loader) fn new(metrics: &Arc<Metrics>, bad_log: &Arc<BadSampleLog>) -> Self {
        Self { metrics: Arc::clone(metrics), bad_log: Arc::clone(bad_log) }
    }

    /// What the loader has done so far, and where the time went.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        let (skipped, substituted) = self.bad_log.counts();
        LoaderStats { skipped, substituted, ..self.metrics.snapshot() }
    }

    /// The epoch that is under way.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.metrics.epoch()
    }
}

/// What a loader is called in a trace.
pub(in crate::loader) fn name(info: &AdapterInfo, strategy: Strategy) -> String {
    format!("{} {}, {strategy}", info.id, info.name)
}

/// A loader was made.
pub(in crate::loader) fn opened(
    info: &AdapterInfo,
    strategy: Strategy,
    options: &LoaderOptions,
    workers: usize,
    footprint: Footprint,
) {
    let chosen = if options.strategy.is_some() { "asked for" } else { "the device's own" };
    let LoaderOptions { batch_size, slots, outputs, .. } = options;
    log::info!(
        "loader on {} ({}): strategy {strategy} ({chosen}), batches of {batch_size}, {workers} workers, {slots} slots, \
         {outputs} outputs, {} bytes",
        info.id,
        info.name,
        footprint.total()
    );
}

/// An epoch begins.
pub(in crate::loader) fn epoch_begins(epoch: u64, batches: Range<u64>) {
    log::debug!("epoch {epoch} begins: batches {} to {}", batches.start, batches.end);
}

/// An epoch ends, with so many batches that were not taken.
pub(in crate::loader) fn epoch_ends(epoch: u64, left: u64, stats: impl FnOnce() -> LoaderStats) {
    if log::log_enabled!(log::Level::Debug) {
        let stats = stats();
        log::debug!(
            "epoch {epoch} ends, {left} batches left; since the last reset {} batches in {:.3} s, data readiness {:.2}",
            stats.batches,
            stats.active_s,
            stats.data_readiness()
        );
    }
}
