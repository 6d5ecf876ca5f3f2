//! Several streams of frames into one dynamic batch.
//!
//! ```text
//! FrameStream --push--> \                                       at most n frames,
//! FrameStream --push-->  queue, in the order of arrival --take-->  or max_wait after the first --> Feeder --> FrameBatch
//! FrameStream --push--> /
//! ```
//!
//! [`Collector`] decides, without a clock or a thread; whoever asks for the next batch acts on its own thread, as with a
//! [`Feeder`]. Two bells wake those who wait: one the consumer, when a frame arrives, a stream ends or a batch is due; one a stream, when
//! it has room again.

mod batch;
mod collector;
mod options;
mod stats;
mod stream;
mod timer;

pub use batch::{FrameBatch, FrameOrigin};
pub use options::{BatcherOptions, Overflow};
pub use stats::{BatcherStats, StreamStats};
pub use stream::{FrameStream, PushError, WaitingFrame};

use std::sync::Arc;
use std::time::{Duration, Instant};

use collector::{Next, Queued};
use stream::Shared;
use timer::Timer;

use super::feeder::{AsFrame, FeedError, Feeder, Frame};
use crate::backend::Backend;
use crate::error::OpenError;

/// Gathers frames of several streams into batches of at most the feeder's [`batch_size`](Feeder::batch_size): a batch is taken when it
/// is full, or [`max_wait`](BatcherOptions::max_wait) after its first frame arrived. Frames are in the order of their arrival, each with
/// its stream's number and the caller's tag.
///
/// It iterates until every [`FrameStream`] is gone and all that was pushed is delivered. No frame is lost: one that was accepted is
/// delivered, given back to whoever pushes ([`Overflow`]), or left for the next try where its batch could not be sent. `F` is what owns a
/// frame's bytes: a `Vec<u8>`, an `Arc<[u8]>`, a camera's own buffer, anything that is [`AsFrame`].
///
/// ```
/// use std::time::Duration;
///
/// use gpufeed::backend::host::HostBackend;
/// use gpufeed::{BatcherOptions, Feeder, FeederOptions, FrameBatcher, SampleLayout};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = FeederOptions { batch_size: 8, ..FeederOptions::default() };
/// let feeder = Feeder::new(&HostBackend::new(), SampleLayout::image(2, 2, 3)?, options)?;
/// let options = BatcherOptions { max_wait: Duration::from_millis(5), ..BatcherOptions::default() };
/// let mut batcher = FrameBatcher::new(feeder, options)?;
/// let cameras: Vec<_> = (0..3u8).map(|number| (number, batcher.stream())).collect();
/// let threads = cameras.into_iter().map(|(number, mut camera)| {
///     std::thread::spawn(move || (0..10).try_for_each(|frame| camera.push(vec![number; 12], frame).map(drop)))
/// });
/// let threads: Vec<_> = threads.collect();
/// let mut frames = 0;
/// for batch in batcher {
///     let batch = batch?;
///     for (origin, pixels) in batch.origins().iter().zip(batch.read()?.chunks(12)) {
///         assert_eq!(pixels[0], origin.stream as u8);
///     }
///     frames += batch.len();
/// }
/// assert_eq!(frames, 30);
/// # for thread in threads { thread.join().expect("no panic").map_err(|error| error.to_string())?; }
/// # Ok(())
/// # }
/// ```
pub struct FrameBatcher<B: Backend, F> {
    feeder: Feeder<B>,
    shared: Arc<Shared<F>>,
    bell: flume::Receiver<()>,
    /// What was taken for a batch that is not sent yet.
    taken: Vec<Queued<F>>,
    timer: Timer,
    idle: Duration,
    feeding: Duration,
}

impl<B: Backend, F: AsFrame> FrameBatcher<B, F> {
    /// A batcher without streams, which feeds with this feeder.
    ///
    /// # Errors
    /// [`OpenError::Option`] for a queue of no frames.
    pub fn new(feeder: Feeder<B>, options: BatcherOptions) -> Result<Self, OpenError> {
        options.check()?;
        let (ring, bell) = flume::bounded(1);
        let shared = Arc::new(Shared::new(options, feeder.batch_size(), feeder.frame().clone(), ring));
        let taken = Vec::with_capacity(feeder.batch_size());
        let (idle, feeding) = (Duration::ZERO, Duration::ZERO);
        Ok(Self { feeder, shared, bell, taken, timer: Timer::default(), idle, feeding })
    }

    /// A stream more. Streams are numbered from zero, in the order in which they are made.
    pub fn stream(&mut self) -> FrameStream<F> {
        FrameStream::open(&self.shared)
    }

    /// As the iterator's `next`, for no longer than `timeout`.
    ///
    /// # Errors
    /// [`FeedError::TimedOut`] within `Some`, and those of the iterator.
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Result<FrameBatch<B>, FeedError>> {
        let start = Instant::now();
        match self.collect(start.checked_add(timeout)) {
            Collected::End => None,
            Collected::TimedOut => Some(Err(FeedError::TimedOut(timeout))),
            Collected::Batch => Some(self.feed(|feeder, frames| {
                feeder.ready_timeout(timeout.saturating_sub(start.elapsed()))?;
                feeder.feed(frames)
            })),
        }
    }

    /// As the iterator's `next`, and gives the thread back while it waits. Dropping what is awaited loses nothing.
    ///
    /// # Errors
    /// Those of the iterator, within `Some`.
    pub async fn next_async(&mut self) -> Option<Result<FrameBatch<B>, FeedError>> {
        let start = Instant::now();
        loop {
            match self.look() {
                Next::Batch(_) => break,
                Next::End => return None,
                Next::Until(due) if !self.timer.set(due, &self.shared.bell) => {
                    let _ = self.bell.recv_deadline(due);
                }
                Next::Until(_) | Next::Wait => {
                    // The batcher holds a sender itself, so that the bell is always there.
                    let _ = self.bell.recv_async().await;
                }
            }
        }
        self.idle += start.elapsed();
        if let Err(error) = self.feeder.ready().await {
            return Some(Err(error));
        }
        Some(self.feed(|feeder, frames| feeder.feed(frames)))
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> BatcherStats {
        let stats = self.shared.state().collector.stats().clone();
        BatcherStats { idle: self.idle, feeding: self.feeding, ..stats }
    }

    /// What feeds the batches.
    #[must_use]
    pub fn feeder(&self) -> &Feeder<B> {
        &self.feeder
    }

    /// Ends it: nothing more is accepted, whoever waits to push gets its frame back, and what was not delivered comes back, in order.
    #[must_use = "the frames were accepted and not delivered"]
    pub fn close(mut self) -> Vec<WaitingFrame<F>> {
        let mut left = std::mem::take(&mut self.taken);
        left.extend(self.shared.close());
        left.into_iter().map(WaitingFrame::from).collect()
    }

    /// Takes a batch's frames if there are any to take. What was taken and not sent comes first.
    fn look(&mut self) -> Next {
        match self.taken.len() {
            0 => self.shared.take(&mut self.taken),
            waiting => Next::Batch(waiting),
        }
    }

    /// Waits on this thread until a batch's frames are taken.
    fn collect(&mut self, deadline: Option<Instant>) -> Collected {
        let start = Instant::now();
        let collected = self.wait(deadline);
        self.idle += start.elapsed();
        collected
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Collected {
        loop {
            let due = match self.look() {
                Next::Batch(_) => return Collected::Batch,
                Next::End => return Collected::End,
                Next::Until(due) => Some(due),
                Next::Wait => None,
            };
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Collected::TimedOut;
            }
            // Whoever is woken looks.
            let _ = match due.into_iter().chain(deadline).min() {
                Some(until) => self.bell.recv_deadline(until).is_ok(),
                None => self.bell.recv().is_ok(),
            };
        }
    }

    /// Feeds what was taken. It is left for the next try where that fails, but for a frame that can never be fed.
    fn feed(
        &mut self,
        feed: impl FnOnce(&mut Feeder<B>, &[Frame<'_>]) -> Result<super::Batch<B>, FeedError>,
    ) -> Result<FrameBatch<B>, FeedError> {
        let start = Instant::now();
        let frames: Vec<Frame<'_>> =
            self.taken.iter().map(|queued| queued.frame.as_frame().with_tag(queued.tag)).collect();
        let fed = feed(&mut self.feeder, &frames);
        drop(frames);
        self.feeding += start.elapsed();
        match fed {
            Ok(batch) => Ok(FrameBatch::new(batch, self.taken.drain(..).map(|queued| FrameOrigin::of(&queued)))),
            Err(error) => {
                if let FeedError::Length { frame, .. } | FeedError::Field { frame, .. } = error {
                    self.taken.remove(frame);
                }
                Err(error)
            }
        }
    }
}

/// How a wait ended.
enum Collected {
    Batch,
    End,
    TimedOut,
}

impl<B: Backend, F: AsFrame> Iterator for FrameBatcher<B, F> {
    /// [`FeedError`] says why a batch could not be sent: its frames are those of the next try, as after
    /// [`AllTensorsLeased`](FeedError::AllTensorsLeased). Only a frame that has become another since it was pushed is left out.
    type Item = Result<FrameBatch<B>, FeedError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.collect(None) {
            Collected::Batch => Some(self.feed(|feeder, frames| feeder.feed(frames))),
            Collected::End | Collected::TimedOut => None,
        }
    }
}

impl<B: Backend, F> Drop for FrameBatcher<B, F> {
    fn drop(&mut self) {
        drop(self.shared.close());
    }
}

#[cfg(test)]
mod tests;
