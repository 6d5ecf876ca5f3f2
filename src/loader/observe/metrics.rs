//! Collects where the time goes: counters and histograms, always on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::distribution::Distribution;
use super::stats::{LoaderStats, Percentiles, PumpWaits};
use crate::backend::GpuTimes;

/// What the pump waits for: see [`PumpWaits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Source,
    Device,
    Either,
    Consumer,
    Idle,
}

/// Collects [`LoaderStats`].
///
/// The pump's counters are written by the pump alone, and a reset only notes what they were: so they need no lock. What does is
/// locked once a batch, and seldom contended.
#[derive(Debug)]
pub struct Metrics {
    /// Nanoseconds.
    pump: [AtomicU64; Of::COUNT],
    device: Mutex<DeviceSide>,
    user: Mutex<UserSide>,
    /// Nanoseconds that batches were held; they may outlive the loader.
    held: Arc<AtomicU64>,
}

/// The pump's counters.
#[derive(Clone, Copy)]
enum Of {
    Source,
    Fill,
    Filled,
    Begin,
    SlotWait,
    Submit,
    Gpu,
    /// As many as there are causes.
    Waits,
}

impl Of {
    const COUNT: usize = Self::Waits as usize + 5;
}

#[derive(Debug)]
struct DeviceSide {
    latency: Histogram<u64>,
    gpu: Option<GpuTimes>,
    /// What was counted before the reset.
    gpu_before: GpuTimes,
    pump_before: [u64; Of::COUNT],
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
pub struct BatchTimestamps {
    pub epoch: u64,
    pub number: u64,
    /// `None` where there are none.
    pub slot: Option<usize>,
    pub begun: Instant,
    /// The first worker could start, and the last one had ended.
    pub handed_out: Instant,
    pub ended: Instant,
    /// It was sent between these.
    pub sent: Instant,
    pub submitted: Instant,
}

impl Metrics {
    pub fn new() -> Self {
        let device = DeviceSide {
            latency: histogram(),
            gpu: None,
            gpu_before: GpuTimes::default(),
            pump_before: [0; Of::COUNT],
        };
        Self {
            pump: std::array::from_fn(|_| AtomicU64::new(0)),
            device: Mutex::new(device),
            user: Mutex::new(UserSide::new()),
            held: Arc::default(),
        }
    }

    /// Where the time that batches are held is counted.
    pub fn held(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.held)
    }

    /// Only the pump adds, so that nothing is lost between reading and writing.
    fn add(&self, counter: usize, time: Duration) {
        let counter = &self.pump[counter];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(nanoseconds(time)), Ordering::Relaxed);
    }

    pub fn begun(&self, time: Duration, slot_wait: Option<Duration>) {
        self.add(Of::Begin as usize, time);
        self.add(Of::SlotWait as usize, slot_wait.unwrap_or_default());
    }

    pub fn submitted(&self, source: Duration, times: &BatchTimestamps) {
        self.add(Of::Source as usize, source);
        self.add(Of::Fill as usize, times.ended - times.handed_out);
        self.add(Of::Filled as usize, times.sent - times.ended);
        self.add(Of::Submit as usize, times.submitted - times.sent);
    }

    pub fn finished(&self, times: &BatchTimestamps, now: Instant) {
        self.add(Of::Gpu as usize, now - times.submitted);
        lock(&self.device).latency.saturating_record(nanoseconds(now - times.begun));
    }

    pub fn waited(&self, cause: Cause, time: Duration) {
        self.add(Of::Waits as usize + cause as usize, time);
    }

    /// What the device's clock has measured of all batches of its lane.
    pub fn gpu(&self, times: Option<GpuTimes>) {
        lock(&self.device).gpu = times;
    }

    pub fn delivered(&self, samples: usize, bytes: usize, wait: Duration, queued: Duration, at_once: bool) {
        let mut user = lock(&self.user);
        user.batches += 1;
        user.samples += samples as u64;
        user.bytes += bytes as u64;
        user.ready_at_once += u64::from(at_once);
        user.next += wait;
        user.delivered += queued;
        user.wait.saturating_record(nanoseconds(wait));
    }

    pub fn failed(&self) {
        lock(&self.user).errors += 1;
    }

    /// An epoch is under way.
    pub fn started(&self, epoch: u64) {
        let mut user = lock(&self.user);
        // One that was forgotten ends here.
        user.end_epoch();
        user.under_way = Some((Instant::now(), epoch));
    }

    /// None is, any more.
    pub fn ended(&self) {
        lock(&self.user).end_epoch();
    }

    pub fn epoch(&self) -> Option<u64> {
        lock(&self.user).under_way.map(|(_, epoch)| epoch)
    }

    pub fn reset(&self) {
        let (mut device, mut user) = (lock(&self.device), lock(&self.user));
        let under_way = user.under_way.map(|(_, epoch)| (Instant::now(), epoch));
        *user = UserSide { under_way, ..UserSide::new() };
        device.latency.reset();
        device.gpu_before = device.gpu.unwrap_or_default();
        device.pump_before = self.counters();
        self.held.store(0, Ordering::Relaxed);
    }

    /// From the start of a batch's fill to its tensor ready on the device, since the reset.
    pub fn latencies(&self) -> Distribution {
        Distribution::of(&lock(&self.device).latency)
    }

    fn counters(&self) -> [u64; Of::COUNT] {
        self.pump.each_ref().map(|counter| counter.load(Ordering::Relaxed))
    }

    pub fn snapshot(&self) -> LoaderStats {
        let (device, user) = (lock(&self.device), lock(&self.user));
        let active = user.active + user.under_way.map(|(since, _)| since.elapsed()).unwrap_or_default();
        let (now, before) = (self.counters(), device.pump_before);
        let since = |counter: usize| Duration::from_nanos(now[counter].wrapping_sub(before[counter])).as_secs_f64();
        let waits = |cause: Cause| since(Of::Waits as usize + cause as usize);
        LoaderStats {
            batches: user.batches,
            samples: user.samples,
            bytes: user.bytes,
            errors: user.errors,
            skipped: 0,
            substituted: 0,
            active_s: active.as_secs_f64(),
            source_s: since(Of::Source as usize),
            fill_s: since(Of::Fill as usize),
            filled_s: since(Of::Filled as usize),
            begin_s: since(Of::Begin as usize),
            slot_wait_s: since(Of::SlotWait as usize),
            submit_s: since(Of::Submit as usize),
            gpu_s: since(Of::Gpu as usize),
            delivered_s: user.delivered.as_secs_f64(),
            held_s: Duration::from_nanos(self.held.load(Ordering::Relaxed)).as_secs_f64(),
            next_s: user.next.as_secs_f64(),
            waits: PumpWaits {
                source_s: waits(Cause::Source),
                device_s: waits(Cause::Device),
                either_s: waits(Cause::Either),
                consumer_s: waits(Cause::Consumer),
                idle_s: waits(Cause::Idle),
            },
            gpu: device.gpu(),
            latency: percentiles(&device.latency),
            wait: percentiles(&user.wait),
            ready_at_once: user.ready_at_once,
        }
    }
}

impl DeviceSide {
    /// The device's times since the reset.
    fn gpu(&self) -> Option<GpuTimes> {
        Some(self.gpu?.since(self.gpu_before))
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

pub fn nanoseconds(duration: Duration) -> u64 {
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
