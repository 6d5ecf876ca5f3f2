//! What a loader has done and where the time went: plain figures, and what follows from them.

use serde::{Deserialize, Serialize};

use crate::backend::GpuTimes;

/// Percentiles of a duration, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// Half are at most this long.
    pub p50_us: f64,
    /// 95 in 100 are at most this long.
    pub p95_us: f64,
    /// 99 in 100 are at most this long.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// What the loader's own thread waited for while it had nothing to do, in seconds. While it works, or no epoch is under way, it
/// waits for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PumpWaits {
    /// Slots were being filled, and the device had nothing to do.
    pub source_s: f64,
    /// The device had work, and the workers had none: every slot was on its way, or every output.
    pub device_s: f64,
    /// Slots were being filled while the device worked: as it should be.
    pub either_s: f64,
    /// A batch could have been sent, and no output was free: the user held them, or had not taken what was ready.
    pub consumer_s: f64,
    /// The epoch had nothing more to begin, and its last batches were on their way.
    pub idle_s: f64,
}

/// How many batches were where, on average over the time that epochs were under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Occupancy {
    /// Slots being filled, or waiting for a worker.
    pub filling: f64,
    /// Slots that were filled and not yet sent.
    pub filled: f64,
    /// Batches on their way: sent, and not yet seen to have ended.
    pub in_flight: f64,
    /// Batches delivered and not yet taken by the user.
    pub delivered: f64,
    /// Batches in the user's hands.
    pub held: f64,
}

/// What a loader has done since it was made or [reset](super::super::Loader::reset_stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoaderStats {
    /// Batches delivered to the user.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Bytes of those samples as the source delivered them.
    pub bytes: u64,
    /// Errors delivered to the user.
    pub errors: u64,
    /// Samples left out because they could not be read, since the loader was made: a reset does not forget them.
    pub skipped: u64,
    /// Samples that took another's place because that could not be read, since the loader was made.
    pub substituted: u64,
    /// Time an epoch was under way, in seconds.
    pub active_s: f64,
    /// Time the workers spent reading samples and writing them into staging memory, summed over workers, in seconds.
    pub source_s: f64,
    /// Time from the first worker's start to the last one's end, summed over batches, in seconds.
    pub fill_s: f64,
    /// Time from there until the batch was sent, summed over batches, in seconds: it waited for its turn, or for an output.
    pub filled_s: f64,
    /// Time spent taking staging memory, in seconds: allocating, for strategies that do so for every batch.
    pub begin_s: f64,
    /// Time the loader wanted a slot and every one was in use by the device, in seconds.
    pub slot_wait_s: f64,
    /// Time spent recording and queueing copies and kernels, in seconds.
    pub submit_s: f64,
    /// Time from a submission to its end as seen by the CPU, summed over batches, in seconds.
    pub gpu_s: f64,
    /// Time from a submission until the user took the batch, summed over batches, in seconds.
    pub delivered_s: f64,
    /// Time batches were in the user's hands, summed over those that came back, in seconds.
    pub held_s: f64,
    /// Time the user spent inside `next`, in seconds.
    pub next_s: f64,
    /// What the loader's own thread waited for.
    pub waits: PumpWaits,
    /// What the device's own clock measured; `None` unless the loader was made with [`timing`](super::super::LoaderOptions::timing), and
    /// where the device has no clock to be believed.
    pub gpu: Option<GpuTimes>,
    /// From the start of a batch's fill to its tensor ready on the device.
    pub latency: Percentiles,
    /// Time inside `next`.
    pub wait: Percentiles,
    /// Calls of `next` that found a batch ready.
    pub ready_at_once: u64,
}

impl LoaderStats {
    /// Time the CPU spent on staging, summed over batches: taking memory, filling and submitting.
    #[must_use]
    pub fn staging_s(&self) -> f64 {
        self.begin_s + self.fill_s + self.submit_s
    }

    /// The share of `next` calls that found a batch ready.
    #[must_use]
    pub fn data_readiness(&self) -> f64 {
        let calls = self.batches + self.errors;
        if calls == 0 { 0.0 } else { self.ready_at_once as f64 / calls as f64 }
    }

    /// How many batches were where on average: the time they spent there, over the time there was (Little's law).
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        let mean = |seconds: f64| if self.active_s > 0.0 { seconds / self.active_s } else { 0.0 };
        Occupancy {
            filling: mean(self.fill_s),
            filled: mean(self.filled_s),
            in_flight: mean(self.gpu_s),
            delivered: mean(self.delivered_s),
            held: mean(self.held_s),
        }
    }
}
