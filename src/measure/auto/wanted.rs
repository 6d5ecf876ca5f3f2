//! What was asked of the automatic choice.

use std::thread;
use std::time::{Duration, Instant};

use super::cache::Key;
use super::candidate::Candidates;
use super::options::AutoOptions;
use super::tuned::Tuned;
use crate::backend::{AdapterInfo, Backend, Strategy};
use crate::error::{LayoutError, OpenError};
use crate::loader::LoaderOptions;
use crate::source::Source;

/// Trials beside a consumer that computes for longer are none.
const MAX_COMPUTE: Duration = Duration::from_secs(1);

/// What was asked for, with what stays where nothing better is found.
pub(super) struct Wanted {
    pub(super) options: LoaderOptions,
    pub(super) strategy: Strategy,
    pub(super) workers: usize,
    pub(super) consumer: Consumed,
}

/// What is known of the consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Consumed {
    /// How long it computes for each batch.
    Computing(Duration),
    /// How many seconds a step took beside it, of the default strategy with the default workers.
    Stepping(f64),
}

impl Wanted {
    pub(super) fn new<B: Backend>(
        backend: &B,
        source: &dyn Source,
        options: LoaderOptions,
        auto: &AutoOptions,
    ) -> Result<Self, OpenError> {
        let strategy = auto.strategy.or(options.strategy).unwrap_or_else(|| backend.default_strategy());
        let workers = auto.workers.unwrap_or(options.workers);
        let options = LoaderOptions { workers, ..options };
        options.validate()?;
        if auto.compute > MAX_COMPUTE {
            let reason = format!("{:?} a batch is longer than the {MAX_COMPUTE:?} that are tried", auto.compute);
            return Err(OpenError::Option { option: "compute", reason });
        }
        if source.is_empty() {
            return Err(LayoutError::Zero { what: "the number of samples in the source" }.into());
        }
        if let Some(pinned) = auto.strategy {
            backend.supports(pinned)?;
        }
        Ok(Self { options, strategy, workers, consumer: Consumed::Computing(auto.compute) })
    }

    pub(super) fn default(&self) -> (Strategy, usize) {
        (self.strategy, self.workers)
    }

    /// What the device can run at constant memory, the default first.
    pub(super) fn candidates<B: Backend>(&self, backend: &B, source: &dyn Source, auto: &AutoOptions) -> Candidates {
        let in_memory = source.direct().is_some();
        let fits = |strategy: &Strategy| {
            !strategy.allocates_per_batch()
                && (in_memory || !strategy.is_direct())
                && backend.supports(*strategy).is_ok()
        };
        let mut strategies = vec![self.strategy];
        if auto.strategy.is_none() {
            let mut others: Vec<Strategy> =
                Strategy::ALL.iter().copied().filter(|other| *other != self.strategy && fits(other)).collect();
            others.sort_by_key(|strategy| strategy.is_direct());
            strategies.extend(others);
        }
        let staged = strategies.iter().any(|strategy| !strategy.is_direct());
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Candidates { strategies, workers: auto.workers.is_none() && staged, cores }
    }

    pub(super) fn key(&self, adapter: &AdapterInfo, source: &dyn Source, auto: &AutoOptions) -> Key {
        let asked = LoaderOptions { strategy: Some(self.strategy), ..self.options.clone() };
        Key::new(adapter, source, &asked, (auto.strategy, auto.workers), auto.compute)
    }

    pub(super) fn tuned(&self, (strategy, workers): (Strategy, usize), why: String, start: Instant) -> Tuned {
        let options = LoaderOptions { strategy: Some(strategy), workers, ..self.options.clone() };
        let took = start.elapsed();
        let compute = match self.consumer {
            Consumed::Computing(time) => time,
            Consumed::Stepping(_) => Duration::ZERO,
        };
        Tuned { options, strategy, workers, compute, why, trials: Vec::new(), checked: false, from_cache: false, took }
    }
}
