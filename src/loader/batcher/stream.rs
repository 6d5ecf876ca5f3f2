//! The producers' end: where frames are pushed, and what both ends share.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::super::feeder::{AsFrame, FeedError};
use super::collector::{Collector, Next, Queued, Refused};
use super::options::BatcherOptions;
use crate::layout::SampleLayout;

/// What producers and consumer share.
pub(super) struct Shared<F> {
    state: Mutex<State<F>>,
    frame: SampleLayout,
    /// Wakes the consumer.
    pub(super) bell: flume::Sender<()>,
}

pub(super) struct State<F> {
    pub(super) collector: Collector<F>,
    /// Wakes whoever pushes, by stream.
    rooms: Vec<flume::Sender<()>>,
}

impl<F> Shared<F> {
    pub(super) fn new(
        options: BatcherOptions,
        batch_size: usize,
        frame: SampleLayout,
        bell: flume::Sender<()>,
    ) -> Self {
        let state = State { collector: Collector::new(options, batch_size), rooms: Vec::new() };
        Self { state: Mutex::new(state), frame, bell }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the consumer. A bell that rings already will be heard.
    fn ring(&self) {
        let _ = self.bell.try_send(());
    }

    /// Takes the frames of a batch, if one is due.
    pub(super) fn take(&self, to: &mut Vec<Queued<F>>) -> Next {
        let mut state = self.state();
        let next = state.collector.next(Instant::now());
        if let Next::Batch(frames) = next {
            state.collector.take(frames, to);
            for queued in to.iter() {
                // A stream that has ended hears nothing, and one that rings already will.
                let _ = state.rooms[queued.stream].try_send(());
            }
        }
        next
    }

    /// Accepts nothing more, and gives what waits. Whoever waits for room is woken, and hears why.
    pub(super) fn close(&self) -> Vec<Queued<F>> {
        let mut state = self.state();
        state.collector.close();
        for room in &state.rooms {
            let _ = room.try_send(());
        }
        state.collector.drain()
    }
}

/// One stream of frames into a [`FrameBatcher`](super::FrameBatcher), for one producer at a time. It may go to another thread. Dropping
/// it ends the stream.
pub struct FrameStream<F> {
    number: usize,
    shared: Arc<Shared<F>>,
    room: flume::Receiver<()>,
}

impl<F: AsFrame> FrameStream<F> {
    pub(super) fn open(shared: &Arc<Shared<F>>) -> Self {
        let (ring, room) = flume::bounded(1);
        let mut state = shared.state();
        state.rooms.push(ring);
        Self { number: state.collector.open(), shared: Arc::clone(shared), room }
    }

    /// Its number, from zero.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Pushes a frame with a number of the caller's own, and waits for room where the batcher
    /// [blocks](super::Overflow::Block). Where it drops, the frame that was dropped comes back.
    ///
    /// # Errors
    /// [`PushError`] with the frame, which was not accepted.
    pub fn push(&mut self, frame: F, tag: u64) -> Result<Option<WaitingFrame<F>>, PushError<F>> {
        let (mut frame, mut since) = (self.check(frame)?, None);
        loop {
            match self.offer(frame, tag, since) {
                Err(PushError::Full(refused)) => frame = refused,
                done => return done,
            }
            since.get_or_insert_with(Instant::now);
            // Rung too when nothing is accepted any more, which the next offer finds.
            let _ = self.room.recv();
        }
    }

    /// As [`push`](Self::push), and gives the thread back while it waits. What is dropped while it is awaited was not accepted.
    ///
    /// # Errors
    /// As there.
    pub async fn push_async(&mut self, frame: F, tag: u64) -> Result<Option<WaitingFrame<F>>, PushError<F>> {
        let (mut frame, mut since) = (self.check(frame)?, None);
        loop {
            match self.offer(frame, tag, since) {
                Err(PushError::Full(refused)) => frame = refused,
                done => return done,
            }
            since.get_or_insert_with(Instant::now);
            let _ = self.room.recv_async().await;
        }
    }

    /// As [`push`](Self::push), and never waits.
    ///
    /// # Errors
    /// As there, and [`PushError::Full`] where `push` would wait.
    pub fn try_push(&mut self, frame: F, tag: u64) -> Result<Option<WaitingFrame<F>>, PushError<F>> {
        let frame = self.check(frame)?;
        self.offer(frame, tag, None)
    }

    /// A frame that is none of the feeder's would fail its whole batch.
    fn check(&self, frame: F) -> Result<F, PushError<F>> {
        let checked = frame.as_frame().check(0, &self.shared.frame);
        match checked {
            Ok(()) => Ok(frame),
            Err(error) => Err(PushError::Frame { frame, error }),
        }
    }

    fn offer(&self, frame: F, tag: u64, blocked: Option<Instant>) -> Result<Option<WaitingFrame<F>>, PushError<F>> {
        let mut state = self.shared.state();
        let pushed = state.collector.push(self.number, tag, frame, Instant::now());
        if let Some(since) = blocked.filter(|_| pushed.is_ok()) {
            state.collector.note_blocked(self.number, since.elapsed());
        }
        drop(state);
        match pushed {
            Ok(dropped) => {
                self.shared.ring();
                Ok(dropped.map(WaitingFrame::from))
            }
            Err(Refused::Full(frame)) => Err(PushError::Full(frame)),
            Err(Refused::Closed(frame)) => Err(PushError::Closed(frame)),
        }
    }
}

impl<F> Drop for FrameStream<F> {
    fn drop(&mut self) {
        self.shared.state().collector.end(self.number);
        self.shared.ring();
    }
}

impl<F> fmt::Debug for FrameStream<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameStream").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A frame that was accepted, and is not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingFrame<F> {
    /// The number of its stream.
    pub stream: usize,
    /// The caller's own number.
    pub tag: u64,
    /// The frame.
    pub frame: F,
}

impl<F> From<Queued<F>> for WaitingFrame<F> {
    fn from(queued: Queued<F>) -> Self {
        Self { stream: queued.stream, tag: queued.tag, frame: queued.frame }
    }
}

/// Why a frame was not accepted, and the frame.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError<F> {
    /// The batcher is gone, or closed.
    #[error("the batcher takes no frames any more")]
    Closed(F),
    /// The stream's queue is full.
    #[error("the stream's queue is full")]
    Full(F),
    /// The frame is none of those that the feeder takes.
    #[error("the frame cannot be fed: {error}")]
    Frame {
        /// The frame.
        frame: F,
        /// What is wrong with it.
        error: FeedError,
    },
}

impl<F> PushError<F> {
    /// The frame.
    #[must_use]
    pub fn into_frame(self) -> F {
        match self {
            Self::Closed(frame) | Self::Full(frame) | Self::Frame { frame, .. } => frame,
        }
    }
}

/// Without the frame.
impl<F> fmt::Debug for PushError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(_) => f.write_str("Closed"),
            Self::Full(_) => f.write_str("Full"),
            Self::Frame { error, .. } => f.debug_struct("Frame").field("error", error).finish_non_exhaustive(),
        }
    }
}
