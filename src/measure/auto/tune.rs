//! The call that chooses.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::cache;
use super::candidate::{CandidateStatus, Candidates};
use super::describe;
use super::open_loaders::OpenLoaders;
use super::options::AutoOptions;
use super::scoreboard::{Entry, Scoreboard};
use super::trial::TrialContext;
use super::tuned::{Trial, Tuned};
use super::tuner::{Tuner, TuningState, lock};
use super::wanted::{Consumed, Wanted};
use crate::backend::Backend;
use crate::error::OpenError;
use crate::loader::{LoaderOptions, LoaderStats};
use crate::source::Source;

/// Fewer batches than this say little of a consumer.
const FEW_BATCHES: u64 = 8;

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
    choose(backend, source, &wanted, auto, start)
}

/// As [`tune`], once more, beside the consumer that a loader made with `tuned` has had.
///
/// `seen` are that loader's [`stats`](crate::Loader::stats), of an epoch or of some batches at least. They tell how long a step took; work on
/// the device is looked for that makes the same strategy as slow, and the choice is made anew beside that work. So the device's queue, the
/// consumer's own waits and whatever else it does for each batch count as compute on the device, up to three times what a step takes without: a longer one changes no choice. What runs stays unless something else is
/// clearly better; where the consumer makes no difference it stays in any case. The cache is left alone.
///
/// Between two epochs is the time for it: it takes the device and the [budget](AutoOptions::budget). Drop the loader first, whose memory the
/// trials may need: [`AnyLoader::tune_again`](crate::AnyLoader::tune_again) does all of it.
///
/// # Errors
/// As [`tune`].
pub fn tune_again<B: Backend>(
    backend: &B,
    source: &Arc<dyn Source>,
    tuned: &Tuned,
    seen: &LoaderStats,
    auto: &AutoOptions,
) -> Result<Tuned, OpenError> {
    let start = Instant::now();
    let mut wanted = Wanted::new(backend, &**source, tuned.options.clone(), auto)?;
    if seen.batches < FEW_BATCHES {
        let why = format!("{}; {} batches are too few to know the consumer by", tuned.why, seen.batches);
        return Ok(wanted.tuned(wanted.default(), why, start));
    }
    wanted.consumer = Consumed::Stepping(seen.active_s / seen.batches as f64);
    choose(backend, source, &wanted, &AutoOptions { cache: None, ..auto.clone() }, start)
}

fn choose<B: Backend>(
    backend: &B,
    source: &Arc<dyn Source>,
    wanted: &Wanted,
    auto: &AutoOptions,
    start: Instant,
) -> Result<Tuned, OpenError> {
    let candidates = wanted.candidates(backend, &**source, auto);
    if candidates.strategies.len() == 1 && !candidates.workers {
        return Ok(wanted.tuned(wanted.default(), describe::no_choice(auto, wanted.strategy), start));
    }
    let key = auto.cache.as_ref().map(|file| (file, wanted.key(backend.info(), &**source, auto)));
    let known = key.as_ref().and_then(|(file, key)| cache::find(file, key));
    // What the device can run may have changed with its settings.
    if let Some(found) = known.filter(|found| candidates.strategies.contains(&found.strategy)) {
        let why = format!("measured earlier: {}", found.why);
        return Ok(Tuned { from_cache: true, ..wanted.tuned((found.strategy, found.workers), why, start) });
    }
    let workers_open = candidates.workers;
    let state = measure(backend, source, wanted, candidates, (start, auto.budget))?;
    let trials = state.board.entries.iter().map(trial).collect();
    let Some(index) = state.board.choice() else { return without_numbers(wanted, state, trials, start) };
    let TuningState { board, checked, compute, .. } = state;
    let chosen = (board.entries[index].strategy, board.entries[index].workers);
    let why = format!("{}{}", describe::why(&board, index, backend.info(), workers_open), describe::beside(compute));
    if let Some((file, key)) = key {
        cache::keep(file, key, chosen, &why);
    }
    Ok(Tuned { trials, checked, compute, ..wanted.tuned(chosen, why, start) })
}

/// What stays where nothing was measured.
fn without_numbers(
    wanted: &Wanted,
    state: TuningState,
    trials: Vec<Trial>,
    start: Instant,
) -> Result<Tuned, OpenError> {
    let why = match state.error {
        Some(error) if !state.opened => return Err(error),
        // Without the consumer's work there is no answer to what was asked.
        Some(error) if state.board.entries.is_empty() => return Err(error),
        _ if state.idle => describe::no_difference(&state.board),
        _ => describe::nothing(&state.board, start.elapsed().as_secs_f64()),
    };
    Ok(Tuned { trials, ..wanted.tuned(wanted.default(), why, start) })
}

/// Measures on a thread of its own, and leaves it to itself if it is stuck: in a source's read, or in the driver.
fn measure<B: Backend>(
    backend: &B,
    source: &Arc<dyn Source>,
    wanted: &Wanted,
    candidates: Candidates,
    (start, budget): (Instant, Duration),
) -> Result<TuningState, OpenError> {
    let board = Scoreboard::new(wanted.strategy, wanted.workers);
    let state = Arc::new(Mutex::new(TuningState::new(board)));
    let context = TrialContext::new(backend.clone(), Arc::clone(source), wanted.options.clone());
    let loaders = OpenLoaders::new(context, backend.info(), wanted.options.byte_budget);
    // A year: more cannot always be added to a point in time.
    let budget = budget.min(Duration::from_secs(365 * 24 * 60 * 60));
    let mut tuner = Tuner::new(loaders, candidates, Arc::clone(&state), (start, start + budget));
    let (alive, ended) = flume::bounded::<()>(0);
    let consumer = wanted.consumer;
    let run = move || {
        tuner.run(consumer);
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
    let known = lock(&state).clone();
    Ok(known)
}

fn trial(entry: &Entry) -> Trial {
    let failed = match &entry.status {
        CandidateStatus::Failed(reason) => Some(reason.clone()),
        CandidateStatus::TooSlow => Some(describe::TOO_SLOW.to_owned()),
        CandidateStatus::Running | CandidateStatus::Slower => None,
    };
    let gb_s = entry.slices.iter().map(|&(_, rate)| rate).collect();
    Trial { strategy: entry.strategy, workers: entry.workers, batches: entry.batches, gb_s, failed }
}
