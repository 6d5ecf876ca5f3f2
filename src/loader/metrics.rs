//! Where the time goes: counters and histograms, always on.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Percentiles of a duration, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// What a loader has done since it was made or [reset](super::Loader::reset_stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub skipped: u64,
    /// Samples that took another's place because that could not be read, since the loader was made.
    #[serde(default)]
    pub substituted: u64,
    /// Time the workers spent reading samples and writing them into staging memory, summed over workers, in seconds.
    pub source_s: f64,
    /// Time from the first worker's start to the last one's end, summed over batches, in seconds.
    pub fill_s: f64,
    /// Time spent taking staging memory, in seconds: allocating, for strategies that do so for every batch.
    pub begin_s: f64,
    /// Time the loader wanted a slot and every one was in use by the device, in seconds.
    pub slot_wait_s: f64,
    /// Time spent recording and queueing copies and kernels, in seconds.
    pub submit_s: f64,
    /// Time from a submission to its end as seen by the CPU, summed over batches, in seconds.
    pub gpu_s: f64,
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
}

/// Collects [`LoaderStats`]. Each lock is taken about once a batch and is seldom contended.
#[derive(Debug)]
pub(super) struct Metrics {
    pump: Mutex<PumpSide>,
    user: Mutex<UserSide>,
}

#[derive(Debug)]
struct PumpSide {
    source: Duration,
    fill: Duration,
    begin: Duration,
    slot_wait: Duration,
    submit: Duration,
    gpu: Duration,
    latency: Histogram<u64>,
}

#[derive(Debug)]
struct UserSide {
    batches: u64,
    samples: u64,
    bytes: u64,
    errors: u64,
    ready_at_once: u64,
    wait: Histogram<u64>,
}

/// When a submitted batch passed its stages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub(super) begun: Instant,
    pub(super) submitted: Instant,
}

impl Metrics {
    pub(super) fn new() -> Self {
        Self { pump: Mutex::new(PumpSide::new()), user: Mutex::new(UserSide::new()) }
    }

    pub(super) fn begun(&self, time: Duration, slot_wait: Option<Duration>) {
        let mut pump = lock(&self.pump);
        pump.begin += time;
        pump.slot_wait += slot_wait.unwrap_or_default();
    }

    pub(super) fn submitted(&self, source: Duration, fill: Duration, submit: Duration) {
        let mut pump = lock(&self.pump);
        pump.source += source;
        pump.fill += fill;
        pump.submit += submit;
    }

    pub(super) fn finished(&self, passage: Passage, now: Instant) {
        let mut pump = lock(&self.pump);
        pump.gpu += now - passage.submitted;
        pump.latency.saturating_record(nanoseconds(now - passage.begun));
    }

    pub(super) fn delivered(&self, samples: usize, bytes: usize, wait: Duration, ready_at_once: bool) {
        let mut user = lock(&self.user);
        user.batches += 1;
        user.samples += samples as u64;
        user.bytes += bytes as u64;
        user.ready_at_once += u64::from(ready_at_once);
        user.wait.saturating_record(nanoseconds(wait));
    }

    pub(super) fn failed(&self) {
        lock(&self.user).errors += 1;
    }

    pub(super) fn reset(&self) {
        *lock(&self.pump) = PumpSide::new();
        *lock(&self.user) = UserSide::new();
    }

    pub(super) fn snapshot(&self) -> LoaderStats {
        let (pump, user) = (lock(&self.pump), lock(&self.user));
        LoaderStats {
            batches: user.batches,
            samples: user.samples,
            bytes: user.bytes,
            errors: user.errors,
            skipped: 0,
            substituted: 0,
            source_s: pump.source.as_secs_f64(),
            fill_s: pump.fill.as_secs_f64(),
            begin_s: pump.begin.as_secs_f64(),
            slot_wait_s: pump.slot_wait.as_secs_f64(),
            submit_s: pump.submit.as_secs_f64(),
            gpu_s: pump.gpu.as_secs_f64(),
            latency: percentiles(&pump.latency),
            wait: percentiles(&user.wait),
            ready_at_once: user.ready_at_once,
        }
    }
}

impl PumpSide {
    fn new() -> Self {
        Self {
            source: Duration::ZERO,
            fill: Duration::ZERO,
            begin: Duration::ZERO,
            slot_wait: Duration::ZERO,
            submit: Duration::ZERO,
            gpu: Duration::ZERO,
            latency: histogram(),
        }
    }
}

impl UserSide {
    fn new() -> Self {
        Self { batches: 0, samples: 0, bytes: 0, errors: 0, ready_at_once: 0, wait: histogram() }
    }
}

/// Nanoseconds from 100 ns to 1000 s, to 1%: of fixed size.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 1_000_000_000_000, 2).expect("constant bounds are valid")
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn percentiles(histogram: &Histogram<u64>) -> Percentiles {
    if histogram.is_empty() {
        return Percentiles::default();
    }
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
    Percentiles { p50_us: at(0.50), p95_us: at(0.95), p99_us: at(0.99), max_us: histogram.max() as f64 / 1e3 }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
