//! Which frames wait, and when they become a batch. It has no clock and no threads: the time is told, and whoever asks acts.
//!
//! **Frames stand in the order of their arrival**, those of all streams in one queue, and leave it from the front only; a frame that is
//! dropped is handed to whoever pushed. So each frame that was accepted is either taken once, in order, or given back once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::options::{BatcherOptions, Overflow};
use super::stats::{BatcherStats, StreamStats};

/// A frame that waits, or has waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queued<F> {
    pub(super) stream: usize,
    pub(super) tag: u64,
    pub(super) arrived: Instant,
    pub(super) frame: F,
}

/// Why a frame was not accepted, and the frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused<F> {
    /// Its stream's queue is full, and it has to wait.
    Full(F),
    /// Nobody takes frames any more.
    Closed(F),
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// As many frames are a batch.
    Batch(usize),
    /// Nothing before this moment, unless a frame arrives.
    Until(Instant),
    /// Nothing until a frame arrives or a stream ends.
    Wait,
    /// Nothing any more: no frame waits, and none can arrive.
    End,
}

/// The frames of all streams.
#[derive(Debug)]
pub(super) struct Collector<F> {
    options: BatcherOptions,
    batch_size: usize,
    queue: VecDeque<Queued<F>>,
    streams: Vec<Stream>,
    closed: bool,
    stats: BatcherStats,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    waiting: usize,
    open: bool,
}

impl<F> Collector<F> {
    pub(super) fn new(options: BatcherOptions, batch_size: usize) -> Self {
        let stats = BatcherStats::default();
        Self { options, batch_size, queue: VecDeque::new(), streams: Vec::new(), closed: false, stats }
    }

    /// A stream more: its number.
    pub(super) fn open(&mut self) -> usize {
        self.streams.push(Stream { waiting: 0, open: true });
        self.stats.streams.push(StreamStats::default());
        self.streams.len() - 1
    }

    /// No frame of this stream will arrive any more.
    pub(super) fn end(&mut self, stream: usize) {
        self.streams[stream].open = false;
    }

    /// No frame is accepted any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// A frame arrives. What it drives out, or itself where it is dropped, comes back.
    pub(super) fn push(
        &mut self,
        stream: usize,
        tag: u64,
        frame: F,
        arrived: Instant,
    ) -> Result<Option<Queued<F>>, Refused<F>> {
        if self.closed {
            return Err(Refused::Closed(frame));
        }
        let full = self.streams[stream].waiting >= self.options.queue;
        let arriving = Queued { stream, tag, arrived, frame };
        let dropped = match self.options.overflow {
            Overflow::Block if full => return Err(Refused::Full(arriving.frame)),
            Overflow::DropNewest if full => Some(arriving),
            Overflow::DropOldest if full => {
                let oldest = self.queue.iter().position(|queued| queued.stream == stream);
                let oldest = oldest.and_then(|oldest| self.queue.remove(oldest));
                self.queue.push_back(arriving);
                oldest
            }
            _ => {
                self.streams[stream].waiting += 1;
                self.queue.push_back(arriving);
                None
            }
        };
        let stats = &mut self.stats.streams[stream];
        stats.pushed += 1;
        stats.dropped += u64::from(dropped.is_some());
        Ok(dropped)
    }

    /// What there is to do at this moment.
    pub(super) fn next(&self, now: Instant) -> Next {
        let waiting = self.queue.len().min(self.batch_size);
        match self.queue.front() {
            None if self.is_over() => Next::End,
            None => Next::Wait,
            Some(_) if waiting == self.batch_size || self.is_over() => Next::Batch(waiting),
            Some(first) => match first.arrived.checked_add(self.options.max_wait) {
                Some(due) if due <= now => Next::Batch(waiting),
                Some(due) => Next::Until(due),
                None => Next::Wait,
            },
        }
    }

    /// Whether no frame can arrive any more.
    fn is_over(&self) -> bool {
        self.closed || self.streams.iter().all(|stream| !stream.open)
    }

    /// Takes the frames of a batch, from the front. Their streams have room then.
    pub(super) fn take(&mut self, frames: usize, to: &mut Vec<Queued<F>>) {
        self.stats.batches += 1;
        self.stats.full += u64::from(frames == self.batch_size);
        for queued in self.queue.drain(..frames.min(self.queue.len())) {
            self.streams[queued.stream].waiting -= 1;
            self.stats.streams[queued.stream].taken += 1;
            to.push(queued);
        }
    }

    /// Takes whatever waits, for nobody.
    pub(super) fn drain(&mut self) -> Vec<Queued<F>> {
        self.streams.iter_mut().for_each(|stream| stream.waiting = 0);
        self.queue.drain(..).collect()
    }

    /// Somebody has waited for room.
    pub(super) fn note_blocked(&mut self, stream: usize, time: Duration) {
        self.stats.streams[stream].blocked += time;
    }

    pub(super) fn stats(&self) -> &BatcherStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests;
