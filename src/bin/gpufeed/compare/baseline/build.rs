//! This build against another: both run at once, and take rounds in turn.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use gpufeed::measure::{Gate, RatioInterval, paired_ratio};
use serde::Serialize;

use super::paced::{About, Paced, PacedJob};
use crate::interrupt;

/// Pairs of rounds in one run of both processes.
const PAIRS: usize = 40;
/// Rounds of each that warm up, and are not counted.
const WARM_UP: usize = 4;
/// Fewer runs decide nothing.
pub const MIN_RUNS: usize = 5;
/// More do not either.
pub const MAX_RUNS: usize = 40;

/// What comparing two builds with one configuration came to.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub interval: RatioInterval,
    pub gate: Gate,
    /// Samples a second of each, medians of all rounds.
    pub ours_s: f64,
    pub theirs_s: f64,
    #[serde(skip)]
    pub theirs: About,
    #[serde(skip)]
    pub ours: About,
}

/// Runs of both until the interval is on one side of what is allowed, or there are [`MAX_RUNS`].
///
/// # Errors
/// One of them cannot go on.
pub fn compare(
    baseline: &Path,
    job: &PacedJob,
    max_slowdown: f64,
    each: &mut dyn FnMut(usize, f64),
) -> Result<Comparison> {
    let own = std::env::current_exe().context("gpufeed's own file is not known")?;
    let (mut ratios, mut ours_s, mut theirs_s) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let mut theirs =
            Paced::start(Command::new(baseline), job).with_context(|| format!("--baseline {}", baseline.display()))?;
        let mut ours = Paced::start(Command::new(&own), job)?;
        let (a, b) = one_run(&mut ours, &mut theirs, ratios.len())?;
        let ratio = paired_ratio(&a, &b).context("a round has no rate")?;
        ratios.push(ratio);
        each(ratios.len(), ratio);
        ours_s.extend(a);
        theirs_s.extend(b);
        ensure!(!interrupt::requested(), "interrupted");
        if ratios.len() < MIN_RUNS {
            continue;
        }
        let interval = RatioInterval::of_runs(&ratios).context("a run has no ratio")?;
        let gate = interval.gate(max_slowdown);
        if gate != Gate::Undecided || ratios.len() >= MAX_RUNS {
            let median = |rates: &[f64]| gpufeed::measure::Summary::of(rates).map_or(0.0, |summary| summary.median);
            let (about_ours, about_theirs) = (ours.about.clone(), theirs.about.clone());
            return Ok(Comparison {
                interval,
                gate,
                ours_s: median(&ours_s),
                theirs_s: median(&theirs_s),
                theirs: about_theirs,
                ours: about_ours,
            });
        }
    }
}

/// Rounds in the order A B B A, so that whatever grows or fades meets both alike; every second run begins with the other.
fn one_run(ours: &mut Paced, theirs: &mut Paced, run: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS + WARM_UP {
        let (x, y) = if (pair + run).is_multiple_of(2) {
            let x = ours.round()?;
            (x, theirs.round()?)
        } else {
            let y = theirs.round()?;
            (ours.round()?, y)
        };
        if pair >= WARM_UP {
            a.push(x);
            b.push(y);
        }
    }
    Ok((a, b))
}
