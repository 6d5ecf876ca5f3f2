//! What is to be compared on one device, and how its time is divided. Pure.

use std::time::Duration;

use super::report::Settings;
use super::stats::MIN_ROUNDS;
use crate::loader::LoaderOptions;

/// More rounds than this say nothing more.
const MAX_ROUNDS: usize = 60;
/// The usual number.
const ROUNDS: usize = 5;
/// Longer rounds say nothing more either, and meet more of a machine's drift at once.
const LONGEST_ROUND: Duration = Duration::from_secs(5);
/// The time that verifying one configuration gets at most.
const MAX_VERIFYING: Duration = Duration::from_secs(2);

/// A comparison on one device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// What to compare.
    pub settings: Vec<Settings>,
    /// Every other option of the loaders.
    pub base: LoaderOptions,
    /// How long the parts take.
    pub timing: Timing,
    /// Loaders stay open between their rounds if all of them together take no more than this.
    pub hold_bytes: u64,
}

impl Plan {
    /// A comparison that takes about `budget`, of which as much as can be is spent on timed rounds.
    #[must_use]
    pub fn new(settings: Vec<Settings>, base: LoaderOptions, budget: Duration) -> Self {
        let timing = Timing::within(budget, settings.len());
        Self { settings, base, timing, hold_bytes: hold_bytes() }
    }
}

/// How long the parts of a comparison take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// After this long no further round begins, once there are [`MIN_ROUNDS`]; after three times as long none at all.
    pub budget: Duration,
    /// How many rounds there are at most.
    pub rounds: usize,
    /// Verifying one configuration takes this long, or as long as its fewest batches need.
    pub verify: Duration,
    /// One configuration is timed for this long in each round, or as long as its fewest batches need.
    pub slice: Duration,
    /// The staging step of one configuration is timed for this long in each round; with zero it is not.
    pub staging: Duration,
    /// Each ceiling, and the device's own clock, is measured for this long at a time; with zero they are not.
    pub ceiling: Duration,
}

impl Timing {
    /// Divides `budget` among `configurations`.
    #[must_use]
    pub fn within(budget: Duration, configurations: usize) -> Self {
        let each = budget / u32::try_from(configurations.max(1)).unwrap_or(u32::MAX);
        let verify = (each / 6).min(MAX_VERIFYING);
        // Beside the slices: loaders are opened and warmed up, last batches read back, ceilings measured.
        let timed = (each - verify) * 2 / 3;
        let rounds = usize::try_from(timed.as_millis() / 1250).unwrap_or(MAX_ROUNDS).clamp(ROUNDS, MAX_ROUNDS);
        let round = (timed / u32::try_from(rounds).unwrap_or(1)).min(LONGEST_ROUND);
        let staging = round / 5;
        Self { budget, rounds, verify, slice: round - staging, staging, ceiling: round.min(Duration::from_millis(100)) }
    }

    /// This many rounds of this length, and nothing beside them: to be measured in turn with another process.
    #[must_use]
    pub const fn rounds_only(rounds: usize, slice: Duration, verify: Duration) -> Self {
        // Waiting for the other process counts, so that time does not end it.
        Self { budget: Duration::MAX, rounds, verify, slice, staging: Duration::ZERO, ceiling: Duration::ZERO }
    }

    /// Whether another round begins.
    #[must_use]
    pub fn goes_on(&self, rounds: usize, elapsed: Duration) -> bool {
        let most = if rounds < MIN_ROUNDS { self.budget.saturating_mul(3) } else { self.budget };
        rounds == 0 || (rounds < self.rounds && elapsed < most)
    }
}

/// An eighth of the memory there is, and no more than 2 GiB: what is open but idle should not be in the way.
fn hold_bytes() -> u64 {
    super::host_memory::available_memory().map_or(256 << 20, |bytes| (bytes / 8).min(2 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_fits_its_budget() {
        for (seconds, configurations) in [(2, 1), (15, 6), (60, 6), (600, 40), (3600, 2), (1, 0)] {
            let budget = Duration::from_secs(seconds);
            let Timing { rounds, verify, slice, staging, .. } = Timing::within(budget, configurations);
            let each = verify + (slice + staging) * u32::try_from(rounds).expect("few");
            assert!(each * u32::try_from(configurations).expect("few") <= budget, "{seconds} s, {configurations}");
            assert!((ROUNDS..=MAX_ROUNDS).contains(&rounds) && slice > staging);
        }
    }

    #[test]
    fn rounds_go_on_until_there_are_enough_or_far_too_late() {
        let timing = Timing::within(Duration::from_secs(10), 2);
        let after = |rounds, seconds| timing.goes_on(rounds, Duration::from_secs(seconds));
        assert!(after(0, 1000), "there is always one");
        assert!(after(2, 20) && !after(2, 31));
        assert!(after(3, 9) && !after(3, 11));
        assert!(!after(timing.rounds, 0));
    }
}
