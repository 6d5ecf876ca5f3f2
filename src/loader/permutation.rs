//! A shuffle that is computed, never stored.

/// A pseudo-random permutation of `0..len`, computed element by element.
///
/// A Feistel network over the smallest even number of bits that holds `len`, walked along its cycle until the value falls below
/// `len` (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002): under four steps on average.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    len: u64,
    half_bits: u32,
    keys: [u64; Self::ROUNDS],
}

impl Permutation {
    const ROUNDS: usize = 6;

    /// The permutation of `0..len` that a seed and an epoch choose.
    #[must_use]
    pub fn new(len: u64, seed: u64, epoch: u64) -> Self {
        let bits = 64 - len.saturating_sub(1).leading_zeros();
        let mut state = mix(seed ^ mix(epoch.wrapping_add(0x9E37_79B9_7F4A_7C15)));
        let keys = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            mix(state)
        });
        Self { len, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// The element at `position`, which is below `len`.
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.len);
        let mut value = self.encrypt(position);
        while value >= self.len {
            value = self.encrypt(value);
        }
        value
    }

    fn encrypt(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// The finaliser of SplitMix64.
pub(super) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_comes_exactly_once() {
        for len in [1u64, 2, 3, 7, 64, 65, 1000, 4097] {
            for epoch in 0..3 {
                let permutation = Permutation::new(len, 42, epoch);
                let mut seen: Vec<u64> = (0..len).map(|position| permutation.at(position)).collect();
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..len), "length {len}");
            }
        }
    }

    #[test]
    fn seeds_and_epochs_give_different_orders() {
        let order = |seed, epoch| (0..100).map(|p| Permutation::new(100, seed, epoch).at(p)).collect::<Vec<_>>();
        assert_eq!(order(1, 0), order(1, 0));
        assert_ne!(order(1, 0), order(1, 1));
        assert_ne!(order(1, 0), order(2, 0));
    }

    #[test]
    fn positions_and_values_are_not_correlated() {
        let len = 10_000u64;
        let permutation = Permutation::new(len, 7, 0);
        let mean = (len - 1) as f64 / 2.0;
        let covariance: f64 = (0..len).map(|p| (p as f64 - mean) * (permutation.at(p) as f64 - mean)).sum();
        let variance: f64 = (0..len).map(|p| (p as f64 - mean).powi(2)).sum();
        // Four standard errors of the correlation of independent sequences.
        assert!((covariance / variance).abs() < 0.04, "{}", covariance / variance);
    }

    #[test]
    fn huge_sets_need_no_memory() {
        let permutation = Permutation::new(1 << 40, 3, 0);
        assert!(permutation.at((1 << 40) - 1) < 1 << 40);
        assert!(Permutation::new(u64::MAX, 3, 0).at(5) < u64::MAX);
    }
}
