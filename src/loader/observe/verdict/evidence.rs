//! The evidence of a verdict, and the stage that it speaks for.

use serde::{Deserialize, Serialize};

use super::super::stats::{LoaderStats, Occupancy};
use super::beside::Beside;
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
    /// The user's own work ran on the device, by how long it takes alone; `None` where nobody has measured it.
    #[serde(default)]
    pub compute: Option<f64>,
    /// How much of what could be hidden behind that work was; `None` where nobody has measured it.
    #[serde(default)]
    pub hidden: Option<f64>,
    /// How many batches were where.
    pub occupancy: Occupancy,
}

/// Source and device that each wait for the other for this share of the time lack slots.
const IN_TURN: f64 = 0.2;
/// Who is busy for this share has hardly a chance to be faster.
pub(super) const BUSY: f64 = 0.8;
/// Of what is hidden, less than this is not.
const HIDDEN: f64 = 0.5;
/// A device that is waited for all the time, and works for the loader less than this share of it, works for somebody else.
const OWN_WORK: f64 = 0.7;

impl Evidence {
    pub(super) fn of(stats: &LoaderStats, workers: usize, beside: Beside) -> Self {
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
            compute: beside.compute_s.map(|seconds| share(seconds * stats.batches as f64)),
            hidden: beside.hidden,
            occupancy: stats.occupancy(),
        }
    }

    /// What a device that is the bottleneck works at: for its user, in turn with its user, or for the loader. `could_hide`: whether copies
    /// could be hidden that are not.
    pub(super) fn beside_the_user(&self, device: Bottleneck, could_hide: bool) -> Bottleneck {
        let user_alone =
            self.compute.is_some_and(|compute| compute >= BUSY) && self.hidden.is_none_or(|hidden| hidden >= HIDDEN);
        if user_alone {
            return Bottleneck::Consumer;
        }
        let take_turns = match (self.hidden, self.copy.zip(self.kernel)) {
            (Some(hidden), _) => hidden < HIDDEN,
            (None, Some((copy, kernel))) => could_hide && self.device + self.either >= BUSY && copy + kernel < OWN_WORK,
            (None, None) => false,
        };
        if take_turns { Bottleneck::NotHidden } else { device }
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
