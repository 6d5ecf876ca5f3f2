//! The order of an epoch: which samples are in which batch. Computed, never stored.

use super::permutation::{Permutation, Permuted};
use super::{LastBatch, LoaderOptions};

/// What fixes the batches of every epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Samples in the source.
    pub len: u64,
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
        let &LoaderOptions { batch_size, last_batch, seed, rank, world, .. } = options;
        Self { len, batch_size, last_batch, seed, rank, world }
    }

    /// How many samples of an epoch are this rank's, and how many each rank has at least.
    fn shares(&self) -> (u64, u64) {
        debug_assert!(self.rank < self.world, "rank {} of {}", self.rank, self.world);
        let least = self.len / self.world;
        (least + u64::from(self.rank < self.len % self.world), least)
    }
}

/// The batches of one epoch, or of one rank's share of it.
///
/// Position `p` of the epoch's order belongs to rank `p % world`, so that every sample is in exactly one rank's share. Shares differ
/// by one sample at most. With [`LastBatch::Short`] a rank's last batch may therefore be one sample shorter than another's, or
/// be missing where another's holds a single sample; with [`LastBatch::Drop`] all ranks have the same number of full batches,
/// `len / world / batch_size`.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    batch_size: u64,
    batches: u64,
    /// Positions delivered in all.
    samples: u64,
    rank: u64,
    world: u64,
    permutation: Option<Permutation>,
}

impl Sampler {
    /// The batches of epoch `epoch`.
    #[must_use]
    pub fn new(order: Order, epoch: u64) -> Self {
        let Order { len, batch_size, last_batch, seed, rank, world } = order;
        let batch_size = (batch_size as u64).max(1);
        let (own, least) = order.shares();
        let (batches, samples) = match last_batch {
            LastBatch::Short => (own.div_ceil(batch_size), own),
            LastBatch::Drop => (least / batch_size, least / batch_size * batch_size),
        };
        let permutation = seed.map(|seed| Permutation::new(len, seed, epoch));
        Self { batch_size, batches, samples, rank, world, permutation }
    }

    /// The number of batches.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// The number of samples in all batches.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The indices of batch `number`, which is below [`batches`](Self::batches).
    pub fn batch(&self, number: u64) -> impl ExactSizeIterator<Item = u64> + use<> {
        let Self { rank, world, permutation, .. } = *self;
        let start = number * self.batch_size;
        let end = (start + self.batch_size).min(self.samples);
        let count = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        Permuted::new(permutation, (0..count).map(move |offset| (start + offset as u64) * world + rank))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALONE: Order = Order { len: 10, batch_size: 4, last_batch: LastBatch::Short, seed: None, rank: 0, world: 1 };
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
        let rank = |rank, order| batches(Order { rank, world: 3, batch_size: 2, ..order });
        assert_eq!(rank(0, ALONE), [vec![0, 3], vec![6, 9]]);
        assert_eq!(rank(2, ALONE), [vec![2, 5], vec![8]]);
        assert_eq!([rank(0, DROP), rank(2, DROP)], [[[0, 3]], [[2, 5]]]);
    }

    #[test]
    fn a_rank_beyond_the_samples_has_nothing() {
        let far = Order { len: 2, rank: 2, world: 3, ..ALONE };
        assert!(batches(far).is_empty() && batches(Order { last_batch: LastBatch::Drop, ..far }).is_empty());
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
            let ranks: Vec<Vec<u64>> = (0..world).map(|rank| batches(Order { rank, ..order }).concat()).collect();
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
                let own = batches(Order { rank, ..order });
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
        fn a_rank_has_the_same_batches_each_time(len in 1u64..=200, world in 1u64..=9, seed: u64, epoch: u64) {
            let order = Order { len, seed: Some(seed), rank: world - 1, world, ..ALONE };
            let [once, again] = [(); 2].map(|()| Sampler::new(order, epoch));
            for number in 0..once.batches() {
                prop_assert!(once.batch(number).eq(again.batch(number)));
            }
        }
    }
}
