//! A description of why something was chosen. Pure.

use std::time::Duration;

use super::candidate::CandidateStatus;
use super::options::AutoOptions;
use super::scoreboard::{Entry, Scoreboard};
use crate::backend::{AdapterInfo, Strategy};

/// Of a candidate without numbers.
pub(super) const TOO_SLOW: &str = "too few batches came in its time";

/// Why nothing was measured at all.
pub(super) fn no_choice(auto: &AutoOptions, strategy: Strategy) -> String {
    match (auto.strategy, auto.workers) {
        (Some(_), Some(workers)) => format!("`{strategy}` with {}, as asked", count(workers)),
        (Some(_), None) => format!("`{strategy}`, as asked; the device reads the source by itself, without workers"),
        (None, _) => format!("`{strategy}` is the only strategy here that keeps memory constant"),
    }
}

/// What was chosen, and the evidence for it.
pub(super) fn why(board: &Scoreboard, chosen: usize, adapter: &AdapterInfo, workers_open: bool) -> String {
    let mut parts = vec![strategy(board, chosen)];
    if workers_open {
        parts.push(workers(board, chosen));
    }
    parts.extend(failures(board));
    parts.extend(kind(adapter, board.entries[chosen].strategy));
    parts.join("; ")
}

/// The consumer that the trials were measured beside.
pub(super) fn beside(compute: Duration) -> String {
    match compute.as_micros() {
        0 => String::new(),
        us => format!("; beside a consumer that computes for {us} us a batch"),
    }
}

/// Why what ran stays where its consumer makes it no slower.
pub(super) fn no_difference(board: &Scoreboard) -> String {
    let (strategy, workers) = (board.strategy, count(board.workers));
    format!("`{strategy}` with {workers} stays: its consumer makes no difference that could be measured")
}

/// Why the defaults stay although nothing was measured.
pub(super) fn nothing(board: &Scoreboard, seconds: f64) -> String {
    let mut parts = vec![format!(
        "nothing could be measured in {seconds:.1} s: kept `{}` with {}",
        board.strategy,
        count(board.workers)
    )];
    parts.extend(failures(board));
    parts.join("; ")
}

fn strategy(board: &Scoreboard, chosen: usize) -> String {
    let entry = &board.entries[chosen];
    let (name, rate) = (entry.strategy, gb_s(entry));
    let head = format!("`{name}` {rate} with {}", count(entry.workers));
    let default = board.of(board.strategy).find(|&index| board.entries[index].rate().is_some());
    if entry.strategy != board.strategy {
        let Some(default) = default else {
            return format!("{head}; the default `{}` was not measured", board.strategy);
        };
        let (ours, theirs) = board.pair(chosen, best_of(board, board.strategy).unwrap_or(default));
        return format!(
            "{head}, {} the default `{}` ({})",
            times(board, ours, theirs),
            board.strategy,
            gb_s(&board.entries[theirs])
        );
    }
    match next_best(board, entry.strategy) {
        None if board.entries.iter().any(|other| other.strategy != name) => {
            format!("{head}, the default; no other strategy was measured in time")
        }
        None => head,
        Some(next) => {
            let (ours, theirs) = board.pair(chosen, next);
            let (ours, next) = (&board.entries[ours], &board.entries[theirs]);
            let against = format!("`{}` ({})", next.strategy, gb_s(next));
            if ours.clearly_faster(next) {
                format!("{head}, the default, {} {against}, the next", times(board, chosen, theirs))
            } else {
                format!("{head}: no clear difference to {against}, so the default was kept")
            }
        }
    }
}

/// `1.45 times`.
fn times(board: &Scoreboard, ours: usize, theirs: usize) -> String {
    let (ours, theirs) = board.pair(ours, theirs);
    let (ours, theirs) = (&board.entries[ours], &board.entries[theirs]);
    let ratio = ours.ratio(theirs).map(|ratio| ratio.ratio);
    let ratio = ratio.or_else(|| Some(ours.rate()? / theirs.rate()?));
    ratio.map_or_else(|| "against".to_owned(), |ratio| format!("{ratio:.2} times"))
}

/// What other numbers of workers would do.
fn workers(board: &Scoreboard, chosen: usize) -> String {
    let entry = &board.entries[chosen];
    if entry.strategy.is_direct() {
        return "the device reads the source by itself, without workers".to_owned();
    }
    let Some(rate) = entry.rate() else { return "its workers were not measured".to_owned() };
    let mut others: Vec<(usize, f64)> = board
        .of(entry.strategy)
        .filter(|&index| index != chosen)
        .filter_map(|index| {
            let other = &board.entries[index];
            let ratio = other.ratio(entry).map(|ratio| ratio.ratio).or_else(|| Some(other.rate()? / rate))?;
            Some((other.workers, 100.0 * (ratio - 1.0)))
        })
        .collect();
    others.sort_unstable_by_key(|&(workers, _)| workers);
    if others.is_empty() {
        return "no other number of workers was measured in time".to_owned();
    }
    let others: Vec<String> = others.iter().map(|(workers, more)| format!("{} {more:+.0}%", count(*workers))).collect();
    format!("against {}: {}", count(entry.workers), others.join(", "))
}

fn failures(board: &Scoreboard) -> impl Iterator<Item = String> + '_ {
    board.entries.iter().filter_map(|entry| match &entry.status {
        CandidateStatus::Failed(reason) => {
            Some(format!("`{}` with {} could not be measured: {reason}", entry.strategy, count(entry.workers)))
        }
        CandidateStatus::TooSlow => Some(format!("`{}` with {}: {TOO_SLOW}", entry.strategy, count(entry.workers))),
        CandidateStatus::Running | CandidateStatus::Slower => None,
    })
}

/// What the numbers do not say.
fn kind(adapter: &AdapterInfo, chosen: Strategy) -> Option<String> {
    if adapter.is_software() {
        return Some("a software device: true here, and no evidence of any GPU's speed".to_owned());
    }
    let support = adapter.strategies.iter().find(|support| support.strategy == chosen)?;
    let unified = support.memory.as_deref().is_some_and(|memory| memory.contains("unified"));
    unified.then(|| "CPU and GPU share this device's memory".to_owned())
}

/// The fastest other strategy that was measured, in or out.
fn next_best(board: &Scoreboard, but: Strategy) -> Option<usize> {
    let others = board.entries.iter().enumerate().filter(|(_, entry)| entry.strategy != but);
    let rated = others.filter_map(|(index, entry)| Some((index, entry.rate()?)));
    rated.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(index, _)| index)
}

/// A strategy's fastest measured number of workers, in or out.
fn best_of(board: &Scoreboard, strategy: Strategy) -> Option<usize> {
    let rated = board.of(strategy).filter_map(|index| Some((index, board.entries[index].rate()?)));
    rated.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(index, _)| index)
}

fn gb_s(entry: &Entry) -> String {
    entry.rate().map_or_else(
        || "not measured".to_owned(),
        |rate| if rate < 0.1 { format!("{:.1} MB/s", rate * 1e3) } else { format!("{rate:.2} GB/s") },
    )
}

fn count(workers: usize) -> String {
    if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::host_info;
    use crate::backend::{DeviceType, StrategySupport};

    fn board(measured: &[(Strategy, usize, &[f64])]) -> Scoreboard {
        let mut board = Scoreboard::new(Strategy::MappedRing, 4);
        for &(strategy, workers, rates) in measured {
            let index = board.index_of(strategy, workers);
            board.entries[index].slices = (1..).zip(rates.iter().copied()).collect();
        }
        board
    }

    fn gpu(memory: &str) -> AdapterInfo {
        let (strategy, memory) = (Strategy::SystemRing, Some(memory.to_owned()));
        let support = StrategySupport { strategy, missing: None, memory, queues: None };
        AdapterInfo { device_type: DeviceType::Integrated, strategies: vec![support], ..host_info() }
    }

    #[test]
    fn a_winner_is_described_with_both_numbers_and_the_workers_beside_it() {
        let board = board(&[
            (Strategy::MappedRing, 4, &[9.8, 9.8, 9.8]),
            (Strategy::SystemRing, 4, &[14.2, 14.2, 14.2]),
            (Strategy::SystemRing, 2, &[14.2, 14.2, 14.2]),
            (Strategy::SystemRing, 1, &[7.1, 7.1, 7.1]),
        ]);
        let chosen = board.choice().expect("measured");
        assert_eq!(
            why(&board, chosen, &gpu("type 3, heap 0 (unified)"), true),
            "`system-ring` 14.20 GB/s with 2 workers, 1.45 times the default `mapped-ring` (9.80 GB/s); \
             against 2 workers: 1 worker -50%, 4 workers +0%; CPU and GPU share this device's memory"
        );
    }

    #[test]
    fn a_default_that_stays_says_whether_it_was_better_or_just_not_worse() {
        let near = board(&[(Strategy::MappedRing, 4, &[9.8, 9.9, 9.7]), (Strategy::SystemRing, 4, &[9.9, 9.7, 9.8])]);
        let text = why(&near, 0, &gpu("system memory"), false);
        assert_eq!(
            text,
            "`mapped-ring` 9.80 GB/s with 4 workers: no clear difference to `system-ring` (9.80 GB/s), so the default was kept"
        );
        let ahead = board(&[(Strategy::MappedRing, 4, &[9.8, 9.9, 9.7]), (Strategy::SystemRing, 4, &[4.9, 4.9, 4.9])]);
        let text = why(&ahead, 0, &host_info(), false);
        assert!(
            text.contains("the default, 2.00 times `system-ring` (4.90 GB/s), the next; a software device"),
            "{text}"
        );
    }

    #[test]
    fn what_failed_is_named_with_its_reason() {
        let mut board = board(&[(Strategy::MappedRing, 4, &[]), (Strategy::Imported, 4, &[])]);
        board.entries[0].status = CandidateStatus::TooSlow;
        board.entries[1].status = CandidateStatus::Failed("no such memory".to_owned());
        assert_eq!(
            nothing(&board, 1.52),
            "nothing could be measured in 1.5 s: kept `mapped-ring` with 4 workers; `mapped-ring` with 4 workers: too few \
             batches came in its time; `imported` with 4 workers could not be measured: no such memory"
        );
    }
}
