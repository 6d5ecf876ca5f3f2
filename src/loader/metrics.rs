//! Collects where the time goes: counters and histograms, always on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::stats::{LoaderStats, Percentiles, PumpWaits};
use crate::backend::GpuTimes;

/// What the pump waits for: see [`PumpWaits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Source,
    Device,
    Either,
    Consumer,
    Idle,
}

/// Collects [`LoaderStats`]. Each lock is taken a few times a batch and is seldom contended.
#[derive(Debug)]
pub(super) struct Metrics {
    pump: Mutex<PumpSide>,
    user: Mutex<UserSide>,
    /// Nanoseconds that batches were held; they may outlive the loader.
    held: Arc<AtomicU64>,
}

#[derive(Debug)]
struct PumpSide {
    source: Duration,
    fill: Duration,
    filled: Duration,
    begin: Duration,
    slot_wait: Duration,
    submit: Duration,
    gpu: Duration,
    waits: [Duration; 5],
    /// Of all batches, and of those before the reset.
    gpu_times: Option<GpuTimes>,
    gpu_before: GpuTimes,
    latency: Histogram<u64>,
}

#[derive(Debug)]
struct UserSide {
    batches: u64,
    samples: u64,
    bytes: u64,
    errors: u64,
    ready_at_once: u64,
    delivered: Duration,
    next: Duration,
    active: Duration,
    /// The epoch under way, and since when.
    under_way: Option<(Instant, u64)>,
    wait: Histogram<u64>,
}

/// When a submitted batch passed its stages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub(super) epoch: u64,
    pub(super) number: u64,
    /// `None` where there are none.
    pub(super) slot: Option<usize>,
    pub(super) begun: Instant,
    /// The first worker could start, and the last one had ended.
    pub(super) handed_out: Instant,
    pub(super) ended: Instant,
    /// It was sent between these.
    pub(super) sent: Instant,
    pub(super) submitted: Instant,
}

impl Metrics {
    pub(super) fn new() -> Self {
        Self { pump: Mutex::new(PumpSide::new()), user: Mutex::new(UserSide::new()), held: Arc::default() }
    }

    /// Where the time that batches are held is counted.
    pub(super) fn held(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.held)
    }

    pub(super) fn begun(&self, time: Duration, slot_wait: Option<Duration>) {
        let mut pump = lock(&self.pump);
        pump.begin += time;
        pump.slot_wait += slot_wait.unwrap_or_default();
    }

    pub(super) fn submitted(&self, source: Duration, passage: &Passage) {
        let mut pump = lock(&self.pump);
        pump.source += source;
        pump.fill += passage.ended - passage.handed_out;
        pump.filled += passage.sent - passage.ended;
        pump.submit += passage.submitted - passage.sent;
    }

    pub(super) fn finished(&self, passage: &Passage, now: Instant) {
        let mut pump = lock(&self.pump);
        pump.gpu += now - passage.submitted;
        pump.latency.saturating_record(nanoseconds(now - passage.begun));
    }

    pub(super) fn waited(&self, cause: Cause, time: Duration) {
        lock(&self.pump).waits[cause as usize] += time;
    }

    /// What the device's clock has measured of all batches of its lane.
    pub(super) fn gpu(&self, times: Option<GpuTimes>) {
        lock(&self.pump).gpu_times = times;
    }

    /// `now` is when the user got the batch.
    pub(super) fn delivered(&self, samples: usize, bytes: usize, wait: Duration, queued: Duration, at_once: bool) {
        let mut user = lock(&self.user);
        user.batches += 1;
        user.samples += samples as u64;
        user.bytes += bytes as u64;
        user.ready_at_once += u64::from(at_once);
        user.next += wait;
        user.delivered += queued;
        user.wait.saturating_record(nanoseconds(wait));
    }

    pub(super) fn failed(&self) {
        lock(&self.user).errors += 1;
    }

    /// An epoch is under way.
    pub(super) fn started(&self, epoch: u64) {
        let mut user = lock(&self.user);
        // One that was forgotten ends here.
        user.end_epoch();
        user.under_way = Some((Instant::now(), epoch));
    }

    /// None is, any more.
    pub(super) fn ended(&self) {
        lock(&self.user).end_epoch();
    }

    pub(super) fn epoch(&self) -> Option<u64> {
        lock(&self.user).under_way.map(|(_, epoch)| epoch)
    }

    pub(super) fn reset(&self) {
        let (mut pump, mut user) = (lock(&self.pump), lock(&self.user));
        let (times, under_way) = (pump.gpu_times, user.under_way.map(|(_, epoch)| (Instant::now(), epoch)));
        *pump = PumpSide { gpu_times: times, gpu_before: times.unwrap_or_default(), ..PumpSide::new() };
        *user = UserSide { under_way, ..UserSide::new() };
        self.held.store(0, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> LoaderStats {
        let (pump, user) = (lock(&self.pump), lock(&self.user));
        let active = user.active + user.under_way.map(|(since, _)| since.elapsed()).unwrap_or_default();
        LoaderStats {
            batches: user.batches,
            samples: user.samples,
            bytes: user.bytes,
            errors: user.errors,
            skipped: 0,
            substituted: 0,
            active_s: active.as_secs_f64(),
            source_s: pump.source.as_secs_f64(),
            fill_s: pump.fill.as_secs_f64(),
            filled_s: pump.filled.as_secs_f64(),
            begin_s: pump.begin.as_secs_f64(),
            slot_wait_s: pump.slot_wait.as_secs_f64(),
            submit_s: pump.submit.as_secs_f64(),
            gpu_s: pump.gpu.as_secs_f64(),
            delivered_s: user.delivered.as_secs_f64(),
            held_s: Duration::from_nanos(self.held.load(Ordering::Relaxed)).as_secs_f64(),
            next_s: user.next.as_secs_f64(),
            waits: pump.waits(),
            gpu: pump.gpu(),
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
            filled: Duration::ZERO,
            begin: Duration::ZERO,
            slot_wait: Duration::ZERO,
            submit: Duration::ZERO,
            gpu: Duration::ZERO,
            waits: [Duration::ZERO; 5],
            gpu_times: None,
            gpu_before: GpuTimes::default(),
            latency: histogram(),
        }
    }

    fn waits(&self) -> PumpWaits {
        let of = |cause: Cause| self.waits[cause as usize].as_secs_f64();
        PumpWaits {
            source_s: of(Cause::Source),
            device_s: of(Cause::Device),
            either_s: of(Cause::Either),
            consumer_s: of(Cause::Consumer),
            idle_s: of(Cause::Idle),
        }
    }

    /// The device's times since the reset.
    fn gpu(&self) -> Option<GpuTimes> {
        let (now, before) = (self.gpu_times?, self.gpu_before);
        Some(GpuTimes {
            copy_s: (now.copy_s - before.copy_s).max(0.0),
            kernel_s: (now.kernel_s - before.kernel_s).max(0.0),
            batches: now.batches.saturating_sub(before.batches),
        })
    }
}

impl UserSide {
    fn new() -> Self {
        Self {
            batches: 0,
            samples: 0,
            bytes: 0,
            errors: 0,
            ready_at_once: 0,
            delivered: Duration::ZERO,
            next: Duration::ZERO,
            active: Duration::ZERO,
            under_way: None,
            wait: histogram(),
        }
    }

    fn end_epoch(&mut self) {
        if let Some((since, _)) = self.under_way.take() {
            self.active += since.elapsed();
        }
    }
}

/// Nanoseconds from 100 ns to 1000 s, to 1%: of fixed size.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 1_000_000_000_000, 2).expect("constant bounds are valid")
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
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
