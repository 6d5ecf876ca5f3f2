//! What holds a loader back, in words. Pure: from its counters and options.
//!
//! In steady state every slot is being filled, waiting for its turn, or on its way to the device; whoever is slowest has them
//! all. So it shows in what the loader's own thread waits for. Source and device that wait for each other in turn lack slots between
//! them; a user who waits while the loader waits for the user lacks outputs.

mod advice;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

pub use advice::Advice;

use super::super::options::LoaderOptions;
use super::stats::{LoaderStats, Occupancy};
use crate::backend::Strategy;

/// The stage that holds a loader back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Bottleneck {
    /// There were too few batches to tell: most of the time went into getting under way.
    Startup,
    /// Reading samples.
    Source,
    /// Too few slots: source and device wait for each other in turn, and neither is busy.
    Slots,
    /// The device's copies.
    Copy,
    /// The device's kernels.
    Kernel,
    /// The device's copies or kernels: without [`timing`](LoaderOptions::timing) they cannot be told apart.
    Device,
    /// Taking staging memory, and recording and queueing copies and kernels.
    Submission,
    /// Too few outputs: nothing can be prepared while the user holds what there is.
    Outputs,
    /// Nothing: the user takes batches more slowly than they come.
    Consumer,
}

/// The shares of the time that speak for a verdict, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Evidence {
    /// The workers were reading, on average.
    pub workers: f64,
    /// The device had nothing to do while slots were being filled.
    pub source: f64,
    /// The workers had nothing to do while the device worked.
    pub device: f64,
    /// Both had something to do.
    pub either: f64,
    /// A batch was ready and no output free.
    pub consumer: f64,
    /// The loader's own thread took staging memory and submitted.
    pub submission: f64,
    /// It did something else than that or waiting: polling the device, or, on the host, being it.
    pub other: f64,
    /// The user waited in `next`.
    pub next: f64,
    /// The device copied, by its own clock.
    pub copy: Option<f64>,
    /// The device's kernels ran, by its own clock.
    pub kernel: Option<f64>,
    /// How many batches were where.
    pub occupancy: Occupancy,
}

/// What holds a loader back, why that is believed, and what to turn next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The stage.
    pub bottleneck: Bottleneck,
    /// The figures.
    pub evidence: Evidence,
    /// Which options to turn, the most promising first.
    pub advice: Vec<Advice>,
}

/// Fewer batches than this, or than twice the slots, say nothing.
const FEW: u64 = 8;
/// Source and device that each wait for the other for this share of the time lack slots.
const IN_TURN: f64 = 0.2;
/// Who is busy for this share has hardly a chance to be faster.
const BUSY: f64 = 0.8;

impl Verdict {
    /// The verdict on a loader with these counters, options and this strategy.
    #[must_use]
    pub fn of(stats: &LoaderStats, options: &LoaderOptions, strategy: Strategy) -> Self {
        let evidence = Evidence::of(stats, options.workers);
        let few = stats.batches < FEW.max(2 * options.slots as u64) || stats.active_s <= 0.0;
        let bottleneck = if few { Bottleneck::Startup } else { evidence.bottleneck(options.outputs, strategy) };
        let advice = advice::advice(bottleneck, &evidence, stats, options, strategy);
        Self { bottleneck, evidence, advice }
    }

    /// The stage and its evidence in words, without the advice.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("held back by {} ({})", self.bottleneck.describe(), self.evidence.words(self.bottleneck))
    }
}

impl Evidence {
    fn of(stats: &LoaderStats, workers: usize) -> Self {
        let share = |seconds: f64| if stats.active_s > 0.0 { (seconds / stats.active_s).clamp(0.0, 1.0) } else { 0.0 };
        let waits = &stats.waits;
        let waited = waits.source_s + waits.device_s + waits.either_s + waits.consumer_s + waits.idle_s;
        let submission = stats.begin_s + stats.submit_s;
        // Some batches' times may not have been read yet.
        let of_all =
            stats.gpu.filter(|gpu| gpu.batches > 0).map(|gpu| (gpu, stats.batches as f64 / gpu.batches as f64));
        Self {
            workers: share(stats.source_s / workers.max(1) as f64),
            source: share(waits.source_s),
            device: share(waits.device_s),
            either: share(waits.either_s),
            consumer: share(waits.consumer_s),
            submission: share(submission),
            other: share(stats.active_s - waited - submission),
            next: share(stats.next_s),
            copy: of_all.map(|(gpu, scale)| share(gpu.copy_s * scale)),
            kernel: of_all.map(|(gpu, scale)| share(gpu.kernel_s * scale)),
            occupancy: stats.occupancy(),
        }
    }

    fn bottleneck(&self, outputs: usize, strategy: Strategy) -> Bottleneck {
        let &Self { source, device, either, consumer, submission, other, .. } = self;
        let loading = source + device + either;
        // The host's kernels run on the loader's own thread.
        let (computing, submission) = match strategy {
            Strategy::Memcpy => (other, submission),
            _ => (0.0, submission + other),
        };
        let most = consumer.max(loading).max(computing).max(submission);
        if consumer == most {
            // With a single one the device works only while the user has nothing else.
            let in_turn = self.next >= IN_TURN || (outputs == 1 && self.occupancy.in_flight >= IN_TURN);
            return if in_turn { Bottleneck::Outputs } else { Bottleneck::Consumer };
        }
        if submission == most {
            return Bottleneck::Submission;
        }
        if computing == most {
            return self.of_device();
        }
        if source.min(device) >= IN_TURN {
            return Bottleneck::Slots;
        }
        if source > device || (either > device && self.workers >= BUSY) {
            return Bottleneck::Source;
        }
        self.of_device()
    }

    /// Which part of the device.
    fn of_device(&self) -> Bottleneck {
        match (self.copy, self.kernel) {
            (Some(copy), Some(kernel)) if copy >= kernel => Bottleneck::Copy,
            (Some(_), Some(_)) => Bottleneck::Kernel,
            _ => Bottleneck::Device,
        }
    }

    /// The figures that speak for it, in words.
    fn words(&self, bottleneck: Bottleneck) -> String {
        let percent = |share: f64| format!("{:.0}%", 100.0 * share);
        let &Self { workers, source, device, either, consumer, submission, other, next, .. } = self;
        match bottleneck {
            Bottleneck::Startup => "most of the time went into getting under way".to_owned(),
            Bottleneck::Source => format!(
                "the workers were reading {} of the time, and the device had nothing to do for {}",
                percent(workers),
                percent(source)
            ),
            Bottleneck::Slots => format!(
                "the device waited for the source {} of the time, the source for the device {}, and both worked {}",
                percent(source),
                percent(device),
                percent(either)
            ),
            Bottleneck::Copy | Bottleneck::Kernel | Bottleneck::Device => {
                let clock = self.copy.zip(self.kernel).map(|(copy, kernel)| {
                    format!("; by its own clock it copied {}, and its kernels ran {}", percent(copy), percent(kernel))
                });
                let busy = percent(device + either + if device + either < other { other } else { 0.0 });
                let idle = if device < 0.005 {
                    String::new()
                } else {
                    format!(", and the workers had nothing to do for {}", percent(device))
                };
                format!("batches were on the device {busy} of the time{idle}{}", clock.unwrap_or_default())
            }
            Bottleneck::Submission => format!(
                "the loader's own thread was busy {} of the time, {} of that taking memory and submitting",
                percent(submission + other),
                percent(submission / (submission + other).max(f64::MIN_POSITIVE))
            ),
            Bottleneck::Outputs => format!(
                "the loader waited for an output {} of the time, the user for a batch {}, and the device worked {}",
                percent(consumer),
                percent(next),
                percent(self.occupancy.in_flight.min(1.0))
            ),
            Bottleneck::Consumer => format!(
                "a batch was ready and no output free {} of the time, and the user waited only {}",
                percent(consumer),
                percent(next)
            ),
        }
    }
}

impl Bottleneck {
    /// What it is, in words that follow "held back by".
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Startup => "its start: there were too few batches to tell",
            Self::Source => "the source: reading samples into staging memory",
            Self::Slots => "too few slots: source and device take turns",
            Self::Copy => "the device's copies",
            Self::Kernel => "the device's kernels",
            Self::Device => "the device: its copies or its kernels",
            Self::Submission => "submission: taking staging memory, recording and queueing",
            Self::Outputs => "too few outputs: nothing is prepared while the user holds them",
            Self::Consumer => "its user: batches come faster than they are taken",
        }
    }
}

impl fmt::Display for Verdict {
    /// One sentence for the stage with its evidence, and one for each piece of advice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words())?;
        self.advice.iter().try_for_each(|advice| write!(f, "; {advice}"))
    }
}
