//! What follows from the samples of a report: medians, shares of the ceilings, winners. Pure.

use super::limits::Shares;
use super::report::{
    Ceiling, Ceilings, Configuration, DeviceReport, Median, Round, Settings, Share, Staging, Status, Verdict,
};
use super::stats::{Summary, winner};
use crate::backend::Strategy;
use crate::loader::Percentiles;

impl DeviceReport {
    /// Computes everything that is derived from the rounds and the ceilings anew.
    pub fn summarise(&mut self) {
        for ceilings in &mut self.ceilings {
            ceilings.host_memcpy_gb_s = median(ceilings.host_memcpy_samples.iter().copied());
        }
        for configuration in &mut self.configurations {
            let sizes = configuration.settings;
            let ceilings =
                self.ceilings.iter().find(|c| (c.batch_size, c.workers) == (sizes.batch_size, sizes.workers));
            configuration.summarise(ceilings);
            if let Some(gpu) = &mut configuration.gpu {
                let share = gpu.kernel_gb_s.zip(self.kernel_ceiling_gb_s);
                gpu.kernel_of_ceiling = share.map(|(rate, ceiling)| 100.0 * rate / ceiling);
            }
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
            share_of_ceiling: None,
            staging: None,
            gpu: None,
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
            .map(|gb_s| Staging { gb_s, of_memcpy: memcpy.map(|memcpy| gb_s / memcpy) });
        self.share_of_ceiling = self
            .median
            .zip(ceilings)
            .and_then(|(median, ceilings)| share(median.gb_s, ceilings, self.settings.strategy));
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

/// The share of the lower ceiling, and which that is.
fn share(gb_s: f64, ceilings: &Ceilings, strategy: Strategy) -> Option<Share> {
    // Where the device reads the source by itself the CPU copies nothing.
    let memcpy = ceilings.host_memcpy_gb_s.filter(|_| !strategy.is_direct());
    let known = [(memcpy, Ceiling::HostMemcpy), (ceilings.device_copy_gb_s, Ceiling::DeviceCopy)];
    let (lowest, of) = known
        .into_iter()
        .filter_map(|(rate, of)| rate.filter(|rate| *rate > 0.0).map(|rate| (rate, of)))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some(Share { percent: 100.0 * gb_s / lowest, of })
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
    use crate::measure::report::Ceiling;
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
    fn what_failed_does_not_win_and_the_lower_ceiling_binds() {
        let mut fast = measured(Strategy::WriteBuffer, 64, &[900.0; 3]);
        fast.status = super::Status::Failed { message: "wrong bytes".into(), wrong_data: true };
        let mut report = device(vec![fast, measured(Strategy::MappedRing, 64, &[200.0; 3])]);
        report.ceilings[0].device_copy_gb_s = Some(0.5);
        report.summarise();
        assert_eq!(report.winner.as_ref().map(|w| w.settings.strategy), Some(Strategy::MappedRing));
        let share = report.configurations[1].share_of_ceiling.expect("a share");
        assert_eq!((share.of, share.percent), (Ceiling::DeviceCopy, 40.0));
        let staging = report.configurations[1].staging.expect("staging");
        assert_eq!((staging.gb_s, staging.of_memcpy), (2.0, Some(0.5)));
    }
}
