//! Choosing strategy and number of workers by measuring, at the start of a program and within a stated time.
//!
//! [`tune`] tries what the device can run with the user's own source, samples and options, and says what it chose and why. Strategies that
//! [allocate per batch](Strategy::allocates_per_batch) are not tried. What it starts from, the backend's default strategy and the
//! options' number of workers, stays unless something else is clearly better; where fewer workers are as good, they are taken. What
//! must not vary can be pinned, and a file can remember what was found.
//!
//! A minute of [`compare`](super::compare) knows more: it verifies every batch and measures for longer. Here one batch of what was chosen
//! is compared with the source.

mod board;
mod cache;
mod held;
mod trial;
mod tuner;
mod words;
mod workers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use self::board::{Board, Standing};
use self::cache::Key;
use self::held::Held;
use self::trial::Ground;
use self::tuner::{Candidates, Progress, Tuner, lock};
use crate::backend::{AdapterInfo, Backend, Strategy};
use crate::error::{LayoutError, OpenError};
use crate::loader::LoaderOptions;
use crate::source::Source;

/// What [`tune`] may do.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoOptions {
    /// How long to measure. With a quarter of it for what a trial cannot interrupt (opening and freeing memory, a source's read)
    /// this bounds the whole call: the default of 1.5 s ends before 1.9 s. A trial that is stuck then is left to itself.
    pub budget: Duration,
    /// Use this strategy, and choose the number of workers only.
    pub strategy: Option<Strategy>,
    /// Use this many workers, and choose the strategy only.
    pub workers: Option<usize>,
    /// Remember the choice in this file, and take it from there next time: for the same device, driver, samples, options and version.
    /// Sources of other kinds with equal samples want files of their own. A file that cannot be used is a warning in the log.
    pub cache: Option<PathBuf>,
}

impl Default for AutoOptions {
    fn default() -> Self {
        Self { budget: Duration::from_millis(1500), strategy: None, workers: None, cache: None }
    }
}

/// What was chosen, and the evidence for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuned {
    /// The options with the strategy and the workers that were chosen: make the loader with them.
    pub options: LoaderOptions,
    /// The strategy chosen, as `options` have it.
    pub strategy: Strategy,
    /// The number of workers chosen, as `options` have it.
    pub workers: usize,
    /// Why, in words.
    pub why: String,
    /// What was measured; empty where nothing was to be chosen, or where the choice comes from the cache.
    pub trials: Vec<Trial>,
    /// Whether a batch of what was chosen was read back and compared with the source in this call.
    pub checked: bool,
    /// Whether the choice comes from the cache.
    pub from_cache: bool,
    /// How long the call took.
    pub took: Duration,
}

/// A strategy with a number of workers that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trial {
    /// The strategy.
    pub strategy: Strategy,
    /// The number of workers. A strategy that reads the source's own memory has none.
    pub workers: usize,
    /// Batches measured.
    pub batches: u64,
    /// Gigabytes of source bytes a second, of each slice; empty if it could not be measured.
    pub gb_s: Vec<f64>,
    /// Why it could not be measured.
    pub failed: Option<String>,
}

/// Chooses strategy and number of workers for a loader of `source` on this device.
///
/// `options` are the loader's; their `strategy` (or the backend's default) and `workers` are what others must beat. Blocks for at most
/// the [budget](AutoOptions::budget) and a quarter, and returns early where there is nothing more to learn. A source that is too slow to be
/// measured in that time keeps the defaults, and [`why`](Tuned::why) says so.
///
/// ```
/// use std::sync::Arc;
/// use gpufeed::backend::host::HostBackend;
/// use gpufeed::measure::{AutoOptions, tune};
/// use gpufeed::{Loader, LoaderOptions, SampleLayout, Source, source::random_images};
///
/// # fn main() -> Result<(), gpufeed::OpenError> {
/// let images: Arc<dyn Source> = Arc::new(random_images(SampleLayout::image(32, 32, 3)?, 256, 1)?);
/// let backend = HostBackend::new();
/// let tuned = tune(&backend, &images, LoaderOptions::default(), &AutoOptions::default())?;
/// println!("{} with {} workers: {}", tuned.strategy, tuned.workers, tuned.why);
/// let loader = Loader::new(&backend, images, tuned.options)?;
/// # assert_eq!(loader.strategy(), tuned.strategy);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Loader::new`](crate::Loader::new), where not one candidate could be opened or what was pinned cannot run.
pub fn tune<B: Backend>(
    backend: &B,
    source: &Arc<dyn Source>,
    options: LoaderOptions,
    auto: &AutoOptions,
) -> Result<Tuned, OpenError> {
    let start = Instant::now();
    let wanted = Wanted::new(backend, &**source, options, auto)?;
    let candidates = wanted.candidates(backend, &**source, auto);
    if candidates.strategies.len() == 1 && !candidates.workers {
        return Ok(wanted.tuned(wanted.default(), words::no_choice(auto, wanted.strategy), start));
    }
    let key = auto.cache.as_ref().map(|file| (file, wanted.key(backend.info(), &**source, auto)));
    let known = key.as_ref().and_then(|(file, key)| cache::find(file, key));
    // What the device can run may have changed with its settings.
    if let Some(found) = known.filter(|found| candidates.strategies.contains(&found.strategy)) {
        let why = format!("measured earlier: {}", found.why);
        return Ok(Tuned { from_cache: true, ..wanted.tuned((found.strategy, found.workers), why, start) });
    }
    let workers_open = candidates.workers;
    let Progress { board, checked, opened, error } =
        measure(backend, source, &wanted, candidates, (start, auto.budget))?;
    let trials = board.entries.iter().map(Trial::of).collect();
    let Some(place) = board.choice() else {
        return match error {
            Some(error) if !opened => Err(error),
            _ => {
                let why = words::nothing(&board, start.elapsed().as_secs_f64());
                Ok(Tuned { trials, ..wanted.tuned(wanted.default(), why, start) })
            }
        };
    };
    let chosen = (board.entries[place].strategy, board.entries[place].workers);
    let why = words::why(&board, place, backend.info(), workers_open);
    if let Some((file, key)) = key {
        cache::keep(file, key, chosen, &why);
    }
    Ok(Tuned { trials, checked, ..wanted.tuned(chosen, why, start) })
}

/// What was asked for, with what stays where nothing better is found.
struct Wanted {
    options: LoaderOptions,
    strategy: Strategy,
    workers: usize,
}

impl Wanted {
    fn new<B: Backend>(
        backend: &B,
        source: &dyn Source,
        options: LoaderOptions,
        auto: &AutoOptions,
    ) -> Result<Self, OpenError> {
        let strategy = auto.strategy.or(options.strategy).unwrap_or_else(|| backend.default_strategy());
        let workers = auto.workers.unwrap_or(options.workers);
        let options = LoaderOptions { workers, ..options };
        options.validate()?;
        if source.is_empty() {
            return Err(LayoutError::Zero { what: "the number of samples in the source" }.into());
        }
        if let Some(pinned) = auto.strategy {
            backend.supports(pinned)?;
        }
        Ok(Self { options, strategy, workers })
    }

    fn default(&self) -> (Strategy, usize) {
        (self.strategy, self.workers)
    }

    /// What the device can run at constant memory, the default first.
    fn candidates<B: Backend>(&self, backend: &B, source: &dyn Source, auto: &AutoOptions) -> Candidates {
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

    fn key(&self, adapter: &AdapterInfo, source: &dyn Source, auto: &AutoOptions) -> Key {
        let asked = LoaderOptions { strategy: Some(self.strategy), ..self.options.clone() };
        Key::new(adapter, source, &asked, (auto.strategy, auto.workers))
    }

    fn tuned(&self, (strategy, workers): (Strategy, usize), why: String, start: Instant) -> Tuned {
        let options = LoaderOptions { strategy: Some(strategy), workers, ..self.options.clone() };
        let took = start.elapsed();
        Tuned { options, strategy, workers, why, trials: Vec::new(), checked: false, from_cache: false, took }
    }
}

/// Measures on a thread of its own, and leaves it to itself if it is stuck: in a source's read, or in the driver.
fn measure<B: Backend>(
    backend: &B,
    source: &Arc<dyn Source>,
    wanted: &Wanted,
    candidates: Candidates,
    (start, budget): (Instant, Duration),
) -> Result<Progress, OpenError> {
    let board = Board::new(wanted.strategy, wanted.workers);
    let progress = Arc::new(Mutex::new(Progress { board, checked: false, opened: false, error: None }));
    let ground = Ground::new(backend.clone(), Arc::clone(source), wanted.options.clone());
    let held = Held::new(ground, backend.info(), wanted.options.byte_budget);
    // A year: more cannot always be added to a point in time.
    let budget = budget.min(Duration::from_secs(365 * 24 * 60 * 60));
    let mut tuner = Tuner::new(held, candidates, Arc::clone(&progress), (start, start + budget));
    let (alive, ended) = flume::bounded::<()>(0);
    let run = move || {
        tuner.run();
        // All memory is free before the caller goes on.
        drop(tuner);
        drop(alive);
    };
    let thread = thread::Builder::new().name("gpufeed-auto".to_owned()).spawn(run);
    let thread = thread.map_err(|error| OpenError::Thread { message: error.to_string() })?;
    if matches!(ended.recv_deadline(start + budget + budget / 4), Err(flume::RecvTimeoutError::Timeout)) {
        log::warn!("a trial is stuck in the source or the driver, and is left to end by itself");
    } else if thread.join().is_err() {
        log::error!("measuring has panicked; what it had found by then counts");
    }
    let known = lock(&progress).clone();
    Ok(known)
}

impl Trial {
    fn of(entry: &board::Entry) -> Self {
        let failed = match &entry.standing {
            Standing::Failed(reason) => Some(reason.clone()),
            Standing::TooSlow => Some(words::TOO_SLOW.to_owned()),
            Standing::In | Standing::Slower => None,
        };
        let gb_s = entry.slices.iter().map(|&(_, rate)| rate).collect();
        Self { strategy: entry.strategy, workers: entry.workers, batches: entry.batches, gb_s, failed }
    }

    /// The median of its slices; `None` if it could not be measured.
    #[must_use]
    pub fn median_gb_s(&self) -> Option<f64> {
        super::Summary::of(&self.gb_s).map(|summary| summary.median)
    }
}
