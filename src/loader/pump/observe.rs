//! What the pump tells about itself: what it waits for, and what ran when.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::observe::metrics::{BatchTimestamps, Cause};
use super::super::observe::trace::Recorder;
use super::{Pump, ToPump};
use crate::backend::{GpuSpan, Lane, SubmissionId};

/// What goes beyond the counters, where it was asked for.
pub(in crate::loader) struct Observer {
    recorder: Option<Recorder>,
    /// Whether the lane measures.
    timing: bool,
    spans: Vec<GpuSpan>,
    /// The last batches, for the device's times, which come later.
    sent: VecDeque<Sent>,
    most: usize,
    /// A wait that may go on.
    wait: Option<(Cause, Instant, Instant)>,
}

struct Sent {
    id: SubmissionId,
    epoch: u64,
    number: u64,
    /// When it was seen to have ended.
    seen: Option<Instant>,
}

impl Observer {
    /// For a lane with so many batches in flight at most.
    pub(in crate::loader) fn new(recorder: Option<Recorder>, timing: bool, in_flight: usize) -> Self {
        // Some have ended while their times are on their way.
        let most = 2 * in_flight;
        Self { recorder, timing, spans: Vec::new(), sent: VecDeque::new(), most, wait: None }
    }

    pub(super) fn submitted(&mut self, id: SubmissionId, times: &BatchTimestamps) {
        let Some(recorder) = &self.recorder else { return };
        recorder.submitted(times);
        if self.sent.len() >= self.most {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { id, epoch: times.epoch, number: times.number, seen: None });
    }

    pub(super) fn finished(&mut self, id: SubmissionId, times: &BatchTimestamps, now: Instant) {
        let Some(recorder) = &self.recorder else { return };
        // Without slots as many are in flight as there would be slots, and they end in turn.
        let place = usize::try_from(id).unwrap_or(0) % (self.most / 2).max(1);
        recorder.finished(times, times.slot.unwrap_or(place), now);
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.id == id) {
            sent.seen = Some(now);
        }
    }

    /// A wait that follows another for the same cause is one with it.
    fn waited(&mut self, cause: Cause, start: Instant, end: Instant) {
        if self.recorder.is_none() {
            return;
        }
        match &mut self.wait {
            Some((last, _, until)) if *last == cause => *until = end,
            _ => {
                self.flush();
                self.wait = Some((cause, start, end));
            }
        }
    }

    /// The pump does something else.
    pub(super) fn flush(&mut self) {
        if let (Some(recorder), Some((cause, start, end))) = (&self.recorder, self.wait.take()) {
            recorder.waited(cause, start..end);
        }
    }

    fn take_spans(&mut self) {
        let Some(recorder) = &self.recorder else { return self.spans.clear() };
        for span in self.spans.drain(..) {
            if let Some(Sent { epoch, number, seen: Some(seen), .. }) = self.sent.iter().find(|sent| sent.id == span.id)
            {
                recorder.gpu(&span, (*epoch, *number), *seen);
            }
        }
    }
}

impl<L: Lane> Pump<L> {
    /// As [`block`](Self::block), and counts what for.
    pub(super) fn wait(&mut self) -> Result<Option<ToPump>, flume::RecvError> {
        let Some(cause) = self.waits_for() else {
            self.observer.flush();
            self.clock = None;
            return self.block();
        };
        let start = self.now();
        let message = self.block();
        let end = Instant::now();
        self.clock = Some(end);
        self.metrics.waited(cause, end - start);
        self.observer.waited(cause, start, end);
        message
    }

    /// The time, as it was told last if nothing was done since that takes any: a look at the clock costs as much as what is timed.
    pub(super) fn now(&self) -> Instant {
        self.clock.unwrap_or_else(Instant::now)
    }

    /// The time, to be told again.
    pub(super) fn look(&mut self) -> Instant {
        *self.clock.insert(Instant::now())
    }

    /// What has to happen before anything can be done; `None` between epochs.
    fn waits_for(&self) -> Option<Cause> {
        let (window, in_flight) = (&self.progress.window, self.lane.in_flight());
        let begins = window.to_begin().is_some();
        // In direct strategies, and where a batch is ready, an output is all that can be lacking.
        let lacks_output = match &self.direct {
            Some(direct) => begins && in_flight < direct.depth,
            None => window.is_ready(),
        };
        if lacks_output {
            // Those that are all on their way the user has not kept waiting.
            return Some(if in_flight >= self.outputs.size() { Cause::Device } else { Cause::Consumer });
        }
        match (window.filling() > 0, in_flight > 0) {
            (true, true) => Some(Cause::Either),
            (true, false) => Some(Cause::Source),
            (false, true) if begins => Some(Cause::Device),
            (false, true) => Some(Cause::Idle),
            (false, false) => None,
        }
    }

    /// Notes a batch that is on its way; `read` is the time that the workers took, in all.
    pub(super) fn note_submitted(&mut self, id: SubmissionId, read: Duration, times: BatchTimestamps) {
        self.metrics.submitted(read, &times);
        self.activity.moved();
        self.observer.flush();
        self.observer.submitted(id, &times);
        self.progress.in_flight.push((id, times));
    }

    /// Notes the device's own times.
    pub(super) fn look_at_the_clock(&mut self) {
        if self.observer.timing {
            self.metrics.gpu(self.lane.gpu_times());
            self.lane.gpu_spans(&mut self.observer.spans);
            self.observer.take_spans();
        }
    }
}
