//! The order of the trials: strategies with the default number of workers, then numbers of workers for the one that is ahead,
//! then both once more for the strategies that are left.
//!
//! Candidates are measured in turn, slice by slice, so that a machine's drift meets them all; one that is clearly slower gets no
//! further slice. What was measured stands on a board that others can read at any time: a trial may be stuck in a source.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::board::{Board, Standing};
use super::trial::{Ground, Slice};
use crate::backend::{Backend, Strategy};
use crate::error::OpenError;
use crate::loader::Loader;

/// More rounds of one race say little more.
const MOST_ROUNDS: u32 = 8;
/// Rounds that there should be time for.
const ROUNDS: u32 = 4;
/// Within these bounds a slice is as long as the time allows.
const SLICE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(60));
/// The race of the strategies, of the workers and the final end after these shares of the time.
const SHARES: [f64; 3] = [0.5, 0.8, 0.93];
/// Batches that take longer are slow: little can be tried.
const SLOW: Duration = Duration::from_millis(20);
/// What one slice may take of the time that is left: of the first candidate, and of any other.
const FIRST_SHARE: f64 = 0.6;
const OTHERS_SHARE: f64 = 0.33;
/// Another number of workers is worth looking at if the last one was faster by this.
const GAIN: f64 = 1.04;
/// More workers than cores are tried only where so much was won by the last doubling: their source waits.
const SCALES: f64 = 1.4;
/// So many workers a core are enough for a source that waits.
const WORKERS_A_CORE: usize = 8;

/// What there is to choose from.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    /// The default first, those that read the source's memory last: preparing large memory takes long.
    pub(super) strategies: Vec<Strategy>,
    /// Whether the number of workers is open.
    pub(super) workers: bool,
    pub(super) cores: usize,
}

/// What is known so far.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub(super) board: Board,
    /// Whether a batch of the chosen candidate was compared with the source.
    pub(super) checked: bool,
    /// Whether any candidate could be opened.
    pub(super) opened: bool,
    /// Why the first that could not be was not.
    pub(super) error: Option<OpenError>,
}

pub(super) struct Tuner<B: Backend> {
    ground: Ground<B>,
    candidates: Candidates,
    progress: Arc<Mutex<Progress>>,
    /// Loaders of candidates that are still in, as far as they fit into `hold_bytes`.
    open: BTreeMap<usize, Loader<B>>,
    hold_bytes: u64,
    start: Instant,
    deadline: Instant,
    round: u32,
    /// Strategies that have run.
    warm: Vec<Strategy>,
    /// How long the last batches took, each.
    batch: Duration,
}

pub(super) fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<B: Backend> Tuner<B> {
    pub(super) fn new(
        ground: Ground<B>,
        candidates: Candidates,
        progress: Arc<Mutex<Progress>>,
        hold_bytes: u64,
        time: (Instant, Instant),
    ) -> Self {
        let (start, deadline) = time;
        Self {
            ground,
            candidates,
            progress,
            open: BTreeMap::new(),
            hold_bytes,
            start,
            deadline,
            round: 0,
            warm: Vec::new(),
            batch: Duration::ZERO,
        }
    }

    /// Measures until there is nothing more to learn or no time.
    pub(super) fn run(&mut self) {
        let [strategies, workers, end] = SHARES.map(|share| self.start + (self.deadline - self.start).mul_f64(share));
        self.race_strategies(strategies);
        if self.hopeless() {
            return;
        }
        if self.candidates.workers {
            self.race_workers(workers);
        }
        self.race_finalists(end);
        self.check();
    }

    /// Whether even the one to fall back on is too slow for the time there is.
    fn hopeless(&self) -> bool {
        self.board(|board| board.entries.first().is_some_and(|entry| entry.standing == Standing::TooSlow))
    }

    fn board<R>(&self, of: impl FnOnce(&mut Board) -> R) -> R {
        of(&mut lock(&self.progress).board)
    }

    fn race_strategies(&mut self, until: Instant) {
        let workers = self.board(|board| board.workers);
        let places: Vec<usize> = {
            let strategies = &self.candidates.strategies;
            self.board(|board| strategies.iter().map(|&strategy| board.place(strategy, workers)).collect())
        };
        self.race(&places, until);
    }

    /// Climbs from the default number of workers as long as that helps, then goes down as long as it does no harm.
    fn race_workers(&mut self, until: Instant) {
        let Some(place) = self.board(|board| board.choice()) else { return };
        let (strategy, default) = self.board(|board| (board.entries[place].strategy, board.workers));
        if strategy.is_direct() {
            return;
        }
        let half = (default / 2).max(1);
        let scales = half < default && self.gain(strategy, half, default, until).is_some_and(|gain| gain > SCALES);
        let mut at = default;
        while let Some(more) = self.more_workers(at, scales) {
            if self.gain(strategy, at, more, until).is_none_or(|gain| gain < GAIN) {
                break;
            }
            at = more;
        }
        let mut at = half;
        while at > 1
            && self
                .board(|board| board.fewest_workers(strategy).is_some_and(|place| board.entries[place].workers <= at))
        {
            at /= 2;
            if self.gain(strategy, default, at, until).is_none() {
                break;
            }
        }
        let left: Vec<usize> = self.board(|board| board.of(strategy).collect());
        self.race(&left, until);
    }

    /// The next number of workers to try: doubled, up to the cores first, beyond them only where workers wait.
    fn more_workers(&self, at: usize, scales: bool) -> Option<usize> {
        let cores = self.candidates.cores;
        let most = if scales || at < cores { cores * if scales { WORKERS_A_CORE } else { 1 } } else { at };
        let next = if at < cores { (at * 2).min(cores) } else { at * 2 };
        (next > at && next <= most).then_some(next)
    }

    /// Measures one number of workers beside another, once, and tells how much faster it is.
    fn gain(&mut self, strategy: Strategy, from: usize, to: usize, until: Instant) -> Option<f64> {
        if Instant::now() >= until {
            return None;
        }
        let pair = self.board(|board| [board.place(strategy, from), board.place(strategy, to)]);
        let known = self.board(|board| pair.map(|place| board.entries[place].rate().is_some()));
        // Where batches are slow there is no time to take what is known once more.
        let again = self.batch <= SLOW;
        let places: Vec<usize> =
            pair.into_iter().zip(known).filter(|(_, known)| again || !known).map(|(p, _)| p).collect();
        self.one_round(&places, SLICE.0.max((until - Instant::now()) / 10).min(SLICE.1));
        self.board(|board| {
            let [from, to] = pair.map(|place| &board.entries[place]);
            let together = to.ratio(from).map(|ratio| ratio.ratio);
            together.or_else(|| Some(to.rate()? / from.rate()?))
        })
    }

    /// The strategies that are left, each with its best number of workers; those that are only second have been measured with
    /// the default one so far.
    fn race_finalists(&mut self, until: Instant) {
        let finalists: Vec<usize> = self.board(|board| {
            let Some(chosen) = board.choice() else { return Vec::new() };
            let workers = board.entries[chosen].workers;
            let Some(rival) = board.rival(chosen) else { return Vec::new() };
            let strategy = board.entries[rival].strategy;
            let rival = if strategy.is_direct() { rival } else { board.place(strategy, workers) };
            vec![chosen, rival]
        });
        if finalists.len() > 1 {
            self.race(&finalists, until);
        }
    }

    /// Measures candidates in turn until one is left or the time is over.
    fn race(&mut self, places: &[usize], until: Instant) {
        for done in 0..MOST_ROUNDS {
            let left: Vec<usize> =
                self.board(|board| places.iter().copied().filter(|&p| board.entries[p].is_in()).collect());
            let now = Instant::now();
            let first = left.iter().any(|&place| self.board(|board| board.entries[place].slices.is_empty()));
            if left.is_empty() || now >= until || (left.len() == 1 && !first) {
                break;
            }
            let slices = left.len() as u32 * ROUNDS.saturating_sub(done).max(1);
            self.one_round(&left, ((until - now) / slices).clamp(SLICE.0, SLICE.1));
            self.board(|board| board.drop_the_slow(&left));
        }
        let out: Vec<usize> =
            self.open.keys().copied().filter(|&place| !self.board(|board| board.entries[place].is_in())).collect();
        for place in out {
            self.open.remove(&place);
        }
    }

    fn one_round(&mut self, places: &[usize], length: Duration) {
        self.round += 1;
        // There and back again, so that a drift is no advantage of the last.
        let mut places = places.to_vec();
        if self.round.is_multiple_of(2) {
            places.reverse();
        }
        for place in places {
            let now = Instant::now();
            if now >= self.deadline {
                return;
            }
            // A slow source must leave time for the others; the first is the one to fall back on.
            let share = if self.warm.is_empty() { FIRST_SHARE } else { OTHERS_SHARE };
            let measured = self.measure(place, length, now + (self.deadline - now).mul_f64(share));
            self.note(place, measured);
            if self.hopeless() {
                return;
            }
        }
    }

    fn measure(&mut self, place: usize, length: Duration, limit: Instant) -> Result<Option<Slice>, String> {
        let fresh = !self.open.contains_key(&place);
        let mut loader = self.loader(place).map_err(|error| error.to_string())?;
        let strategy = loader.strategy();
        // What the strategy has compiled is known; memory that is new is little beside batches that are slow.
        let warm = !fresh || (self.warm.contains(&strategy) && self.batch > SLOW);
        if !warm {
            // Clocks rise and caches fill while the very first one runs.
            let length = if self.warm.is_empty() { SLICE.1 } else { Duration::ZERO };
            self.ground.warm_up(&mut loader, length, limit).map_err(|error| error.to_string())?;
        }
        let measured = self.ground.slice(&mut loader, length, limit).map_err(|error| error.to_string())?;
        self.warm.push(strategy);
        if let Some(slice) = measured {
            self.batch = slice.batch;
        }
        self.open.insert(place, loader);
        Ok(measured)
    }

    /// The candidate's loader, taken out; a new one if it is not open.
    fn loader(&mut self, place: usize) -> Result<Loader<B>, OpenError> {
        if let Some(open) = self.open.remove(&place) {
            return Ok(open);
        }
        let (strategy, workers) = self.board(|board| (board.entries[place].strategy, board.entries[place].workers));
        let held: u64 = self.open.values().map(|loader| loader.footprint().total()).sum();
        // All of one batch layout are about as large.
        if held + held / (self.open.len() as u64).max(1) > self.hold_bytes {
            self.open.clear();
        }
        let opened = match self.ground.open(strategy, workers) {
            // What is measured beside it took the memory, perhaps.
            Err(error) if error.is_short_of_memory() && !self.open.is_empty() => {
                self.open.clear();
                self.ground.open(strategy, workers)
            }
            opened => opened,
        };
        let mut progress = lock(&self.progress);
        match &opened {
            Ok(_) => progress.opened = true,
            Err(error) => drop(progress.error.get_or_insert_with(|| error.clone())),
        }
        drop(progress);
        opened
    }

    fn note(&mut self, place: usize, measured: Result<Option<Slice>, String>) {
        let round = self.round;
        self.board(|board| {
            let entry = &board.entries[place];
            log::debug!("round {round}: {} with {} workers: {measured:?}", entry.strategy, entry.workers);
        });
        self.board(|board| {
            let entry = &mut board.entries[place];
            match measured {
                Ok(Some(Slice { gb_s, batches, .. })) => {
                    entry.slices.push((round, gb_s));
                    entry.batches += batches;
                }
                Ok(None) if entry.slices.is_empty() => entry.standing = Standing::TooSlow,
                Ok(None) => {}
                Err(reason) => entry.standing = Standing::Failed(reason),
            }
        });
    }

    /// A number is worth nothing if the bytes are wrong: compares a batch of the chosen candidate, of the next if that is wrong.
    fn check(&mut self) {
        while let Some(place) = self.board(|board| board.choice()) {
            if Instant::now() >= self.deadline {
                return;
            }
            let checked = match self.loader(place) {
                Ok(mut loader) => self.ground.check(&mut loader, self.deadline).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match checked {
                Ok(checked) => {
                    lock(&self.progress).checked = checked;
                    return;
                }
                Err(reason) => {
                    log::error!("a trial was given up: {reason}");
                    self.board(|board| board.entries[place].standing = Standing::Failed(reason));
                }
            }
        }
    }
}
