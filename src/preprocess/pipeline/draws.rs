//! Random numbers for one sample.

use super::super::fingerprint::mix64;

/// A stream of numbers that depends on its seed alone: SplitMix64, whose state counts up.
#[derive(Clone, Debug)]
pub(super) struct Draws(u64);

impl Draws {
    /// What sets this stream apart from others that are made of the same seed.
    const STREAM: u64 = 0x6765_6f6d_6574_7279;

    pub(super) fn new(seed: u64) -> Self {
        Self(mix64(seed ^ Self::STREAM))
    }

    fn next(&mut self) -> u64 {
        let number = mix64(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        number
    }

    /// From zero to below one, in steps of 2^-53.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }

    /// From `low` to `high`.
    pub(super) fn between(&mut self, (low, high): (f64, f64)) -> f64 {
        low + (high - low) * self.unit()
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// From zero to below `count`.
    pub(super) fn below(&mut self, count: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(count)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_even_and_stay_in_their_range() {
        let mut draws = Draws::new(7);
        let (mut sum, mut counts) = (0.0, [0; 5]);
        for _ in 0..10_000 {
            let unit = draws.unit();
            assert!((0.0..1.0).contains(&unit));
            sum += unit;
            counts[draws.below(5) as usize] += 1;
            assert!((2.0..3.0).contains(&draws.between((2.0, 3.0))));
        }
        assert!((sum / 10_000.0 - 0.5).abs() < 0.02);
        assert!(counts.iter().all(|&count| (1800..2200).contains(&count)), "{counts:?}");
        let mut always = Draws::new(1);
        assert!((0..100).all(|_| always.chance(1.0) && !always.chance(0.0)));
    }
}
