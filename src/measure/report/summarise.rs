//! What follows from the samples of a report: figures, what held each configuration back, winners. Pure.

use super::configuration::{Configuration, Round, Settings};
use super::device::{DeviceReport, Winner};
use super::measured::Measured;
use crate::loader::{Beside, Finding, LoaderStats, Setup};
use crate::measure::bounds::{Work, credible};
use crate::measure::stats::{Summary, leader};

impl DeviceReport {
    /// Computes everything that is derived from the rounds and the ceilings anew.
    pub fn summarise(&mut self) {
        self.reject_ceilings();
        let kernel = (Work::Kernel { software: self.software }, self.kernel_ceiling_gb_s);
        self.configurations.iter_mut().for_each(|row| row.reject_rates(kernel));
        let figures: Vec<_> =
            self.configurations.iter().map(|row| Measured::of(self, row, &row.rounds).figures()).collect();
        for (row, figures) in self.configurations.iter_mut().zip(figures) {
            row.figures = figures;
        }
        let held_back: Vec<_> = self.configurations.iter().map(|row| self.judge(row)).collect();
        for (row, held_back) in self.configurations.iter_mut().zip(held_back) {
            row.held_back = held_back;
        }
        let (idle, busy): (Vec<_>, Vec<_>) = self.measured().into_iter().partition(|row| row.settings.is_idle());
        let winner = winner(&best_of_each_strategy(&of_the_fastest_sample_size(&idle)));
        let (sweep, busy) = (winners(&idle), winners(&busy));
        self.winner = winner;
        // One combination of sizes is no sweep.
        self.sweep = if sweep.len() < 2 { Vec::new() } else { sweep };
        self.busy = busy;
    }

    fn measured(&self) -> Vec<&Configuration> {
        self.configurations.iter().filter(|row| row.is_measured()).collect()
    }

    /// Sums the host's reference up, and drops ceilings that cannot be.
    fn reject_ceilings(&mut self) {
        for ceilings in &mut self.ceilings {
            ceilings.host_memcpy_gb_s = Summary::of(&ceilings.host_memcpy_samples).map(|summary| summary.median);
            let error = &mut ceilings.device_copy_error;
            take_doubtful(&mut ceilings.device_copy_gb_s, Work::Copy, None, |why| *error = Some(why));
            take_doubtful(&mut ceilings.batch_copy_gb_s, Work::Copy, None, |why| {
                log::warn!("the copy of a batch: {why}");
            });
            take_doubtful(&mut ceilings.pageable_copy_gb_s, Work::Copy, None, |why| {
                log::warn!("the copy from pageable memory: {why}");
            });
        }
        let error = &mut self.kernel_ceiling_error;
        let kernel = Work::Kernel { software: self.software };
        take_doubtful(&mut self.kernel_ceiling_gb_s, kernel, None, |why| *error = Some(why));
    }
}

/// Removes a rate that cannot be true, and reports why.
fn take_doubtful(rate: &mut Option<f64>, work: Work, ceiling: Option<f64>, report: impl FnOnce(String)) {
    if let Some(Err(why)) = rate.map(|rate| credible(work, rate, ceiling)) {
        *rate = None;
        report(why);
    }
}

impl Configuration {
    /// Drops what the device's clock cannot have measured. What was dropped once stays dropped, with its reason.
    ///
    /// The device's own copy from the host is no ceiling of copies: where staging memory is video memory, they stay within the card.
    fn reject_rates(&mut self, (kernel, kernel_ceiling): (Work, Option<f64>)) {
        let Some(gpu) = &mut self.gpu else { return };
        let doubts = &mut self.doubts;
        take_doubtful(&mut gpu.copy_gb_s, Work::Copy, None, |why| {
            doubts.push(format!("copies by the device's clock: {why}"));
        });
        take_doubtful(&mut gpu.kernel_gb_s, kernel, kernel_ceiling, |why| {
            doubts.push(format!("kernels by the device's clock: {why}"));
        });
    }
}

/// A strategy that hides less than this of what could be hidden does not hide its copies, one that hides more than the other bound does.
const HIDES: (f64, f64) = (50.0, 80.0);

impl DeviceReport {
    /// What held a configuration back over all rounds. The device's clock was asked in a pass of its own, beside an idle consumer, and
    /// speaks for all.
    fn judge(&self, row: &Configuration) -> Option<Finding> {
        if row.rounds.is_empty() {
            return None;
        }
        let Settings { strategy, workers, slots, outputs, .. } = row.settings;
        let idle = self.configurations.iter().find(|other| other.settings == row.settings.idle()).unwrap_or(row);
        let gpu = idle.gpu.filter(|_| idle.doubts.is_empty()).map(|gpu| gpu.times);
        let times = LoaderStats { gpu, ..total(&row.rounds) };
        let beside = self.beside(row);
        Some(Finding::of(&times, Setup { strategy, workers, slots, outputs, beside }))
    }

    /// What was measured of the consumer's work beside a configuration, and who hides its copies behind it.
    fn beside(&self, row: &Configuration) -> Beside {
        let figure = |row: &Configuration, key| row.figures.get(key);
        let hidden = figure(row, "hidden_percent");
        let hides = |other: &&Configuration| {
            other.is_measured()
                && other.settings.same_sizes(&row.settings)
                && figure(other, "hidden_percent") >= Some(HIDES.1)
                && figure(other, "step_us") < figure(row, "step_us")
        };
        let step = |row: &&Configuration| figure(row, "step_us").unwrap_or(f64::INFINITY);
        let others = self.configurations.iter().filter(|_| hidden < Some(HIDES.0)).filter(hides);
        let best = others.min_by(|one, other| step(one).total_cmp(&step(other)));
        Beside {
            compute_s: row.compute_alone_us.filter(|_| hidden.is_some()).map(|us| us / 1e6),
            hidden: hidden.map(|percent| percent / 100.0),
            hidden_by: best.filter(|_| hidden.is_some()).map(|row| row.settings.strategy),
        }
    }
}

/// The times of all rounds, added up.
fn total(rounds: &[Round]) -> LoaderStats {
    let mut sum = LoaderStats::default();
    for stats in rounds.iter().map(|round| &round.stats) {
        sum.batches += stats.batches;
        sum.active_s += stats.active_s;
        sum.source_s += stats.source_s;
        sum.fill_s += stats.fill_s;
        sum.filled_s += stats.filled_s;
        sum.begin_s += stats.begin_s;
        sum.submit_s += stats.submit_s;
        sum.gpu_s += stats.gpu_s;
        sum.delivered_s += stats.delivered_s;
        sum.held_s += stats.held_s;
        sum.next_s += stats.next_s;
        sum.waits.source_s += stats.waits.source_s;
        sum.waits.device_s += stats.waits.device_s;
        sum.waits.either_s += stats.waits.either_s;
        sum.waits.consumer_s += stats.waits.consumer_s;
        sum.waits.idle_s += stats.waits.idle_s;
    }
    sum
}

/// The winner of each combination of everything but the strategy.
fn winners(measured: &[&Configuration]) -> Vec<Winner> {
    let mut sizes: Vec<Settings> = Vec::new();
    for row in measured {
        if !sizes.iter().any(|known| known.same_sizes(&row.settings)) {
            sizes.push(row.settings);
        }
    }
    let group = |sizes: &Settings| -> Vec<&Configuration> {
        measured.iter().copied().filter(|row| row.settings.same_sizes(sizes)).collect()
    };
    sizes.iter().filter_map(|sizes| winner(&group(sizes))).collect()
}

/// The rows with samples of the size that moves the most bytes: rounds of other sizes are of another process, and no neighbours in time.
fn of_the_fastest_sample_size<'a>(measured: &[&'a Configuration]) -> Vec<&'a Configuration> {
    let rate = |row: &Configuration| row.figures.get("gb_s").unwrap_or(0.0);
    let fastest = measured.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let size = fastest.map(|row| row.settings.sample_bytes);
    measured.iter().copied().filter(|row| Some(row.settings.sample_bytes) == size).collect()
}

/// Each strategy with the settings that it is fastest with.
fn best_of_each_strategy<'a>(measured: &[&'a Configuration]) -> Vec<&'a Configuration> {
    let rate = |row: &Configuration| row.figures.get("gb_s").unwrap_or(0.0);
    let mut best: Vec<&Configuration> = Vec::new();
    for &configuration in measured {
        match best.iter_mut().find(|known| known.settings.strategy == configuration.settings.strategy) {
            Some(known) if rate(configuration) > rate(known) => *known = configuration,
            Some(_) => {}
            None => best.push(configuration),
        }
    }
    best
}

/// Who is fastest of configurations with different strategies.
fn winner(candidates: &[&Configuration]) -> Option<Winner> {
    let rates: Vec<(&str, Vec<f64>)> = candidates
        .iter()
        .map(|row| (row.settings.strategy.key(), row.rounds.iter().map(|round| round.gb_s).collect()))
        .collect();
    let borrowed: Vec<(&str, &[f64])> = rates.iter().map(|(name, rates)| (*name, rates.as_slice())).collect();
    let found = leader(&borrowed)?;
    let settings = |name: &str| candidates.iter().map(|row| row.settings).find(|s| s.strategy.key() == name);
    Some(Winner {
        settings: settings(&found.name)?,
        runner_up: found.runner_up.as_deref().and_then(settings),
        ratio: found.ratio.map(|ratio| ratio.ratio),
        spread: found.ratio.map(|ratio| ratio.spread),
        rounds: found.ratio.map_or(0, |ratio| ratio.rounds),
        beyond_noise: found.beyond_noise,
    })
}

#[cfg(test)]
#[path = "summarise_tests.rs"]
mod tests;
