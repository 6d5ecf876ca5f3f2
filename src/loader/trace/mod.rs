//! A record of what ran when, for a timeline viewer: Perfetto (ui.perfetto.dev) or `chrome://tracing`.
//!
//! One track for each worker, one for each slot, one for the loader's own thread, one for the user's waits, and one each for
//! the device's copies and kernels where it has a clock. The device's clock is aligned by the moments at which the CPU saw
//! batches end: no span ends later than that, and the closest one says where the clocks meet.

mod json;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::metrics::{Cause, Passage, nanoseconds};
use crate::backend::GpuSpan;

/// Records the work of loaders: give it to them as [`LoaderOptions::trace`](super::LoaderOptions::trace), and
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
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    events: Vec<Event>,
    dropped: u64,
    loaders: Vec<Traced>,
}

/// One loader.
#[derive(Debug)]
struct Traced {
    name: String,
    /// What the device's clock is behind the trace's, in nanoseconds, at most.
    behind: Option<i64>,
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
    /// A million events: some hundred thousand batches, in 80 MB once they are there.
    fn default() -> Self {
        Self::with_capacity(1 << 20)
    }
}

impl Trace {
    /// A trace with room for so many events. A batch takes six to eight, and one for each worker that has a part in it. What does
    /// not fit is dropped and counted.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        let state = State { events: Vec::with_capacity(events), dropped: 0, loaders: Vec::new() };
        Self { zero: Instant::now(), most: events, state: Mutex::new(state) }
    }

    /// The number of events it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().events.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of events that found no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Adds a loader, called by this name in the file.
    pub(super) fn join(self: &Arc<Self>, name: String) -> Recorder {
        let mut state = self.lock();
        state.loaders.push(Traced { name, behind: None });
        let loader = u32::try_from(state.loaders.len() - 1).unwrap_or(u32::MAX);
        Recorder { trace: Arc::clone(self), loader }
    }

    fn at(&self, time: Instant) -> u64 {
        nanoseconds(time.saturating_duration_since(self.zero))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// One loader's access to a trace.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    trace: Arc<Trace>,
    loader: u32,
}

impl Recorder {
    fn push<const N: usize>(&self, events: [Event; N]) {
        let mut state = self.trace.lock();
        for event in events {
            if state.events.len() < self.trace.most {
                state.events.push(event);
            } else {
                state.dropped += 1;
            }
        }
    }

    fn event(&self, track: Track, what: What, time: Range<Instant>, batch: (u64, u64)) -> Event {
        let (start, end) = (self.trace.at(time.start), self.trace.at(time.end));
        let (epoch, batch) = batch;
        Event { loader: self.loader, track, what, start, end, epoch, batch, run: (0, 0) }
    }

    /// A worker has read a run of samples of a batch, told by its epoch and its number.
    pub(super) fn read(&self, worker: usize, time: Range<Instant>, batch: (u64, u64), run: &Range<usize>) {
        let event = self.event(Track::Worker(number(worker)), What::Read, time, batch);
        self.push([Event { run: (number(run.start), number(run.len())), ..event }]);
    }

    /// A batch was submitted.
    pub(super) fn submitted(&self, passage: &Passage) {
        let &Passage { epoch, number: batch, slot, begun, handed_out, ended, sent, submitted } = passage;
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
    pub(super) fn finished(&self, passage: &Passage, track: usize, now: Instant) {
        let batch = (passage.epoch, passage.number);
        self.push([self.event(Track::Slot(number(track)), What::InFlight, passage.submitted..now, batch)]);
    }

    /// The pump had nothing to do.
    pub(super) fn waited(&self, cause: Cause, time: Range<Instant>) {
        self.push([self.event(Track::Pump, What::Wait(cause), time, (0, 0))]);
    }

    /// The user waited for a batch.
    pub(super) fn next(&self, time: Range<Instant>, batch: (u64, u64)) {
        self.push([self.event(Track::Next, What::Next, time, batch)]);
    }

    /// The device's own clock has told of a batch, whose end the CPU saw at `seen`.
    pub(super) fn gpu(&self, span: &GpuSpan, batch: (u64, u64), seen: Instant) {
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
        if let Some(traced) = self.trace.lock().loaders.get_mut(self.loader as usize) {
            traced.behind = Some(traced.behind.map_or(behind, |least| least.min(behind)));
        }
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
