//! Which sample is read, and when.

/// Which sample a [`Source`](super::Source) is asked for, and in which epoch.
///
/// All three numbers are the same on every device, with any number of workers, and after resuming; so random draws that are made of
/// [`random_seed`](Self::random_seed) alone are too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SampleContext {
    /// The sample's index in the source.
    pub index: u64,
    /// The epoch it is read for.
    pub epoch: u64,
    /// The loader's [`seed`](crate::LoaderOptions::seed); zero where there is none.
    pub seed: u64,
}

impl SampleContext {
    /// Sample `index`, in epoch 0 and with seed 0.
    #[must_use]
    pub const fn of(index: u64) -> Self {
        Self { index, epoch: 0, seed: 0 }
    }

    /// The same sample in another epoch.
    #[must_use]
    pub const fn in_epoch(self, epoch: u64) -> Self {
        Self { epoch, ..self }
    }

    /// The same with another seed.
    #[must_use]
    pub const fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Another sample of the same epoch, for a source over another one.
    #[must_use]
    pub const fn at(self, index: u64) -> Self {
        Self { index, ..self }
    }

    /// A number mixed from all three, to seed a generator of random numbers with: for augmentation, noise, crops.
    #[must_use]
    pub const fn random_seed(&self) -> u64 {
        mix(mix(mix(self.seed).wrapping_add(self.epoch)).wrapping_add(self.index))
    }
}

/// One step of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the result depends on every bit of `x`.
pub(super) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_epoch_and_seed_draws_its_own_numbers() {
        let contexts = (0..10).flat_map(|index| {
            (0..10).flat_map(move |epoch| {
                (0..10).map(move |seed| SampleContext::of(index).in_epoch(epoch).with_seed(seed))
            })
        });
        let mut seeds: Vec<u64> = contexts.map(|context| context.random_seed()).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 1000);
        assert_eq!(SampleContext::of(3).random_seed(), SampleContext::of(7).at(3).random_seed());
    }
}
