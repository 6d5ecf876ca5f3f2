//! What was measured of each candidate, and which of them that speaks for. Pure.

use super::candidate::{Candidate, CandidateStatus};
use crate::backend::Strategy;
use crate::measure::stats::{MIN_ROUNDS, Ratio, Summary};

/// A candidate within this share of the fastest is as good.
const AS_GOOD: f64 = 0.98;
/// How much faster is clear after one round, after two, and after more. A busy machine makes a round or two look worse than it was.
const CLEAR: [f64; 3] = [2.0, 1.25, 1.02];
/// After one round a candidate gets another chance unless it is this much slower.
const HOPELESS: f64 = 4.0;
/// With fewer rounds than this a spread may be small by chance, and one round that says otherwise is enough to doubt.
const MANY_ROUNDS: usize = 5;

/// One strategy with one number of workers.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) strategy: Strategy,
    pub(super) workers: usize,
    /// Rounds it was measured in, with GB/s.
    pub(super) slices: Vec<(u32, f64)>,
    /// Batches in them.
    pub(super) batches: u64,
    pub(super) status: CandidateStatus,
}

/// All candidates so far, and what is used where none is clearly better.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    pub(super) strategy: Strategy,
    pub(super) workers: usize,
    pub(super) entries: Vec<Entry>,
}

impl Entry {
    fn new(strategy: Strategy, workers: usize) -> Self {
        Self { strategy, workers, slices: Vec::new(), batches: 0, status: CandidateStatus::Running }
    }

    pub(super) fn candidate(&self) -> Candidate {
        (self.strategy, self.workers)
    }

    pub(super) fn is_in(&self) -> bool {
        self.status == CandidateStatus::Running
    }

    /// The median of its slices in GB/s; `None` if there are none.
    pub(super) fn rate(&self) -> Option<f64> {
        let rates: Vec<f64> = self.slices.iter().map(|&(_, rate)| rate).collect();
        Summary::of(&rates).map(|summary| summary.median)
    }

    /// Its rates to another's, of the rounds that both were measured in.
    pub(super) fn ratio(&self, other: &Self) -> Option<Ratio> {
        let (ours, theirs) = self.common(other);
        Ratio::of(&ours, &theirs)
    }

    fn common(&self, other: &Self) -> (Vec<f64>, Vec<f64>) {
        let theirs = |round: u32| other.slices.iter().find(|&&(theirs, _)| theirs == round);
        self.slices.iter().filter_map(|&(round, ours)| theirs(round).map(|&(_, theirs)| (ours, theirs))).unzip()
    }

    /// Whether it is faster than another beyond doubt.
    pub(super) fn clearly_faster(&self, other: &Self) -> bool {
        self.faster(other, CLEAR[0])
    }

    /// As [`clearly_faster`](Self::clearly_faster), with how much it takes after one round.
    fn faster(&self, other: &Self, once: f64) -> bool {
        let (ours, theirs) = self.common(other);
        let Some(ratio) = Ratio::of(&ours, &theirs) else { return false };
        let least = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).fold(f64::INFINITY, f64::min);
        match ratio.rounds {
            1 => least > once,
            rounds if rounds < MIN_ROUNDS => least > CLEAR[1],
            rounds => {
                let agreed = rounds >= MANY_ROUNDS || least > 1.0;
                agreed && ratio.ratio > CLEAR[2] && ratio.ratio - ratio.spread > 1.0
            }
        }
    }
}

impl Scoreboard {
    pub(super) fn new(strategy: Strategy, workers: usize) -> Self {
        Self { strategy, workers, entries: Vec::new() }
    }

    /// The index of a candidate, which is added if it is new.
    pub(super) fn index_of(&mut self, strategy: Strategy, workers: usize) -> usize {
        let known = self.find(strategy, workers);
        known.unwrap_or_else(|| {
            self.entries.push(Entry::new(strategy, workers));
            self.entries.len() - 1
        })
    }

    pub(super) fn find(&self, strategy: Strategy, workers: usize) -> Option<usize> {
        self.entries.iter().position(|entry| entry.strategy == strategy && entry.workers == workers)
    }

    /// The fastest of these that are in.
    pub(super) fn fastest(&self, among: impl IntoIterator<Item = usize>) -> Option<usize> {
        let rated = among.into_iter().filter(|&index| self.entries[index].is_in());
        let rated = rated.filter_map(|index| Some((index, self.entries[index].rate()?)));
        rated.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(index, _)| index)
    }

    /// Takes those of these candidates out that are clearly slower than the fastest of them.
    pub(super) fn drop_the_slow(&mut self, among: &[usize]) {
        let Some(best) = self.fastest(among.iter().copied()) else { return };
        for &index in among {
            let slow = self.entries[index].is_in() && self.entries[best].faster(&self.entries[index], HOPELESS);
            if slow {
                self.entries[index].status = CandidateStatus::Slower;
            }
        }
    }

    /// The indices of a strategy's candidates.
    pub(super) fn of(&self, strategy: Strategy) -> impl Iterator<Item = usize> + '_ {
        self.entries.iter().enumerate().filter(move |(_, entry)| entry.strategy == strategy).map(|(index, _)| index)
    }

    /// The fewest workers with which a strategy is as good as with any other number of them.
    pub(super) fn fewest_workers(&self, strategy: Strategy) -> Option<usize> {
        let best = self.entries[self.fastest(self.of(strategy))?].rate()?;
        let good = |&index: &usize| {
            let entry = &self.entries[index];
            entry.is_in() && entry.rate().is_some_and(|rate| rate >= AS_GOOD * best)
        };
        self.of(strategy).filter(good).min_by_key(|&index| self.entries[index].workers)
    }

    /// Every strategy that is in, with its best number of workers.
    fn finalists(&self) -> Vec<usize> {
        let mut strategies: Vec<Strategy> = Vec::new();
        for entry in &self.entries {
            if !strategies.contains(&entry.strategy) {
                strategies.push(entry.strategy);
            }
        }
        strategies.into_iter().filter_map(|strategy| self.fewest_workers(strategy)).collect()
    }

    /// What all of it speaks for: the default strategy unless another is clearly faster. `None` if nothing was measured.
    pub(super) fn choice(&self) -> Option<usize> {
        let finalists = self.finalists();
        let fastest = self.fastest(finalists.iter().copied())?;
        let default = finalists.into_iter().find(|&index| self.entries[index].strategy == self.strategy);
        Some(default.filter(|&default| !self.beats(fastest, default)).unwrap_or(fastest))
    }

    /// The fastest strategy that is in, beside a chosen one.
    pub(super) fn rival(&self, chosen: usize) -> Option<usize> {
        let finalists = self.finalists().into_iter();
        let others = finalists.filter(|&index| self.entries[index].strategy != self.entries[chosen].strategy);
        self.fastest(others)
    }

    /// Two strategies were measured in turn with their own numbers of workers, or else with the same.
    fn beats(&self, fastest: usize, default: usize) -> bool {
        let (ours, theirs) = self.pair(fastest, default);
        self.entries[ours].clearly_faster(&self.entries[theirs])
    }

    /// The entries by which two strategies can be compared.
    pub(super) fn pair(&self, ours: usize, theirs: usize) -> (usize, usize) {
        let together = self.entries[ours].ratio(&self.entries[theirs]).is_some();
        let equal = |index: usize| self.find(self.entries[index].strategy, self.workers);
        match (equal(ours), equal(theirs)) {
            (Some(ours), Some(theirs)) if !together => (ours, theirs),
            _ => (ours, theirs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Strategy = Strategy::MappedRing;
    const OTHER: Strategy = Strategy::SystemRing;

    /// A board on which each candidate has a slice in each of the first rounds.
    fn board(measured: &[(Strategy, usize, &[f64])]) -> Scoreboard {
        let mut board = Scoreboard::new(DEFAULT, 4);
        for &(strategy, workers, rates) in measured {
            let index = board.index_of(strategy, workers);
            board.entries[index].slices = (1..).zip(rates.iter().copied()).collect();
        }
        board
    }

    fn chosen(measured: &[(Strategy, usize, &[f64])]) -> Option<(Strategy, usize)> {
        let board = board(measured);
        board.choice().map(|index| (board.entries[index].strategy, board.entries[index].workers))
    }

    #[test]
    fn the_default_stays_unless_another_is_clearly_faster() {
        let default: (Strategy, usize, &[f64]) = (DEFAULT, 4, &[10.0, 10.2, 9.9]);
        assert_eq!(chosen(&[default, (OTHER, 4, &[14.0, 14.1, 13.8])]), Some((OTHER, 4)));
        assert_eq!(chosen(&[default, (OTHER, 4, &[10.2, 10.3, 10.1])]), Some((DEFAULT, 4)), "too little");
        assert_eq!(chosen(&[default, (OTHER, 4, &[14.0, 9.0, 14.0])]), Some((DEFAULT, 4)), "they overlap");
        assert_eq!(chosen(&[default, (OTHER, 4, &[14.0])]), Some((DEFAULT, 4)), "one round is little evidence");
        assert_eq!(chosen(&[default, (OTHER, 4, &[21.0])]), Some((OTHER, 4)));
        assert_eq!(chosen(&[(OTHER, 4, &[1.0])]), Some((OTHER, 4)), "nothing is known of the default");
        assert_eq!(chosen(&[(DEFAULT, 4, &[])]), None);
    }

    #[test]
    fn a_drift_that_hits_both_does_not_hide_who_is_faster() {
        assert_eq!(
            chosen(&[(DEFAULT, 4, &[10.0, 5.0, 20.0, 8.0]), (OTHER, 4, &[13.0, 6.4, 26.5, 10.4])]),
            Some((OTHER, 4))
        );
    }

    #[test]
    fn the_fewest_workers_that_are_as_good_are_taken() {
        let all: &[(Strategy, usize, &[f64])] =
            &[(DEFAULT, 4, &[10.0, 10.1]), (DEFAULT, 2, &[9.8, 9.9]), (DEFAULT, 1, &[6.0, 6.1])];
        assert_eq!(chosen(all), Some((DEFAULT, 2)));
        assert_eq!(chosen(&[all, &[(DEFAULT, 8, &[19.0, 19.5])]].concat()), Some((DEFAULT, 8)));
    }

    #[test]
    fn what_is_clearly_slower_is_dropped_and_what_failed_never_wins() {
        let mut board = board(&[(DEFAULT, 4, &[10.0, 10.0]), (OTHER, 4, &[7.0, 7.9]), (OTHER, 2, &[9.0, 11.0])]);
        board.drop_the_slow(&[0, 1, 2]);
        let statuses: Vec<bool> = board.entries.iter().map(Entry::is_in).collect();
        assert_eq!(statuses, [true, false, true]);
        board.entries[0].status = CandidateStatus::Failed("a test".to_owned());
        assert_eq!(board.choice(), Some(2));
        assert_eq!(board.rival(2), None);
    }

    #[test]
    fn strategies_that_were_never_measured_together_are_compared_with_equal_workers() {
        let mut board = board(&[(DEFAULT, 4, &[10.0, 10.1, 10.2]), (OTHER, 4, &[10.1, 10.0, 10.2])]);
        let later = board.index_of(OTHER, 8);
        board.entries[later].slices = vec![(7, 20.0), (8, 20.0)];
        assert_eq!(board.choice(), Some(0), "more workers are no merit of the strategy");
        assert_eq!(board.pair(later, 0), (1, 0));
    }
}
