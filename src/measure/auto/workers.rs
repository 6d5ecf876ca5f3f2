//! The number of workers: up from the default as long as that helps, then down as long as it does no harm.

use std::time::Instant;

use super::tuner::Tuner;
use crate::backend::{Backend, Strategy};

/// Another number of workers is worth looking at if the last one was faster by this.
const GAIN: f64 = 1.04;
/// More workers than cores are tried only where the last doubling won this much: their source waits.
const SCALES: f64 = 1.4;
/// This many workers a core are enough for a source that waits.
const WORKERS_A_CORE: usize = 8;

impl<B: Backend> Tuner<B> {
    /// Tries numbers of workers for the strategy that is ahead, or for the next where the first has no workers.
    pub(super) fn race_workers(&mut self, until: Instant) {
        let staged = self.board(|board| {
            let chosen = board.choice()?;
            let rival = board.rival(chosen);
            let staged = [Some(chosen), rival].into_iter().flatten().map(|index| board.entries[index].strategy);
            staged.into_iter().find(|strategy| !strategy.is_direct()).map(|strategy| (strategy, board.workers))
        });
        let Some((strategy, default)) = staged else { return };
        let half = (default / 2).max(1);
        let scales = half == default || self.gain(strategy, half, default, until).is_some_and(|gain| gain > SCALES);
        self.climb(strategy, default, scales, until);
        self.descend(strategy, default, half, until);
        let left: Vec<usize> = self.board(|board| board.of(strategy).collect());
        self.race(&left, until);
    }

    fn climb(&mut self, strategy: Strategy, default: usize, scales: bool, until: Instant) {
        let mut at = default;
        while let Some(more) = more_workers(at, self.cores(), scales) {
            if self.gain(strategy, at, more, until).is_none_or(|gain| gain < GAIN) {
                return;
            }
            at = more;
        }
    }

    /// Goes on from the half of the default as long as the fewest workers are as good.
    fn descend(&mut self, strategy: Strategy, default: usize, half: usize, until: Instant) {
        let mut at = half;
        let good = |tuner: &Self, at: usize| {
            tuner.board(|board| board.fewest_workers(strategy).is_some_and(|index| board.entries[index].workers <= at))
        };
        while at > 1 && good(self, at) {
            at /= 2;
            if self.gain(strategy, default, at, until).is_none() {
                return;
            }
        }
    }

    /// Measures one number of workers beside another, once, and returns how much faster it is.
    fn gain(&mut self, strategy: Strategy, from: usize, to: usize, until: Instant) -> Option<f64> {
        let now = Instant::now();
        if now >= until {
            return None;
        }
        let pair = self.board(|board| [board.index_of(strategy, from), board.index_of(strategy, to)]);
        let known = self.board(|board| pair.map(|index| board.entries[index].rate().is_some()));
        // Where batches are slow there is no time to take what is known once more.
        let again = !self.is_slow();
        let indices: Vec<usize> =
            pair.into_iter().zip(known).filter(|(_, known)| again || !known).map(|(index, _)| index).collect();
        self.one_round(&indices, (until - now) / 10);
        self.board(|board| {
            let [from, to] = pair.map(|index| &board.entries[index]);
            let together = to.ratio(from).map(|ratio| ratio.ratio);
            together.or_else(|| Some(to.rate()? / from.rate()?))
        })
    }
}

/// The next number of workers to try: doubled, up to the cores first, beyond them only where workers wait.
fn more_workers(at: usize, cores: usize, scales: bool) -> Option<usize> {
    let next = if at < cores { (at * 2).min(cores) } else { at * 2 };
    let most = if scales { cores * WORKERS_A_CORE } else { cores };
    (next <= most).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(from: usize, cores: usize, scales: bool) -> Vec<usize> {
        std::iter::successors(Some(from), |&at| more_workers(at, cores, scales)).skip(1).collect()
    }

    #[test]
    fn more_workers_than_cores_are_for_sources_that_wait() {
        assert_eq!(tried(8, 16, false), [16]);
        assert_eq!(tried(8, 12, false), [12]);
        assert_eq!(tried(8, 12, true), [12, 24, 48, 96]);
        assert_eq!(tried(2, 2, true), [4, 8, 16]);
        assert!(tried(2, 2, false).is_empty() && tried(9, 2, false).is_empty());
    }
}
