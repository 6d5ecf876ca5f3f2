//! What the pump counts and records about itself, and the clock that it reads for that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::observe::activity::Activity;
use super::super::observe::metrics::{BatchTimestamps, Cause, Metrics};
use super::super::observe::trace::Recorder;
use crate::backend::{GpuSpan, Lane, SubmissionId};
use crate::error::PumpState;

/// Counters, activity and trace of the pump. Nothing here changes what the pump does.
pub(in crate::loader) struct Observer {
    metrics: Arc<Metrics>,
    activity: Arc<Activity>,
    trace: Option<Trace>,
    /// Whether the lane measures.
    timing: bool,
    spans: Vec<GpuSpan>,
    /// The batches on the device.
    in_flight: Vec<(SubmissionId, BatchTimestamps)>,
    /// Since when a batch could be begun, if the device had finished another.
    lacks_slot: Option<Instant>,
    /// The time, as long as nothing was done that takes any: reading the clock costs as much as what is timed.
    clock: Option<Instant>,
}

/// The trace, and what it needs to know.
struct Trace {
    recorder: Recorder,
    /// The last batches, for the device's times, which come later.
    submitted: VecDeque<Submitted>,
    capacity: usize,
    /// A wait that may go on.
    wait: Option<(Cause, Instant, Instant)>,
}

struct Submitted {
    id: SubmissionId,
    epoch: u64,
    number: u64,
    /// When it was seen to have ended.
    seen: Option<Instant>,
}

impl Observer {
    /// For a lane with at most `in_flight` batches in flight.
    pub(in crate::loader) fn new(
        metrics: Arc<Metrics>,
        activity: Arc<Activity>,
        recorder: Option<Recorder>,
        timing: bool,
        in_flight: usize,
    ) -> Self {
        // Some have ended while their times are on their way.
        let capacity = 2 * in_flight;
        let trace = recorder.map(|recorder| Trace { recorder, submitted: VecDeque::new(), capacity, wait: None });
        let in_flight = Vec::with_capacity(in_flight);
        Self { metrics, activity, trace, timing, spans: Vec::new(), in_flight, lacks_slot: None, clock: None }
    }

    /// The time, as it was read last if nothing was done since that takes any.
    pub(super) fn now(&self) -> Instant {
        self.clock.unwrap_or_else(Instant::now)
    }

    /// Reads the clock.
    pub(super) fn read_clock(&mut self) -> Instant {
        *self.clock.insert(Instant::now())
    }

    /// Something was done that takes a while.
    pub(super) fn time_passes(&mut self) {
        self.clock = None;
    }

    /// What the pump is about to do.
    pub(super) fn state(&self, state: PumpState, filling: usize, in_flight: usize) {
        self.activity.pump(state, filling, in_flight);
    }

    /// A slot's last region has ended.
    pub(super) fn slot_ended(&self) {
        self.activity.moved();
    }

    /// Another epoch: what was lacking was the last one's.
    pub(super) fn epoch_starts(&mut self) {
        self.lacks_slot = None;
    }

    /// A batch could be begun if the device had finished another.
    pub(super) fn lacks_slot(&mut self) {
        let now = self.now();
        self.lacks_slot.get_or_insert(now);
    }

    /// Memory for a batch was asked for at `start`, and is there.
    pub(super) fn begun(&mut self, start: Instant) -> Instant {
        let begun = self.read_clock();
        let waited = self.lacks_slot.take().map(|since| start - since);
        self.metrics.begun(begun - start, waited);
        self.activity.moved();
        self.flush();
        begun
    }

    /// A batch is on its way; `read` is the time that the workers took, in all.
    pub(super) fn submitted(&mut self, id: SubmissionId, read: Duration, times: BatchTimestamps) -> Instant {
        let times = BatchTimestamps { submitted: self.read_clock(), ..times };
        self.metrics.submitted(read, &times);
        self.activity.moved();
        self.flush();
        if let Some(Trace { recorder, submitted, capacity, .. }) = &mut self.trace {
            recorder.submitted(&times);
            if submitted.len() >= *capacity {
                submitted.pop_front();
            }
            submitted.push_back(Submitted { id, epoch: times.epoch, number: times.number, seen: None });
        }
        self.in_flight.push((id, times));
        times.submitted
    }

    /// The device has finished these.
    pub(super) fn finished(&mut self, ids: &[SubmissionId]) {
        self.clock = None;
        if ids.is_empty() {
            return;
        }
        let now = self.read_clock();
        for &id in ids {
            self.activity.moved();
            let Some(at) = self.in_flight.iter().position(|(submission, _)| *submission == id) else { continue };
            let (_, times) = self.in_flight.swap_remove(at);
            self.metrics.finished(&times, now);
            let Some(trace) = &mut self.trace else { continue };
            // Without slots as many are in flight as there would be slots, and they end in turn.
            let track = usize::try_from(id).unwrap_or(0) % (trace.capacity / 2).max(1);
            trace.recorder.finished(&times, times.slot.unwrap_or(track), now);
            if let Some(submitted) = trace.submitted.iter_mut().find(|submitted| submitted.id == id) {
                submitted.seen = Some(now);
            }
        }
    }

    /// The pump waited for this from `start` until now. A wait that follows another for the same cause is one with it.
    pub(super) fn waited(&mut self, cause: Cause, start: Instant) {
        let end = self.read_clock();
        self.metrics.waited(cause, end - start);
        if self.trace.as_ref().is_some_and(|trace| trace.wait.is_some_and(|(last, ..)| last != cause)) {
            self.flush();
        }
        if let Some(trace) = &mut self.trace {
            trace.wait = Some((cause, trace.wait.map_or(start, |(_, start, _)| start), end));
        }
    }

    /// The pump waits for nothing that counts.
    pub(super) fn between_epochs(&mut self) {
        self.flush();
        self.clock = None;
    }

    /// The pump does something else.
    fn flush(&mut self) {
        if let Some(Trace { recorder, wait, .. }) = &mut self.trace
            && let Some((cause, start, end)) = wait.take()
        {
            recorder.waited(cause, start..end);
        }
    }

    /// Takes what the device's own clock has measured.
    pub(super) fn measured<L: Lane>(&mut self, lane: &mut L) {
        if !self.timing {
            return;
        }
        self.metrics.gpu(lane.gpu_times());
        lane.gpu_spans(&mut self.spans);
        let Some(Trace { recorder, submitted, .. }) = &self.trace else { return self.spans.clear() };
        for span in self.spans.drain(..) {
            let batch = submitted.iter().find(|submitted| submitted.id == span.id);
            if let Some(&Submitted { epoch, number, seen: Some(seen), .. }) = batch {
                recorder.gpu(&span, (epoch, number), seen);
            }
        }
    }
}
