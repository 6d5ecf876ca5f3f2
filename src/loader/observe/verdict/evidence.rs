//! The evidence of a verdict, and the stage that it speaks for.

use serde::{Deserialize, Serialize};

use super::super::stats::{LoaderStats, Occupancy};
use super::bottleneck::Bottleneck;
use crate::backend::Strategy;

/// The shares of the time that speak for a verdict, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

/// Source and device that each wait for the other for this share of the time lack slots.
const IN_TURN: f64 = 0.2;
/// Who is busy for this share has hardly a chance to be faster.
pub(super) const BUSY: f64 = 0.8;

impl Evidence {
    pub(super) fn of(stats: &LoaderStats, workers: usize) -> Self {
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

    pub(super) fn bottleneck(&self, outputs: usize, strategy: Strategy) -> Bottleneck {
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
}
