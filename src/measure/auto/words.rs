//! Why something was chosen, in words. Pure.

use super::AutoOptions;
use super::board::{Board, Entry, Standing};
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
pub(super) fn why(board: &Board, chosen: usize, adapter: &AdapterInfo, workers_open: bool) -> String {
    let mut parts = vec![strategy(board, chosen)];
    if workers_open {
        parts.push(workers(board, chosen));
    }
    parts.extend(failures(board));
    parts.extend(kind(adapter, board.entries[chosen].strategy));
    parts.join("; ")
}

/// Why the defaults stay although nothing was measured.
pub(super) fn nothing(board: &Board, seconds: f64) -> String {
    let mut parts = vec![format!(
        "nothing could be measured in {seconds:.1} s: kept `{}` with {}",
        board.strategy,
        count(board.workers)
    )];
    parts.extend(failures(board));
    parts.join("; ")
}

fn strategy(board: &Board, chosen: usize) -> String {
    let entry = &board.entries[chosen];
    let (name, rate) = (entry.strategy, gb_s(entry));
    let head = format!("`{name}` {rate} with {}", count(entry.workers));
    let default = board.of(board.strategy).find(|&place| board.entries[place].rate().is_some());
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
        None => format!("{head}"),
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
fn times(board: &Board, ours: usize, theirs: usize) -> String {
    let (ours, theirs) = board.pair(ours, theirs);
    let (ours, theirs) = (&board.entries[ours], &board.entries[theirs]);
    let ratio = ours.ratio(theirs).map(|ratio| ratio.ratio);
    let ratio = ratio.or_else(|| Some(ours.rate()? / theirs.rate()?));
    ratio.map_or_else(|| "against".to_owned(), |ratio| format!("{ratio:.2} times"))
}

/// What other numbers of workers would do.
fn workers(board: &Board, chosen: usize) -> String {
    let entry = &board.entries[chosen];
    if entry.strategy.is_direct() {
        return "the device reads the source by itself, without workers".to_owned();
    }
    let Some(rate) = entry.rate() else { return "its workers were not measured".to_owned() };
    let mut others: Vec<(usize, f64)> = board
        .of(entry.strategy)
        .filter(|&place| place != chosen)
        .filter_map(|place| {
            let other = &board.entries[place];
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

fn failures(board: &Board) -> impl Iterator<Item = String> + '_ {
    board.entries.iter().filter_map(|entry| match &entry.standing {
        Standing::Failed(reason) => {
            Some(format!("`{}` with {} could not be measured: {reason}", entry.strategy, count(entry.workers)))
        }
        Standing::TooSlow => Some(format!("`{}` with {}: {TOO_SLOW}", entry.strategy, count(entry.workers))),
        Standing::In | Standing::Slower => None,
    })
}

/// What the numbers do not tell.
fn kind(adapter: &AdapterInfo, chosen: Strategy) -> Option<String> {
    if adapter.is_software() {
        return Some("a software device: true here, and no evidence of any GPU's speed".to_owned());
    }
    let support = adapter.strategies.iter().find(|support| support.strategy == chosen)?;
    let unified = support.memory.as_deref().is_some_and(|memory| memory.contains("unified"));
    unified.then(|| "CPU and GPU share this device's memory".to_owned())
}

/// The fastest other strategy that was measured, in or out.
fn next_best(board: &Board, but: Strategy) -> Option<usize> {
    let others = board.entries.iter().enumerate().filter(|(_, entry)| entry.strategy != but);
    let rated = others.filter_map(|(place, entry)| Some((place, entry.rate()?)));
    rated.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(place, _)| place)
}

/// A strategy's fastest measured number of workers, in or out.
fn best_of(board: &Board, strategy: Strategy) -> Option<usize> {
    let rated = board.of(strategy).filter_map(|place| Some((place, board.entries[place].rate()?)));
    rated.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(place, _)| place)
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
