//! A record of what ran when, for a timeline viewer: Perfetto (ui.perfetto.dev) or `chrome://tracing`.
//!
//! One track for each worker, one for each slot, one for the loader's own thread, one for the user's waits, and one each for
//! the device's copies and kernels where it has a clock. The device's clock is aligned by the moments at which the CPU saw
//! batches end: no span ends later than that, and the closest one says where the clocks meet.

mod json;

use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::metrics::{BatchTimestamps, Cause, nanoseconds};
use crate::backend::GpuSpan;

/// Records the work of loaders: give it to them as [`LoaderOptions::trace`](super::super::LoaderOptions::trace), and
/// [`write`](Self::write) it afterwards. Several loaders, of several devices, may share one.
///
/// ```
/// # use std::sync::Arc;
/// # use gpufeed::{Loader, LoaderOptions, SampleLayout, SyntheticSource, Trace, backend::host::HostBackend};
/// let trace = Arc::new(Trace::with_capacity(10_000));
/// let options = LoaderOptions { trace: Some(Arc::clone(&trace)), ..LoaderOptions::default() };
/// let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 1000));
/// let mut loader = Loader::new(&HostBackend::new(), source, options)?;
/// loader.epoch(0).try_for_each(|batch| batch.map(drop))?;
/// drop(loader);
/// let mut file = Vec::new();
/// trace.write(&mut file)?;
/// assert!(file.starts_with(b"{\"displayTimeUnit\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Trace {
    zero: Instant,
    most: usize,
    /// Events that there is still room for.
    left: AtomicUsize,
    dropped: AtomicU64,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// One a thread that records: none waits for another.
    buffers: Vec<Arc<Mutex<Buffer>>>,
    loaders: Vec<Arc<Traced>>,
}

/// One thread's events. Full chunks stay where they are.
#[derive(Debug, Default)]
struct Buffer {
    full: Vec<Vec<Event>>,
    open: Vec<Event>,
}

/// Events of a chunk, for which a buffer asks at once.
const CHUNK: usize = 512;

/// One loader.
#[derive(Debug)]
struct Traced {
    name: String,
    /// What the device's clock is behind the trace's, in nanoseconds, at most; [`i64::MAX`] if it never told.
    behind: AtomicI64,
}

/// Something that took a while.
#[derive(Clone, Copy, Debug)]
struct Event {
    loader: u32,
    track: Track,
    what: What,
    /// In nanoseconds, of the trace's clock; of the device's for [`What::Copy`] and [`What::Kernel`].
    start: u64,
    end: u64,
    epoch: u64,
    batch: u64,
    /// The first sample of a run within its batch, and how many.
    run: (u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    Next,
    Pump,
    Copy,
    Kernel,
    Worker(u32),
    Slot(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Next,
    Begin,
    Submit,
    Wait(Cause),
    Read,
    Filling,
    Filled,
    InFlight,
    Copy,
    Kernel,
}

impl Default for Trace {
    /// A million events: some hundred thousand batches, in 60 MB once they are there.
    fn default() -> Self {
        Self::with_capacity(1 << 20)
    }
}

impl Trace {
    /// A trace with room for so many events. A batch takes six to nine, and one for each worker that has a part in it. Threads take
    /// room in chunks, so that a few places may stay empty while others find none. What does not fit is dropped and counted.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        Self {
            zero: Instant::now(),
            most: events,
            left: AtomicUsize::new(events),
            dropped: AtomicU64::new(0),
            shared: Mutex::default(),
        }
    }

    /// The number of events it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.shared).buffers.iter().map(|buffer| lock(buffer).len()).sum()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of events that found no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Adds a loader, called by this name in the file.
    pub(in crate::loader) fn join(self: &Arc<Self>, name: String) -> Recorder {
        let traced = Arc::new(Traced { name, behind: AtomicI64::new(i64::MAX) });
        let mut shared = lock(&self.shared);
        shared.loaders.push(Arc::clone(&traced));
        let loader = number(shared.loaders.len() - 1);
        drop(shared);
        Recorder { buffer: self.buffer(), trace: Arc::clone(self), traced, loader }
    }

    fn buffer(&self) -> Arc<Mutex<Buffer>> {
        let buffer = Arc::<Mutex<Buffer>>::default();
        lock(&self.shared).buffers.push(Arc::clone(&buffer));
        buffer
    }

    /// Takes room for a chunk, or what is left of it.
    fn take_room(&self) -> usize {
        let take = |left: usize| Some(left - left.min(CHUNK));
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map_or(0, |left| left.min(CHUNK))
    }

    fn at(&self, time: Instant) -> u64 {
        nanoseconds(time.saturating_duration_since(self.zero))
    }
}

impl Buffer {
    fn len(&self) -> usize {
        self.full.iter().map(Vec::len).sum::<usize>() + self.open.len()
    }

    fn push(&mut self, event: Event, trace: &Trace) {
        if self.open.len() == self.open.capacity() {
            let room = trace.take_room();
            if room == 0 {
                trace.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let full = std::mem::replace(&mut self.open, Vec::with_capacity(room));
            self.full.push(full);
        }
        self.open.push(event);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One thread's access to a trace, for one loader.
#[derive(Debug)]
pub(in crate::loader) struct Recorder {
    trace: Arc<Trace>,
    buffer: Arc<Mutex<Buffer>>,
    traced: Arc<Traced>,
    loader: u32,
}

impl Recorder {
    /// Another thread's access.
    pub(in crate::loader) fn fork(&self) -> Self {
        let (trace, traced) = (Arc::clone(&self.trace), Arc::clone(&self.traced));
        Self { buffer: trace.buffer(), trace, traced, loader: self.loader }
    }

    fn push<const N: usize>(&self, events: [Event; N]) {
        let mut buffer = lock(&self.buffer);
        events.into_iter().for_each(|event| buffer.push(event, &self.trace));
    }

    fn event(&self, track: Track, what: What, time: Range<Instant>, batch: (u64, u64)) -> Event {
        let (start, end) = (self.trace.at(time.start), self.trace.at(time.end));
        let (epoch, batch) = batch;
        Event { loader: self.loader, track, what, start, end, epoch, batch, run: (0, 0) }
    }

    /// A worker has read a run of samples of a batch, told by its epoch and its number.
    pub(in crate::loader) fn read(&self, worker: usize, time: Range<Instant>, batch: (u64, u64), run: &Range<usize>) {
        let event = self.event(Track::Worker(number(worker)), What::Read, time, batch);
        self.push([Event { run: (number(run.start), number(run.len())), ..event }]);
    }

    /// A batch was submitted.
    pub(in crate::loader) fn submitted(&self, times: &BatchTimestamps) {
        let &BatchTimestamps { epoch, number: batch, slot, begun, handed_out, ended, sent, submitted } = times;
        let event = |track, what, time| self.event(track, what, time, (epoch, batch));
        let pump =
            [event(Track::Pump, What::Begin, begun..handed_out), event(Track::Pump, What::Submit, sent..submitted)];
        let Some(slot) = slot else { return self.push(pump) };
        let slot = Track::Slot(number(slot));
        let [begin, submit] = pump;
        let (filling, filled) = (event(slot, What::Filling, handed_out..ended), event(slot, What::Filled, ended..sent));
        self.push([begin, filling, filled, submit]);
    }

    /// The CPU saw that a batch has ended; `track` is its slot's, or the place that it had without one.
    pub(in crate::loader) fn finished(&self, times: &BatchTimestamps, track: usize, now: Instant) {
        let batch = (times.epoch, times.number);
        self.push([self.event(Track::Slot(number(track)), What::InFlight, times.submitted..now, batch)]);
    }

    /// The pump had nothing to do.
    pub(in crate::loader) fn waited(&self, cause: Cause, time: Range<Instant>) {
        self.push([self.event(Track::Pump, What::Wait(cause), time, (0, 0))]);
    }

    /// The user waited for a batch.
    pub(in crate::loader) fn next(&self, time: Range<Instant>, batch: (u64, u64)) {
        self.push([self.event(Track::Next, What::Next, time, batch)]);
    }

    /// The device's own clock has told of a batch, whose end the CPU saw at `seen`.
    pub(in crate::loader) fn gpu(&self, span: &GpuSpan, batch: (u64, u64), seen: Instant) {
        let (epoch, batch) = batch;
        let nanos = |seconds: f64| (seconds.max(0.0) * 1e9) as u64;
        let event = |track, what, time: &Range<f64>| Event {
            loader: self.loader,
            track,
            what,
            start: nanos(time.start),
            end: nanos(time.end),
            epoch,
            batch,
            run: (0, 0),
        };
        let (copy, kernel) = (&span.copy, &span.kernel);
        let end = nanos(copy.end.max(kernel.end));
        let behind = self.trace.at(seen).cast_signed() - end.cast_signed();
        self.traced.behind.fetch_min(behind, Ordering::Relaxed);
        let (copied, ran) = (event(Track::Copy, What::Copy, copy), event(Track::Kernel, What::Kernel, kernel));
        match (copied.start < copied.end, ran.start < ran.end) {
            (true, true) => self.push([copied, ran]),
            (true, false) => self.push([copied]),
            (false, _) => self.push([ran]),
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
