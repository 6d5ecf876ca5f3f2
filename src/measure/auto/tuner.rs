//! The order of the trials: strategies with the default number of workers, then numbers of workers for the one that is ahead,
//! then both once more for the strategies that are left.
//!
//! Candidates are measured in turn, slice by slice, so that a machine's drift meets them all; one that is clearly slower gets no
//! further slice. What was measured stands on a scoreboard that others can read at any time: a trial may be stuck in a source.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::candidate::{CandidateStatus, Candidates};
use super::open_loaders::OpenLoaders;
use super::scoreboard::Scoreboard;
use super::trial::Slice;
use super::wanted::Consumed;
use crate::backend::Backend;
use crate::error::OpenError;
use crate::measure::outcome::VerifyError;

/// More rounds of one race say little more.
const MAX_ROUNDS: u32 = 8;
/// Rounds that there should be time for.
const ROUNDS: u32 = 4;
/// Within these bounds a slice is as long as the time allows.
const SLICE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(60));
/// The race of the strategies, of the workers and the final end after these shares of the time.
const SHARES: [f64; 3] = [0.5, 0.8, 0.93];
/// What one slice may take of the time that is left: of the first candidate, and of any other.
const FIRST_SHARE: f64 = 0.85;
const OTHERS_SHARE: f64 = 0.33;

/// What is known so far.
#[derive(Clone, Debug)]
pub(super) struct TuningState {
    pub(super) board: Scoreboard,
    /// Whether a batch of the chosen candidate was compared with the source.
    pub(super) checked: bool,
    /// Whether any candidate could be opened.
    pub(super) opened: bool,
    /// Why the first that could not be was not, or why the consumer's work cannot be done.
    pub(super) error: Option<OpenError>,
    /// How long the consumer computes in the trials.
    pub(super) compute: Duration,
    /// Whether the consumer was found to make no difference: there is nothing to be measured again then.
    pub(super) idle: bool,
}

impl TuningState {
    pub(super) fn new(board: Scoreboard) -> Self {
        Self { board, checked: false, opened: false, error: None, compute: Duration::ZERO, idle: false }
    }
}

pub(super) struct Tuner<B: Backend> {
    pub(super) loaders: OpenLoaders<B>,
    candidates: Candidates,
    pub(super) state: Arc<Mutex<TuningState>>,
    pub(super) start: Instant,
    pub(super) deadline: Instant,
    round: u32,
}

pub(super) fn lock(state: &Mutex<TuningState>) -> MutexGuard<'_, TuningState> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<B: Backend> Tuner<B> {
    pub(super) fn new(
        loaders: OpenLoaders<B>,
        candidates: Candidates,
        state: Arc<Mutex<TuningState>>,
        (start, deadline): (Instant, Instant),
    ) -> Self {
        Self { loaders, candidates, state, start, deadline, round: 0 }
    }

    /// Measures beside this consumer until there is nothing more to learn or no time.
    pub(super) fn run(&mut self, consumer: Consumed) {
        if let Err(error) = self.prepare(consumer) {
            log::debug!("the consumer's work: {error}");
            lock(&self.state).error = Some(error);
            return;
        }
        if lock(&self.state).idle {
            return;
        }
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
        self.board(|board| board.entries.first().is_some_and(|entry| entry.status == CandidateStatus::TooSlow))
    }

    pub(super) fn cores(&self) -> usize {
        self.candidates.cores
    }

    pub(super) fn is_slow(&self) -> bool {
        self.loaders.is_slow()
    }

    pub(super) fn board<R>(&self, of: impl FnOnce(&mut Scoreboard) -> R) -> R {
        of(&mut lock(&self.state).board)
    }

    fn race_strategies(&mut self, until: Instant) {
        let workers = self.board(|board| board.workers);
        let indices: Vec<usize> = {
            let strategies = &self.candidates.strategies;
            self.board(|board| strategies.iter().map(|&strategy| board.index_of(strategy, workers)).collect())
        };
        self.race(&indices, until);
    }

    /// The strategies that are left, each with its best number of workers; those that are only second have been measured with
    /// the default one so far.
    fn race_finalists(&mut self, until: Instant) {
        let finalists: Vec<usize> = self.board(|board| {
            let Some(chosen) = board.choice() else { return Vec::new() };
            let Some(rival) = board.rival(chosen) else { return Vec::new() };
            let ((ours, workers), (theirs, _)) = (board.entries[chosen].candidate(), board.entries[rival].candidate());
            // One without workers meets the other's best.
            let direct = ours.is_direct() || theirs.is_direct();
            vec![chosen, if direct { rival } else { board.index_of(theirs, workers) }]
        });
        if finalists.len() > 1 {
            self.race(&finalists, until);
        }
    }

    /// Measures candidates in turn until one is left or the time is over.
    pub(super) fn race(&mut self, indices: &[usize], until: Instant) {
        for done in 0..MAX_ROUNDS {
            let left: Vec<usize> =
                self.board(|board| indices.iter().copied().filter(|&index| board.entries[index].is_in()).collect());
            let now = Instant::now();
            let unknown = left.iter().any(|&index| self.board(|board| board.entries[index].slices.is_empty()));
            if self.hopeless() || now >= until || left.is_empty() || (left.len() == 1 && !unknown) {
                break;
            }
            let slices = left.len() as u32 * ROUNDS.saturating_sub(done).max(1);
            self.one_round(&left, (until - now) / slices);
            self.board(|board| board.drop_the_slow(&left));
        }
        let board = lock(&self.state).board.clone();
        self.loaders.keep(|(strategy, workers)| {
            board.find(strategy, workers).is_some_and(|index| board.entries[index].is_in())
        });
    }

    /// A slice of each, of about this length.
    pub(super) fn one_round(&mut self, indices: &[usize], length: Duration) {
        self.round += 1;
        // There and back again, so that a drift is no advantage of the last.
        let mut indices = indices.to_vec();
        if self.round.is_multiple_of(2) {
            indices.reverse();
        }
        for index in indices {
            let now = Instant::now();
            if now >= self.deadline || self.hopeless() {
                return;
            }
            // A slow source must leave time for the others; the first is the one to fall back on.
            let share = if self.loaders.is_cold() { FIRST_SHARE } else { OTHERS_SHARE };
            let limit = now + (self.deadline - now).mul_f64(share);
            let candidate = self.board(|board| board.entries[index].candidate());
            let measured = self.loaders.slice(candidate, length.clamp(SLICE.0, SLICE.1), limit);
            log::debug!(
                "round {}: {} with {} workers after {:?}: {measured:?}",
                self.round,
                candidate.0,
                candidate.1,
                now.elapsed()
            );
            self.note(index, measured);
        }
    }

    fn note(&mut self, index: usize, measured: Result<Option<Slice>, VerifyError>) {
        let mut state = lock(&self.state);
        match &measured {
            Err(VerifyError::Open(error)) => drop(state.error.get_or_insert_with(|| error.clone())),
            _ => state.opened = true,
        }
        let entry = &mut state.board.entries[index];
        match measured {
            Ok(Some(Slice { gb_s, batches, .. })) => {
                entry.slices.push((self.round, gb_s));
                entry.batches += batches;
            }
            Ok(None) if entry.slices.is_empty() => entry.status = CandidateStatus::TooSlow,
            Ok(None) => {}
            Err(error) => entry.status = CandidateStatus::Failed(error.to_string()),
        }
    }

    /// A number is worth nothing if the bytes are wrong: compares a batch of the chosen candidate, of the next if that is wrong.
    fn check(&mut self) {
        while let Some(index) = self.board(|board| board.choice()) {
            if Instant::now() >= self.deadline {
                return;
            }
            let candidate = self.board(|board| board.entries[index].candidate());
            match self.loaders.check(candidate, self.deadline) {
                Ok(checked) => {
                    lock(&self.state).checked = checked;
                    return;
                }
                Err(error) => {
                    log::error!("{} with {} workers is out: {error}", candidate.0, candidate.1);
                    self.board(|board| board.entries[index].status = CandidateStatus::Failed(error.to_string()));
                }
            }
        }
    }
}
