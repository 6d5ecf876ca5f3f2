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

    /// Puts elements in place of these positions, which are below `len`.
    ///
    /// An element is a chain of operations that wait for each other, and how long it is cannot be guessed. Step by step for all that
    /// are not there yet, the processor works on several chains at once.
    fn apply(&self, values: &mut [u64]) {
        let mut open: [usize; TOGETHER] = std::array::from_fn(|at| at);
        let mut left = values.len();
        while left > 0 {
            for &at in &open[..left] {
                values[at] = self.encrypt(values[at]);
            }
            let walking = std::mem::take(&mut left);
            for turn in 0..walking {
                let at = open[turn];
                open[left] = at;
                left += usize::from(values[at] >= self.len);
            }
        }
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

/// Elements computed side by side.
const TOGETHER: usize = 32;

/// Positions in place of which their elements come, if there is a permutation.
#[derive(Clone, Debug)]
pub(in crate::loader) struct Permuted<I> {
    positions: I,
    permutation: Option<Permutation>,
    /// Elements computed ahead, from `next` to `end`.
    values: [u64; TOGETHER],
    next: usize,
    end: usize,
}

impl<I: ExactSizeIterator<Item = u64>> Permuted<I> {
    pub(in crate::loader) fn new(permutation: Option<Permutation>, positions: I) -> Self {
        Self { positions, permutation, values: [0; TOGETHER], next: 0, end: 0 }
    }
}

impl<I: ExactSizeIterator<Item = u64>> Iterator for Permuted<I> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let Some(permutation) = &self.permutation else { return self.positions.next() };
        if self.next == self.end {
            (self.next, self.end) = (0, self.positions.len().min(TOGETHER));
            let room = &mut self.values[..self.end];
            room.iter_mut().zip(&mut self.positions).for_each(|(value, position)| *value = position);
            permutation.apply(room);
        }
        let value = self.values[..self.end].get(self.next).copied();
        self.next += usize::from(value.is_some());
        value
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next + self.positions.len();
        (left, Some(left))
    }
}

impl<I: ExactSizeIterator<Item = u64>> ExactSizeIterator for Permuted<I> {}

/// The finaliser of SplitMix64.
pub(in crate::loader) const fn mix(mut x: u64) -> u64 {
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
    fn elements_computed_side_by_side_are_the_same() {
        for len in [1u64, 31, 32, 33, 1000, 4097] {
            let permutation = Permutation::new(len, 3, 1);
            let mut all = Permuted::new(Some(permutation), (0..len as usize).map(|position| position as u64));
            for position in 0..len {
                assert_eq!(all.len() as u64, len - position);
                assert_eq!(all.next(), Some(permutation.at(position)), "{position} of {len}");
            }
            assert_eq!((all.len(), all.next()), (0, None));
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
