//! Statistics for comparing strategies: medians, because a busy machine makes outliers, and ratios paired by round,
//! because it also drifts.
//!
//! A *spread* is everywhere the median absolute deviation times 1.4826: for normally distributed samples that is their
//! standard deviation, and a minority of outliers does not move it.

use serde::{Deserialize, Serialize};

/// Turns a median absolute deviation into a standard deviation of normally distributed samples.
const MAD_TO_SIGMA: f64 = 1.4826;

/// With fewer rounds than this, a spread says nothing about the noise.
pub const MIN_ROUNDS: usize = 3;

/// The samples of one measurement, summed up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many samples.
    pub n: usize,
    /// The smallest.
    pub min: f64,
    /// The middle one, or the mean of the two middle ones.
    pub median: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// The median absolute deviation times 1.4826.
    pub spread: f64,
}

impl Summary {
    /// Sums up `samples`, in any order. `None` where there are none, or one of them is not finite.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let sorted = sorted(samples)?;
        let median = percentile(&sorted, 0.5)?;
        let mut deviations: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
        deviations.sort_by(f64::total_cmp);
        Some(Self {
            n: sorted.len(),
            min: *sorted.first()?,
            median,
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            max: *sorted.last()?,
            spread: percentile(&deviations, 0.5)? * MAD_TO_SIGMA,
        })
    }
}

/// The samples in ascending order, or `None` where there are none or one is not finite.
fn sorted(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.is_empty() || !samples.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The `q`-quantile (`q` from 0 to 1) of samples in ascending order, interpolated linearly between neighbours.
///
/// `None` without samples, or where `q` is out of range or not a number.
#[must_use]
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = q * sorted.len().checked_sub(1)? as f64;
    let below = *sorted.get(position.floor() as usize)?;
    let above = *sorted.get(position.ceil() as usize)?;
    Some(below + (above - below) * position.fract())
}

/// How much faster one strategy was than another that was measured in turn with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median of the rounds' ratios.
    pub ratio: f64,
    /// Their spread: the median absolute deviation times 1.4826.
    pub spread: f64,
    /// How many rounds both were measured in.
    pub rounds: usize,
}

impl Ratio {
    /// The ratio of `ours` to `theirs`, round by round. Both are rates, so that larger is faster; sample `i` of each
    /// was taken in round `i`. Where one has fewer rounds, the other's surplus is left out.
    ///
    /// `None` where there is no common round, or a rate is not finite and above zero.
    #[must_use]
    pub fn of(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let usable = |rate: &f64| rate.is_finite() && *rate > 0.0;
        if !ours.iter().chain(theirs).all(usable) {
            return None;
        }
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        let summary = Summary::of(&ratios)?;
        Some(Self { ratio: summary.median, spread: summary.spread, rounds: summary.n })
    }

    /// The same comparison seen from the other strategy. The spread is carried over to first order.
    #[must_use]
    pub fn inverse(&self) -> Self {
        Self { ratio: self.ratio.recip(), spread: self.spread / (self.ratio * self.ratio), rounds: self.rounds }
    }

    /// Whether the difference is larger than the spread, over at least [`MIN_ROUNDS`] rounds.
    #[must_use]
    pub fn beyond_noise(&self) -> bool {
        let faster = self.of_the_faster();
        self.rounds >= MIN_ROUNDS && faster.ratio - faster.spread > 1.0
    }

    /// This ratio or its inverse, whichever is at least 1.
    fn of_the_faster(&self) -> Self {
        if self.ratio < 1.0 { self.inverse() } else { *self }
    }
}

/// Says which of two was faster, and by how much: `ratio` is `ours` to `theirs`. The faster one is named first.
#[must_use]
pub fn describe_ratio(ours: &str, theirs: &str, ratio: &Ratio) -> String {
    if !ratio.ratio.is_finite() || !ratio.spread.is_finite() {
        return format!("{ours} and {theirs}: nothing to compare");
    }
    if ratio.rounds < MIN_ROUNDS {
        return format!("{ours} and {theirs}: too few rounds ({}) to tell a difference from noise", ratio.rounds);
    }
    if !ratio.beyond_noise() {
        let Ratio { ratio, spread, .. } = ratio;
        return format!("{ours} and {theirs} ({ratio:.2} ± {spread:.2}): no difference beyond the noise");
    }
    let (faster, slower) = if ratio.ratio < 1.0 { (theirs, ours) } else { (ours, theirs) };
    let Ratio { ratio, spread, .. } = ratio.of_the_faster();
    format!("{faster} was {ratio:.2} ± {spread:.2} times faster than {slower}")
}

/// The best of several strategies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leader {
    /// The strategy with the highest median.
    pub name: String,
    /// The strategy with the second highest, where there is one.
    pub runner_up: Option<String>,
    /// The winner's rates to the runner-up's, round by round.
    pub ratio: Option<Ratio>,
    /// Whether the winner is ahead by more than the spread. False without a runner-up.
    pub beyond_noise: bool,
}

/// The strategy with the highest median rate, and how far ahead of the next it is. Of equals the first listed wins.
///
/// `None` without candidates, or where one has no samples or a rate that is not finite: a comparison in which a
/// strategy could not be measured has no winner until the caller leaves that one out.
#[must_use]
pub fn leader(candidates: &[(&str, &[f64])]) -> Option<Leader> {
    let mut ranked = candidates
        .iter()
        .map(|&(name, rates)| Some((name, rates, Summary::of(rates)?.median)))
        .collect::<Option<Vec<_>>>()?;
    ranked.sort_by(|(_, _, a), (_, _, b)| b.total_cmp(a));
    let (name, rates, _) = *ranked.first()?;
    let runner_up = ranked.get(1);
    let ratio = runner_up.and_then(|(_, theirs, _)| Ratio::of(rates, theirs));
    Some(Leader {
        name: name.to_owned(),
        runner_up: runner_up.map(|(name, _, _)| (*name).to_owned()),
        ratio,
        // Medians and paired ratios can disagree about who leads; then nobody does.
        beyond_noise: ratio.is_some_and(|ratio| ratio.ratio > 1.0 && ratio.beyond_noise()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn one_outlier_moves_the_mean_but_neither_median_nor_spread_much() {
        let summary = Summary::of(&[10.0, 1000.0, 9.0, 11.0, 10.0]).unwrap();
        assert_eq!((summary.n, summary.min, summary.median, summary.max), (5, 9.0, 10.0, 1000.0));
        assert!(close(summary.mean, 208.0) && close(summary.spread, 1.4826));
    }

    #[test]
    fn samples_that_say_nothing_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[f64::INFINITY]), None);
        assert_eq!(Summary::of(&[2.5]).map(|one| (one.median, one.spread)), Some((2.5, 0.0)));
    }

    #[test]
    fn percentiles_interpolate_and_refuse_what_is_out_of_range() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert_eq!([0.0, 0.5, 1.0].map(|q| percentile(&sorted, q)), [Some(1.0), Some(2.5), Some(4.0)]);
        assert!([-0.1, 1.1, f64::NAN].iter().all(|&q| percentile(&sorted, q).is_none()));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn pairing_by_round_cancels_a_drift_that_hits_both() {
        let ours = [2.0, 4.0, 8.0, 16.0];
        let ratio = Ratio::of(&ours, &[1.0, 2.0, 4.0, 8.0, 99.0]).unwrap();
        assert_eq!(ratio, Ratio { ratio: 2.0, spread: 0.0, rounds: 4 });
        assert!(ratio.beyond_noise() && ratio.inverse().beyond_noise());
    }

    #[test]
    fn rates_that_cannot_be_divided_have_no_ratio() {
        assert_eq!(Ratio::of(&[], &[]), None);
        assert_eq!(Ratio::of(&[1.0], &[0.0]), None);
        assert_eq!(Ratio::of(&[f64::NAN], &[1.0]), None);
    }

    #[test]
    fn words_name_the_faster_one_first_and_admit_noise() {
        let described = |ratio, spread, rounds| describe_ratio("a", "b", &Ratio { ratio, spread, rounds });
        assert_eq!(described(1.31, 0.05, 5), "a was 1.31 ± 0.05 times faster than b");
        assert_eq!(described(0.5, 0.05, 5), "b was 2.00 ± 0.20 times faster than a");
        assert_eq!(described(1.02, 0.05, 5), "a and b (1.02 ± 0.05): no difference beyond the noise");
        assert_eq!(described(0.97, 0.05, 5), "a and b (0.97 ± 0.05): no difference beyond the noise");
        assert_eq!(described(3.0, 0.0, 1), "a and b: too few rounds (1) to tell a difference from noise");
        assert_eq!(described(f64::NAN, 0.0, 5), "a and b: nothing to compare");
    }

    #[test]
    fn the_winner_has_the_best_median_and_knows_its_lead() {
        let best = leader(&[("a", &[1.0, 1.1, 0.9]), ("b", &[2.0, 2.1, 1.9]), ("c", &[1.5, 1.6, 1.4])]).unwrap();
        assert_eq!((best.name.as_str(), best.runner_up.as_deref()), ("b", Some("c")));
        assert!(best.beyond_noise && best.ratio.unwrap().ratio > 1.3);
        let tie = leader(&[("a", &[1.0, 2.0, 3.0]), ("b", &[3.0, 2.0, 1.0])]).unwrap();
        assert_eq!((tie.name.as_str(), tie.beyond_noise), ("a", false));
    }

    #[test]
    fn a_comparison_with_gaps_has_no_winner() {
        assert_eq!(leader(&[]), None);
        assert_eq!(leader(&[("a", &[1.0]), ("b", &[])]), None);
        assert_eq!(leader(&[("a", &[1.0]), ("b", &[f64::NAN])]), None);
        let alone = leader(&[("a", &[1.0])]).unwrap();
        assert_eq!((alone.runner_up, alone.ratio, alone.beyond_noise), (None, None, false));
    }
}
