//! What held a configuration back: where the time went, as shares of the time there was. Pure.

use serde::{Deserialize, Serialize};

use super::report::Round;

/// How busy each part of a loader was, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// The workers, reading samples and writing them into staging memory.
    pub fill: f64,
    /// The pump, taking staging memory.
    pub begin: f64,
    /// The pump, recording and queueing.
    pub submit: f64,
    /// The device: at least one batch was on its way.
    pub device: f64,
    /// The pump, wanting a slot while none was free.
    pub slot_wait: f64,
}

/// A part that can hold the others back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Reading samples and writing them into staging memory.
    Fill,
    /// Taking staging memory: allocating or mapping it.
    Begin,
    /// Recording and queueing copies and kernels.
    Submit,
    /// The device's copies and kernels.
    Device,
}

impl Part {
    /// What the part does, in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Fill => "reading samples into staging memory",
            Self::Begin => "taking staging memory (allocating, mapping)",
            Self::Submit => "submitting (copies and kernels recorded and queued)",
            Self::Device => "the device (copies and kernels)",
        }
    }
}

/// The busiest part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldBack {
    /// Which.
    pub by: Part,
    /// The share of the time it was busy.
    pub share: f64,
}

impl Shares {
    /// The shares over all rounds of a configuration; `None` without time.
    #[must_use]
    pub fn of(rounds: &[Round], workers: usize) -> Option<Self> {
        let seconds: f64 = rounds.iter().map(|round| round.seconds).sum();
        if seconds.is_nan() || seconds <= 0.0 {
            return None;
        }
        let share = |part: fn(&Round) -> f64, threads: f64| {
            (rounds.iter().map(part).sum::<f64>() / (seconds * threads)).clamp(0.0, 1.0)
        };
        Some(Self {
            fill: share(|round| round.stats.source_s, workers.max(1) as f64),
            begin: share(|round| round.stats.begin_s, 1.0),
            submit: share(|round| round.stats.submit_s, 1.0),
            // Batches overlap on the device: with one on its way at all times the sum is the whole time or more.
            device: share(|round| round.stats.gpu_s, 1.0),
            slot_wait: share(|round| round.stats.slot_wait_s, 1.0),
        })
    }

    /// The busiest part. Of equals, the device: if it always had work, nothing before it was too slow.
    #[must_use]
    pub fn held_back(&self) -> HeldBack {
        let parts = [
            (Part::Submit, self.submit),
            (Part::Begin, self.begin),
            (Part::Fill, self.fill),
            (Part::Device, self.device),
        ];
        let (by, share) =
            parts.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((Part::Device, self.device));
        HeldBack { by, share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::LoaderStats;
    use crate::measure::testing::round;

    fn shares(stats: &LoaderStats) -> Shares {
        Shares::of(&[Round { stats: *stats, seconds: 1.0, ..round(1.0) }], 2).expect("time passed")
    }

    #[test]
    fn two_workers_busy_all_the_time_hold_the_rest_back() {
        let found = shares(&LoaderStats { source_s: 1.9, begin_s: 0.1, gpu_s: 0.5, ..LoaderStats::default() });
        assert_eq!((found.fill, found.held_back().by), (0.95, Part::Fill));
    }

    #[test]
    fn a_device_with_batches_queued_up_holds_the_rest_back() {
        let found = shares(&LoaderStats { source_s: 2.0, gpu_s: 3.0, ..LoaderStats::default() });
        assert_eq!((found.device, found.held_back()), (1.0, HeldBack { by: Part::Device, share: 1.0 }));
    }

    #[test]
    fn allocating_is_told_from_submitting() {
        assert_eq!(shares(&LoaderStats { begin_s: 0.8, ..LoaderStats::default() }).held_back().by, Part::Begin);
        assert_eq!(shares(&LoaderStats { submit_s: 0.8, ..LoaderStats::default() }).held_back().by, Part::Submit);
        assert_eq!(Shares::of(&[], 1), None);
    }
}
