//! The order of an epoch: which samples are in which batch. Computed, never stored.

use super::super::{LastBatch, LoaderOptions};
use super::permutation::{Permutation, Permuted};
use super::subset::Subset;

/// What fixes the batches of every epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Samples an epoch is over: those of the source, or of the subset.
    pub len: u64,
    /// Which samples of the source; `None` for all.
    pub subset: Option<Subset>,
    /// Samples in a batch, at least 1.
    pub batch_size: usize,
    /// What happens to the samples left over at the end of an epoch.
    pub last_batch: LastBatch,
    /// Shuffles; `None` for the source's order.
    pub seed: Option<u64>,
    /// Whose share it is, below `world`.
    pub rank: u64,
    /// Among how many an epoch is shared, at least 1.
    pub world: u64,
}

impl Order {
    /// The order in which a loader with these options delivers a source of `len` samples.
    #[must_use]
    pub fn new(len: u64, options: &LoaderOptions) -> Self {
        let &LoaderOptions { batch_size, last_batch, seed, rank, world, ref subset, .. } = options;
        let len = subset.as_ref().map_or(len, Subset::len);
        Self { len, subset: subset.clone(), batch_size, last_batch, seed, rank, world }
    }

    /// How many samples of an epoch are this rank's, and how many each rank has at least and at most.
    fn shares(&self) -> (u64, u64, u64) {
        debug_assert!(self.rank < self.world, "rank {} of {}", self.rank, self.world);
        let (least, rest) = (self.len / self.world, self.len % self.world);
        (least + u64::from(self.rank < rest), least, least + u64::from(rest > 0))
    }
}

/// The batches of one epoch, or of one rank's share of it.
///
/// Position `p` of the epoch's order belongs to rank `p % world`, so that every sample is in exactly one rank's share. Shares differ
/// by one sample at most. With [`LastBatch::Short`] a rank's last batch may therefore be one sample shorter than another's, or
/// be missing where another's holds a single sample; with [`LastBatch::Drop`] all ranks have the same number of full batches,
/// `len / world / batch_size`; with [`LastBatch::Pad`] they have as many as the largest share needs, and what is missing is taken
/// from the start of the same order.
///
/// Nothing is kept from one epoch to the next, so that the number of ranks may change between any two epochs: each is whole.
#[derive(Clone, Debug)]
pub struct Sampler {
    epoch: u64,
    batch_size: u64,
    batches: u64,
    /// Positions delivered in all.
    samples: u64,
    /// Positions of this rank that are no repetition.
    own: u64,
    len: u64,
    rank: u64,
    world: u64,
    subset: Option<Subset>,
    permutation: Option<Permutation>,
}

impl Sampler {
    /// The batches of epoch `epoch`.
    #[must_use]
    pub fn new(order: Order, epoch: u64) -> Self {
        let (own, least, most) = order.shares();
        let Order { len, subset, batch_size, last_batch, seed, rank, world } = order;
        let batch_size = (batch_size as u64).max(1);
        let full = |batches: u64| (batches, batches.saturating_mul(batch_size));
        let (batches, samples) = match last_batch {
            LastBatch::Short => (own.div_ceil(batch_size), own),
            LastBatch::Drop => full(least / batch_size),
            LastBatch::Pad => full(most.div_ceil(batch_size)),
        };
        let permutation = seed.map(|seed| Permutation::new(len, seed, epoch));
        Self { epoch, batch_size, batches, samples, own, len, rank, world, subset, permutation }
    }

    /// The epoch's number.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of batches.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// The number of samples in the largest batch.
    pub(in crate::loader) fn largest(&self) -> usize {
        usize::try_from(self.batch_size.min(self.samples)).unwrap_or(usize::MAX)
    }

    /// The number of samples in all batches, repetitions included.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// How many of the last samples of batch `number` repeat others, to fill it.
    #[must_use]
    pub fn padding(&self, number: u64) -> usize {
        let (start, end) = self.range(number);
        usize::try_from(end.saturating_sub(self.own.max(start))).unwrap_or(usize::MAX)
    }

    /// The number of samples in the batches before batch `number`.
    #[must_use]
    pub fn samples_before(&self, number: u64) -> u64 {
        number.saturating_mul(self.batch_size).min(self.samples)
    }

    /// The number of samples in batch `number`.
    #[must_use]
    pub fn batch_len(&self, number: u64) -> usize {
        let (start, end) = self.range(number);
        usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX)
    }

    /// The indices of batch `number`, which is below [`batches`](Self::batches).
    pub fn batch(&self, number: u64) -> impl ExactSizeIterator<Item = u64> + use<> {
        let Self { len, rank, world, permutation, .. } = *self;
        let subset = self.subset.clone();
        let (start, count) = (self.range(number).0, self.batch_len(number));
        let positions = (0..count).map(move |offset| {
            let own = start + offset as u64;
            // Only padding reaches beyond the end, and begins again; with a huge world beyond what 64 bits hold.
            match own.checked_mul(world).and_then(|position| position.checked_add(rank)) {
                Some(position) => position % len,
                None => ((u128::from(own) * u128::from(world) + u128::from(rank)) % u128::from(len)) as u64,
            }
        });
        let places = Permuted::new(permutation, positions);
        places.map(move |place| subset.as_ref().map_or(place, |subset| subset.at(place)))
    }

    /// This rank's positions in batch `number`.
    fn range(&self, number: u64) -> (u64, u64) {
        let start = number * self.batch_size;
        (start, start.saturating_add(self.batch_size).min(self.samples))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALONE: Order =
        Order { len: 10, subset: None, batch_size: 4, last_batch: LastBatch::Short, seed: None, rank: 0, world: 1 };
    const DROP: Order = Order { last_batch: LastBatch::Drop, ..ALONE };

    fn batches(order: Order) -> Vec<Vec<u64>> {
        let sampler = Sampler::new(order, 0);
        let batches: Vec<Vec<u64>> = (0..sampler.batches()).map(|number| sampler.batch(number).collect()).collect();
        assert_eq!(batches.iter().map(Vec::len).sum::<usize>() as u64, sampler.samples());
        batches
    }

    #[test]
    fn the_last_batch_is_short_or_dropped() {
        assert_eq!(batches(ALONE), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
        assert_eq!(batches(DROP), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert!(batches(Order { len: 3, ..DROP }).is_empty());
    }

    #[test]
    fn ranks_take_turns_in_the_order_of_the_epoch() {
        let rank = |rank, order: Order| batches(Order { rank, world: 3, batch_size: 2, ..order });
        assert_eq!(rank(0, ALONE), [vec![0, 3], vec![6, 9]]);
        assert_eq!(rank(2, ALONE), [vec![2, 5], vec![8]]);
        assert_eq!([rank(0, DROP), rank(2, DROP)], [[[0, 3]], [[2, 5]]]);
    }

    #[test]
    fn the_last_batch_is_padded_from_the_start_of_the_same_order() {
        let pad = Order { last_batch: LastBatch::Pad, ..ALONE };
        assert_eq!(batches(pad.clone()), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]);
        let sampler = Sampler::new(pad.clone(), 0);
        assert_eq!([0, 1, 2].map(|number| sampler.padding(number)), [0, 0, 2]);
        // Each of four ranks has a batch of four, of two or three that are its own.
        let of = |rank| Sampler::new(Order { rank, world: 4, ..pad.clone() }, 0);
        assert_eq!(of(3).batch(0).collect::<Vec<_>>(), [3, 7, 1, 5]);
        assert_eq!([of(0).padding(0), of(3).padding(0)], [1, 2]);
        // Fewer samples than ranks: all have a batch, and some have nothing of their own.
        let few = Sampler::new(Order { len: 2, rank: 2, world: 3, ..pad }, 0);
        assert_eq!((few.batches(), few.padding(0), few.batch(0).collect::<Vec<_>>()), (1, 4, vec![0, 1, 0, 1]));
    }

    #[test]
    fn a_subset_is_delivered_in_its_own_order() {
        let list = Subset::list([7, 3, 3, 9]);
        assert_eq!(batches(Order { len: list.len(), subset: Some(list), ..ALONE }), [[7, 3, 3, 9]]);
        let range = Subset::range(100..105);
        let shuffled = Order { len: range.len(), subset: Some(range), seed: Some(1), ..ALONE };
        let mut all = batches(shuffled).concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(100..105));
    }

    #[test]
    fn a_rank_beyond_the_samples_has_nothing() {
        let far = Order { len: 2, rank: 2, world: 3, ..ALONE };
        assert!(batches(far.clone()).is_empty() && batches(Order { last_batch: LastBatch::Drop, ..far }).is_empty());
    }

    #[test]
    fn padding_among_more_ranks_than_numbers_hold_begins_again() {
        let order = Order { len: 3, last_batch: LastBatch::Pad, rank: 1, world: u64::MAX, ..ALONE };
        // 2^64 - 1 is a multiple of 3, so that a rank meets the same sample again and again.
        assert_eq!(batches(order), [[1, 1, 1, 1]]);
    }

    #[test]
    fn the_last_positions_of_a_huge_set_are_reached() {
        let order = Order { len: u64::MAX, batch_size: 1 << 20, rank: 1, world: 2, ..ALONE };
        let sampler = Sampler::new(order, 0);
        assert_eq!(sampler.batch(sampler.batches() - 1).last(), Some(u64::MAX - 2));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn all_ranks_together_deliver_every_sample_once(
            len in 0u64..=200, world in 1u64..=9, batch_size in 1usize..=20, seed: Option<u64>,
        ) {
            let order = Order { len, batch_size, seed, world, ..ALONE };
            let ranks: Vec<Vec<u64>> =
                (0..world).map(|rank| batches(Order { rank, ..order.clone() }).concat()).collect();
            let sizes = || ranks.iter().map(Vec::len);
            prop_assert!(sizes().max() <= sizes().min().map(|least| least + 1));
            let mut all = ranks.concat();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..len));
        }

        #[test]
        fn with_the_rest_dropped_all_ranks_deliver_as_many_full_batches(
            len in 0u64..=200, world in 1u64..=9, batch_size in 1usize..=20, seed: Option<u64>,
        ) {
            let order = Order { len, batch_size, seed, world, ..DROP };
            let mut all = Vec::new();
            for rank in 0..world {
                let own = batches(Order { rank, ..order.clone() });
                prop_assert_eq!(own.len() as u64, len / world / batch_size as u64);
                prop_assert!(own.iter().all(|batch| batch.len() == batch_size));
                all.extend(own.concat());
            }
            let delivered = all.len();
            all.sort_unstable();
            all.dedup();
            prop_assert!(all.len() == delivered && all.last().is_none_or(|&last| last < len));
        }

        #[test]
        fn with_padding_every_sample_comes_and_what_is_padding_repeats(
            len in 1u64..=200, world in 1u64..=9, batch_size in 1usize..=20, seed: Option<u64>,
        ) {
            let order = Order { len, batch_size, seed, world, last_batch: LastBatch::Pad, ..ALONE };
            let mut own = Vec::new();
            for rank in 0..world {
                let sampler = Sampler::new(Order { rank, ..order.clone() }, 0);
                prop_assert_eq!(sampler.batches(), len.div_ceil(world).div_ceil(batch_size as u64));
                for number in 0..sampler.batches() {
                    prop_assert_eq!(sampler.batch(number).len(), batch_size);
                    own.extend(sampler.batch(number).take(batch_size - sampler.padding(number)));
                }
            }
            own.sort_unstable();
            prop_assert!(own.into_iter().eq(0..len));
        }

        #[test]
        fn a_rank_has_the_same_batches_each_time(len in 1u64..=200, world in 1u64..=9, seed: u64, epoch: u64) {
            let order = Order { len, seed: Some(seed), rank: world - 1, world, ..ALONE };
            let [once, again] = [(); 2].map(|()| Sampler::new(order.clone(), epoch));
            for number in 0..once.batches() {
                prop_assert!(once.batch(number).eq(again.batch(number)));
            }
        }
    }
}
