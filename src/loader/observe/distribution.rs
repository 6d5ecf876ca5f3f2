//! How durations are distributed, in a form that can be kept, added up and drawn.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Steps of one octave: a bucket's end is 9% above its start.
const STEPS: f64 = 8.0;

/// How many durations took how long, in buckets of an eighth of an octave. Pure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Distribution(Vec<Bucket>);

/// Durations of nearly the same length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bucket {
    /// They took at most this long, in microseconds, and more than 0.917 of it.
    pub up_to_us: f64,
    /// How many they are.
    pub count: u64,
}

impl Distribution {
    /// What a histogram of nanoseconds holds.
    pub(super) fn of(histogram: &Histogram<u64>) -> Self {
        let mut distribution = Self::default();
        for step in histogram.iter_recorded() {
            distribution.add(step.value_iterated_to() as f64 / 1e3, step.count_since_last_iteration());
        }
        distribution
    }

    /// Counts `count` durations of this many microseconds.
    pub fn add(&mut self, us: f64, count: u64) {
        let up_to_us = ((us.max(1e-3).log2() * STEPS).ceil() / STEPS).exp2();
        match self.0.binary_search_by(|bucket| bucket.up_to_us.total_cmp(&up_to_us)) {
            Ok(index) => self.0[index].count += count,
            Err(index) => self.0.insert(index, Bucket { up_to_us, count }),
        }
    }

    /// Counts what another has counted as well.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|bucket| self.add(bucket.up_to_us, bucket.count));
    }

    /// The buckets that hold any, the shortest first.
    #[must_use]
    pub fn buckets(&self) -> &[Bucket] {
        &self.0
    }
}

impl Bucket {
    /// They took longer than this, in microseconds.
    #[must_use]
    pub fn above_us(&self) -> f64 {
        self.up_to_us / (1.0 / STEPS).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_buckets_that_hold_them_and_parts_add_up_to_the_whole() {
        let times = [0.2, 1.0, 3.0, 3.1, 1024.0, 1025.0, 7.5e8];
        let of = |times: &[f64]| {
            let mut distribution = Distribution::default();
            times.iter().for_each(|&us| distribution.add(us, 2));
            distribution
        };
        let all = of(&times);
        for bucket in all.buckets() {
            let inside = times.iter().filter(|&&us| us > bucket.above_us() * 1.0001 && us <= bucket.up_to_us);
            assert_eq!(bucket.count, 2 * inside.count() as u64, "{bucket:?}");
        }
        assert_eq!(all.buckets().iter().map(|bucket| bucket.count).sum::<u64>(), 14);
        assert!(all.buckets().is_sorted_by(|a, b| a.up_to_us < b.up_to_us), "{all:?}");
        let mut parts = of(&times[3..]);
        parts.merge(&of(&times[..3]));
        assert_eq!(parts, all, "in whatever order, and a bucket's end stays in its bucket");
    }

    #[test]
    fn a_histogram_of_nanoseconds_is_counted_whole() {
        let mut histogram = Histogram::new_with_bounds(100, 1_000_000_000_000, 2).expect("valid bounds");
        histogram.record_n(2_000_000, 5).expect("in bounds");
        histogram.record_n(64_000_000, 3).expect("in bounds");
        let distribution = Distribution::of(&histogram);
        let [short, long] = distribution.buckets() else { panic!("{distribution:?}") };
        assert_eq!((short.count, long.count), (5, 3));
        // A hundredth of what is recorded is the histogram's own error.
        assert!(short.above_us() < 2020.0 && short.up_to_us >= 2000.0, "{short:?}");
        assert!(long.above_us() < 64_640.0 && long.up_to_us >= 64_000.0, "{long:?}");
    }
}
