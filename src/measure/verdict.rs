//! What follows from the samples of a report: medians, shares of the ceilings, winners. Pure.

use super::bounds::{Work, credible, percent_of};
use super::limits::Shares;
use super::report::{Ceilings, Configuration, DeviceReport, Median, Round, Settings, Staging, Status, Verdict};
use super::stats::{Summary, winner};
use crate::loader::Percentiles;

impl DeviceReport {
    /// Computes everything that is derived from the rounds and the ceilings anew.
    pub fn summarise(&mut self) {
        self.reject_ceilings();
        let kernel = (Work::Kernel { software: self.software }, self.kernel_ceiling_gb_s);
        for configuration in &mut self.configurations {
            let sizes = configuration.settings;
            let ceilings =
                self.ceilings.iter().find(|c| (c.batch_size, c.workers) == (sizes.batch_size, sizes.workers));
            configuration.summarise(ceilings);
            configuration.reject_rates(ceilings, kernel);
        }
        let measured: Vec<&Configuration> = self.configurations.iter().filter(|c| c.is_measured()).collect();
        self.winner = verdict(&best_of_each_strategy(&measured));
        let mut sizes: Vec<Settings> = Vec::new();
        for configuration in &measured {
            if !sizes.iter().any(|known| known.same_sizes(&configuration.settings)) {
                sizes.push(configuration.settings);
            }
        }
        self.sweep = Vec::new();
        if sizes.len() > 1 {
            let group = |sizes: &Settings| -> Vec<&Configuration> {
                measured.iter().copied().filter(|c| c.settings.same_sizes(sizes)).collect()
            };
            self.sweep = sizes.iter().filter_map(|sizes| verdict(&group(sizes))).collect();
        }
    }

    /// Sums the host's reference up, and drops ceilings that cannot be.
    fn reject_ceilings(&mut self) {
        for ceilings in &mut self.ceilings {
            ceilings.host_memcpy_gb_s = median(ceilings.host_memcpy_samples.iter().copied());
            take_doubtful(&mut ceilings.device_copy_gb_s, Work::Copy, None, |why| {
                ceilings.device_copy_error = Some(why)
            });
            take_doubtful(&mut ceilings.pageable_copy_gb_s, Work::Copy, None, |why| {
                log::warn!("the copy from pageable memory: {why}");
            });
        }
        let kernel = Work::Kernel { software: self.software };
        take_doubtful(&mut self.kernel_ceiling_gb_s, kernel, None, |why| self.kernel_ceiling_error = Some(why));
    }
}

/// Takes a rate that cannot be out, and says why.
fn take_doubtful(rate: &mut Option<f64>, work: Work, ceiling: Option<f64>, say: impl FnOnce(String)) {
    if let Some(Err(why)) = rate.map(|rate| credible(work, rate, ceiling)) {
        *rate = None;
        say(why);
    }
}

impl Configuration {
    /// A configuration that was not reached yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            allocates_per_batch: settings.strategy.allocates_per_batch(),
            status: Status::NotReached,
            footprint: None,
            verified: None,
            rounds: Vec::new(),
            median: None,
            percent_of_copy: None,
            times_memcpy: None,
            staging: None,
            gpu: None,
            doubts: Vec::new(),
            shares: None,
            held_back: None,
        }
    }

    /// Whether it has numbers.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.status == Status::Measured && self.median.is_some()
    }

    fn summarise(&mut self, ceilings: Option<&Ceilings>) {
        self.median = Median::of(&self.rounds);
        self.shares = Shares::of(&self.rounds, self.settings.workers);
        self.held_back = self.shares.map(|shares| shares.held_back());
        let memcpy = ceilings.and_then(|c| c.host_memcpy_gb_s);
        self.staging = median(self.rounds.iter().filter_map(|round| round.staging_gb_s))
            .map(|gb_s| Staging { gb_s, times_memcpy: memcpy.map(|memcpy| gb_s / memcpy) });
        let copy = ceilings.and_then(|c| c.device_copy_gb_s);
        self.percent_of_copy = self.median.zip(copy).and_then(|(median, copy)| percent_of(median.gb_s, copy));
        self.times_memcpy = self.median.zip(memcpy).map(|(median, memcpy)| median.gb_s / memcpy);
    }

    /// Drops what the device's clock cannot have measured. What was dropped once stays dropped, with its reason.
    fn reject_rates(&mut self, ceilings: Option<&Ceilings>, (kernel, kernel_ceiling): (Work, Option<f64>)) {
        let Some(gpu) = &mut self.gpu else { return };
        let copy = ceilings.and_then(|c| c.device_copy_gb_s);
        let doubts = &mut self.doubts;
        take_doubtful(&mut gpu.copy_gb_s, Work::Copy, copy, |why| {
            doubts.push(format!("copies by the device's clock: {why}"))
        });
        take_doubtful(&mut gpu.kernel_gb_s, kernel, kernel_ceiling, |why| {
            doubts.push(format!("kernels by the device's clock: {why}"));
        });
        gpu.kernel_of_ceiling =
            gpu.kernel_gb_s.zip(kernel_ceiling).and_then(|(rate, ceiling)| percent_of(rate, ceiling));
    }
}

impl Median {
    fn of(rounds: &[Round]) -> Option<Self> {
        let images_s: Vec<f64> = rounds.iter().map(|round| round.images_s).collect();
        let of = |part: fn(&Round) -> f64| median(rounds.iter().map(part));
        Some(Self {
            images_s: Summary::of(&images_s)?,
            gb_s: of(|round| round.gb_s)?,
            cpu_s_per_gb: median(rounds.iter().filter_map(|round| round.cpu_s_per_gb)),
            latency: percentiles(rounds, |round| round.stats.latency)?,
            wait: percentiles(rounds, |round| round.stats.wait)?,
        })
    }
}

fn percentiles(rounds: &[Round], of: fn(&Round) -> Percentiles) -> Option<Percentiles> {
    let each = |part: fn(Percentiles) -> f64| median(rounds.iter().map(|round| part(of(round))));
    Some(Percentiles {
        p50_us: each(|p| p.p50_us)?,
        p95_us: each(|p| p.p95_us)?,
        p99_us: each(|p| p.p99_us)?,
        max_us: each(|p| p.max_us)?,
    })
}

fn median(samples: impl Iterator<Item = f64>) -> Option<f64> {
    Summary::of(&samples.collect::<Vec<_>>()).map(|summary| summary.median)
}

/// Each strategy with the settings that it is fastest with.
fn best_of_each_strategy<'a>(measured: &[&'a Configuration]) -> Vec<&'a Configuration> {
    let rate = |c: &Configuration| c.median.map_or(0.0, |median| median.images_s.median);
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
fn verdict(candidates: &[&Configuration]) -> Option<Verdict> {
    let rates: Vec<(&str, Vec<f64>)> = candidates
        .iter()
        .map(|c| (c.settings.strategy.key(), c.rounds.iter().map(|round| round.images_s).collect()))
        .collect();
    let borrowed: Vec<(&str, &[f64])> = rates.iter().map(|(name, rates)| (*name, rates.as_slice())).collect();
    let found = winner(&borrowed)?;
    let settings = |name: &str| candidates.iter().map(|c| c.settings).find(|s| s.strategy.key() == name);
    Some(Verdict {
        settings: settings(&found.name)?,
        runner_up: found.runner_up.as_deref().and_then(settings),
        ratio: found.ratio.map(|ratio| ratio.ratio),
        spread: found.ratio.map(|ratio| ratio.spread),
        rounds: found.ratio.map_or(0, |ratio| ratio.rounds),
        beyond_noise: found.beyond_noise,
    })
}

#[cfg(test)]
mod tests {
    use crate::backend::Strategy;
    use crate::measure::gpu::GpuRates;
    use crate::measure::testing::{device, measured};

    #[test]
    fn the_fastest_strategy_wins_with_its_ratio_to_the_next() {
        let mut report = device(vec![
            measured(Strategy::WriteBuffer, 64, &[100.0, 101.0, 99.0]),
            measured(Strategy::MappedRing, 64, &[200.0, 202.0, 198.0]),
        ]);
        report.summarise();
        let winner = report.winner.expect("a winner");
        assert_eq!(winner.settings.strategy, Strategy::MappedRing);
        assert_eq!(winner.runner_up.map(|s| s.strategy), Some(Strategy::WriteBuffer));
        assert_eq!((winner.ratio, winner.rounds, winner.beyond_noise), (Some(2.0), 3, true));
        assert!(report.sweep.is_empty(), "one combination of sizes is no sweep");
    }

    #[test]
    fn a_sweep_has_a_winner_for_each_combination_and_strategies_meet_at_their_best() {
        let mut report = device(vec![
            measured(Strategy::WriteBuffer, 8, &[300.0; 3]),
            measured(Strategy::MappedRing, 8, &[200.0; 3]),
            measured(Strategy::WriteBuffer, 64, &[100.0; 3]),
            measured(Strategy::MappedRing, 64, &[400.0; 3]),
        ]);
        report.summarise();
        let winners: Vec<_> = report.sweep.iter().map(|v| (v.settings.batch_size, v.settings.strategy)).collect();
        assert_eq!(winners, [(8, Strategy::WriteBuffer), (64, Strategy::MappedRing)]);
        let winner = report.winner.expect("a winner");
        assert_eq!((winner.settings.batch_size, winner.runner_up.map(|s| s.batch_size)), (64, Some(8)));
    }

    #[test]
    fn what_failed_does_not_win_and_shares_are_of_the_copy() {
        let mut fast = measured(Strategy::WriteBuffer, 64, &[900.0; 3]);
        fast.status = super::Status::Failed { message: "wrong bytes".into(), wrong_data: true };
        let mut report = device(vec![fast, measured(Strategy::MappedRing, 64, &[200.0; 3])]);
        report.ceilings[0].device_copy_gb_s = Some(0.5);
        report.summarise();
        assert_eq!(report.winner.as_ref().map(|w| w.settings.strategy), Some(Strategy::MappedRing));
        let row = &report.configurations[1];
        assert_eq!((row.percent_of_copy, row.times_memcpy), (Some(40.0), Some(0.05)));
        let staging = row.staging.expect("staging");
        assert_eq!((staging.gb_s, staging.times_memcpy), (2.0, Some(0.5)));
    }

    #[test]
    fn nothing_is_shown_above_its_ceiling() {
        let mut report = device(vec![measured(Strategy::MappedRing, 64, &[9600.0; 3])]);
        let clock =
            GpuRates { batches: 9, copy_gb_s: Some(7.9), kernel_gb_s: Some(2_028_169.0), kernel_of_ceiling: None };
        report.configurations[0].gpu = Some(clock);
        report.software = false;
        report.kernel_ceiling_gb_s = Some(3_000_000.0);
        report.summarise();
        report.summarise();
        assert_eq!(report.kernel_ceiling_gb_s, None, "the ceiling's clock is no better");
        assert!(report.kernel_ceiling_error.as_deref().is_some_and(|why| why.contains("is no measurement")));
        let row = &report.configurations[0];
        assert_eq!(
            (row.percent_of_copy, row.times_memcpy),
            (None, Some(2.4)),
            "120% of a copy, which so is no ceiling"
        );
        let gpu = row.gpu.expect("the copy is credible");
        assert_eq!((gpu.copy_gb_s, gpu.kernel_gb_s, gpu.kernel_of_ceiling), (Some(7.9), None, None));
        assert!(
            matches!(&row.doubts[..], [why] if why.contains("kernels by the device's clock: 2028169 GB/s")),
            "{row:?}"
        );
    }
}
