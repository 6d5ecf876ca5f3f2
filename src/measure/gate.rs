//! Whether one build is slower than another by more than is allowed: ratios with confidence intervals. Pure; `docs/statistics.md` says
//! where the formulas come from.

use serde::{Deserialize, Serialize};

use super::stats::percentile;

/// A ratio of rates, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RatioInterval {
    /// Ours to theirs: above 1 is faster.
    pub ratio: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Independent samples that it is made of: runs of both in turn, or the rounds of the shorter side.
    pub samples: usize,
}

/// Whether the gate opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// The whole interval is above the allowed ratio.
    Passes,
    /// The whole interval is below it.
    Fails,
    /// The interval holds the allowed ratio: more samples would decide.
    Undecided,
}

impl RatioInterval {
    /// From ratios of runs in which both were measured in turn, each run in processes of its own: the geometric mean, and an interval that
    /// holds the true one in 99 of 100 such series (Student's t of the logarithms). `None` with fewer than two, or where one is not
    /// finite and above zero.
    #[must_use]
    pub fn of_runs(ratios: &[f64]) -> Option<Self> {
        let logs = logarithms(ratios)?;
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = student_99(logs.len().checked_sub(1)?)? * (variance / n).sqrt();
        Some(Self { ratio: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp(), samples: logs.len() })
    }

    /// From rates that were measured at different times: the Hodges-Lehmann estimate of how far apart their logarithms are, and the
    /// interval of the Mann-Whitney test at 95 in 100. `None` with too few of either, or where one is not finite and above zero.
    #[must_use]
    pub fn of_records(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let (ours, theirs) = (logarithms(ours)?, logarithms(theirs)?);
        let mut differences: Vec<f64> = ours.iter().flat_map(|a| theirs.iter().map(move |b| a - b)).collect();
        differences.sort_by(f64::total_cmp);
        let (m, n) = (ours.len() as f64, theirs.len() as f64);
        // The normal approximation of the test's distribution.
        let rank = (m * n / 2.0 - 1.96 * (m * n * (m + n + 1.0) / 12.0).sqrt()).floor();
        let outside = if rank >= 1.0 { rank as usize } else { return None };
        let end = |index: usize| differences.get(index).map(|difference| difference.exp());
        Some(Self {
            ratio: percentile(&differences, 0.5)?.exp(),
            low: end(outside - 1)?,
            high: end(differences.len() - outside)?,
            samples: ours.len().min(theirs.len()),
        })
    }

    /// Whether it is slower by more than the share `max_slowdown` of the other's rate.
    #[must_use]
    pub fn gate(&self, max_slowdown: f64) -> Gate {
        let allowed = 1.0 - max_slowdown;
        match () {
            () if self.low >= allowed => Gate::Passes,
            () if self.high < allowed => Gate::Fails,
            () => Gate::Undecided,
        }
    }
}

/// The Hodges-Lehmann estimate of the ratio of two rates that were measured in pairs, one after the other: the median of the means of all
/// pairs of logarithms. It is nearly as exact as the mean where noise is normal, and up to 29 in 100 outliers do not carry it away. `None`
/// without pairs, or where a rate is not finite and above zero.
#[must_use]
pub fn paired_ratio(ours: &[f64], theirs: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = logarithms(ours)?.iter().zip(&logarithms(theirs)?).map(|(a, b)| a - b).collect();
    let mut means: Vec<f64> =
        logs.iter().enumerate().flat_map(|(i, a)| logs[i..].iter().map(move |b| f64::midpoint(*a, *b))).collect();
    means.sort_by(f64::total_cmp);
    percentile(&means, 0.5).map(f64::exp)
}

/// `None` where there are none, or one is of no rate.
fn logarithms(rates: &[f64]) -> Option<Vec<f64>> {
    let usable = !rates.is_empty() && rates.iter().all(|rate| rate.is_finite() && *rate > 0.0);
    usable.then(|| rates.iter().map(|rate| rate.ln()).collect())
}

/// Student's t for 99 in 100, both sides, by degrees of freedom; beyond 30 that of 30, which is a little too wide.
fn student_99(freedom: usize) -> Option<f64> {
    const T: [f64; 30] = [
        63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
        2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
    ];
    freedom.checked_sub(1).and_then(|index| T.get(index.min(T.len() - 1)).copied())
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
