//! How the regions of a transfer are shared out among queues. Pure arithmetic.

use std::ops::Range;

/// The regions of queue number `queue` among `queues`, of `regions` in all. A single region stays whole: one queue moves it at the
/// speed of the bus.
pub(super) fn part(regions: usize, queue: usize, queues: usize) -> Range<usize> {
    regions * queue / queues..regions * (queue + 1) / queues
}

/// Those of a copy's `count` regions, the first of which is number `first` among all, that are in `share`.
pub(super) fn within(share: &Range<usize>, first: usize, count: usize) -> Range<usize> {
    let clamp = |at: usize| at.saturating_sub(first).min(count);
    clamp(share.start)..clamp(share.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_is_one_queues_and_keeps_its_order() {
        for counts in [vec![1], vec![256], vec![3, 0, 7, 1], vec![0]] {
            for queues in 1..4 {
                let total = counts.iter().sum();
                let mut seen = Vec::new();
                for queue in 0..queues {
                    let share = part(total, queue, queues);
                    let mut first = 0;
                    for (copy, &count) in counts.iter().enumerate() {
                        seen.extend(within(&share, first, count).map(|region| (copy, region)));
                        first += count;
                    }
                }
                let right: Vec<_> =
                    counts.iter().enumerate().flat_map(|(copy, &n)| (0..n).map(move |at| (copy, at))).collect();
                assert_eq!(seen, right, "{counts:?} on {queues}");
            }
        }
    }

    #[test]
    fn shares_differ_by_one_region_at_most_and_one_region_is_not_split() {
        let sizes: Vec<usize> = (0..2).map(|queue| part(255, queue, 2).len()).collect();
        assert_eq!(sizes, [127, 128]);
        assert_eq!((part(1, 0, 2).len(), part(1, 1, 2).len()), (0, 1));
    }
}
