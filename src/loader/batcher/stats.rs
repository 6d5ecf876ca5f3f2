//! What a batcher has done so far.

use std::time::Duration;

/// What a [`FrameBatcher`](super::FrameBatcher) has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatcherStats {
    /// Batches that were taken.
    pub batches: u64,
    /// How many of them were full: the others were due, or the last.
    pub full: u64,
    /// How long whoever takes batches has waited for frames: what is left of the time, others hold it back.
    pub idle: Duration,
    /// How long it took to fill slots, to wait for free ones, and to queue the work.
    pub feeding: Duration,
    /// By the stream's number.
    pub streams: Vec<StreamStats>,
}

impl BatcherStats {
    /// Frames that were taken for batches, of all streams.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.streams.iter().map(|stream| stream.taken).sum()
    }

    /// Frames that were dropped, of all streams.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.streams.iter().map(|stream| stream.dropped).sum()
    }
}

/// What became of one stream's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStats {
    /// Frames that were pushed, those that were dropped included.
    pub pushed: u64,
    /// Frames that were taken for a batch.
    pub taken: u64,
    /// Frames that were given back, since the stream's queue was full.
    pub dropped: u64,
    /// How long whoever pushes has waited for room.
    pub blocked: Duration,
}
