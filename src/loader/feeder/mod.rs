//! Pushed feeding: an application's own frames and requests, on the same slots, strategies and kernels.
//!
//! ```text
//! feed(&[frame])          bytes   --copy-->  slot --submit--> tensor --> Batch
//! feed_with(n, |frame|)   written in place -> slot                  `--> an application's buffer: feed_into and its like
//! feed_buffer, feed_texture: on the GPU already, no slot --submit-/
//! ```

mod error;
mod frame;
mod options;
mod send;
#[cfg(feature = "wgpu")]
mod target;
#[cfg(feature = "wgpu")]
mod wgpu;
mod writer;

pub use error::{FeedError, FieldProblem, FillError};
pub use frame::{AsFrame, Frame};
pub use options::FeederOptions;
#[cfg(feature = "wgpu")]
pub use target::TargetBatch;
pub use writer::FrameWriter;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::account::OutputAccount;
use super::batch::Batch;
use super::geometry::{Geometries, staged_layout};
use super::host_fields::HostFields;
use super::outputs::{Output, OutputPool};
use crate::backend::{Backend, Footprint, Lane, LaneSpec, MemoryUse, Strategy, SubmissionId, Tensor, Wait};
use crate::error::OpenError;
use crate::layout::{BatchLayout, SampleLayout};
use crate::preprocess::OutputLayout;
use crate::staging::Fill;

/// How often a wait that may end in time looks for a free slot.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Feeds frames that an application has in its hands: no dataset, no epochs, no threads. The calling thread fills a slot and queues the
/// rest. Frames may have [labels, further fields and a tag](Frame), which come with the batch.
///
/// ```
/// use gpufeed::backend::host::HostBackend;
/// use gpufeed::{Feeder, FeederOptions, Normalize, SampleLayout};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = FeederOptions { preprocess: Normalize::unit(3).into(), ..FeederOptions::default() };
/// let mut feeder = Feeder::new(&HostBackend::new(), SampleLayout::image(2, 2, 3)?, options)?;
/// let frame = [255; 12];
/// let batch = feeder.feed(&[&frame])?;
/// assert_eq!(batch.read_f32()?, [1.0; 12]);
/// # Ok(())
/// # }
/// ```
pub struct Feeder<B: Backend> {
    lane: B::Lane,
    outputs: Arc<OutputPool<B::Tensor>>,
    /// How many there should be: fewer are left once some were taken out.
    wanted_outputs: usize,
    account: OutputAccount,
    /// Of a frame as it is given.
    frame: SampleLayout,
    /// Of a slot.
    layout: BatchLayout,
    geometries: Option<Arc<Geometries>>,
    tensors: Arc<OutputLayout>,
    footprint: Footprint,
    strategy: Strategy,
    /// Tensors of submissions that may still be in flight, oldest first: what an asynchronous caller waits for.
    pending: Vec<(SubmissionId, B::Tensor)>,
    finished: Vec<SubmissionId>,
    /// A slot that was waited for, and is for the next frames.
    slot: Option<Fill>,
    fed: u64,
}

impl<B: Backend> Feeder<B> {
    /// Makes a feeder for frames of this layout, and allocates all of its memory.
    ///
    /// # Errors
    /// As [`Loader::new`](super::Loader::new).
    pub fn new(backend: &B, frame: SampleLayout, options: FeederOptions) -> Result<Self, OpenError> {
        let strategy = options.strategy.unwrap_or_else(|| backend.default_push_strategy());
        options.check(strategy)?;
        let layout = staged_layout(&options.preprocess, &frame, options.batch_size)?;
        let geometries = Geometries::new(&options.preprocess, &frame, 0)?.map(Arc::new);
        let spec = LaneSpec {
            layout: layout.clone(),
            preprocess: options.preprocess,
            strategy,
            slots: options.slots,
            outputs: options.outputs,
            fingerprints: false,
            memory: None,
            timing: false,
            step: options.step,
        };
        let backend = backend.for_single_batches();
        let host = HostFields::footprint(&layout, options.outputs);
        let footprint = Footprint { host, ..backend.footprint(&spec)? };
        footprint.within(options.byte_budget)?;
        let mut lane = backend.open_lane(&spec)?;
        let outputs = (0..options.outputs).map(|_| Ok(Output::for_feeder(lane.output()?, &layout)?));
        let outputs = Arc::new(OutputPool::new(outputs.collect::<Result<_, OpenError>>()?, None, Arc::default()));
        Ok(Self {
            lane,
            outputs,
            wanted_outputs: options.outputs,
            account: OutputAccount::new(footprint, options.outputs, options.byte_budget),
            tensors: Arc::new(OutputLayout::new(&spec.preprocess, &layout)?),
            frame,
            layout,
            geometries,
            footprint,
            strategy,
            pending: Vec::with_capacity(options.outputs),
            finished: Vec::with_capacity(options.outputs),
            slot: None,
            fed: 0,
        })
    }

    /// Copies frames into a slot and queues them as one batch. Waits for the device only if no slot is free.
    ///
    /// The batch's [`indices`](Batch::indices) count the frames fed so far, its [`tags`](Batch::tags) are the frames'; its
    /// [`wait`](Batch::wait) returns when the tensor is ready.
    ///
    /// # Errors
    /// [`FeedError`]; nothing was sent.
    pub fn feed<F: AsFrame>(&mut self, frames: &[F]) -> Result<Batch<B>, FeedError> {
        let frames = self.check(frames)?;
        self.feed_checked(&frames)
    }

    /// As [`feed`](Self::feed), if a slot gets free within this time. It looks once in a while, so that `feed` learns of it sooner.
    ///
    /// # Errors
    /// [`FeedError`]; nothing was sent.
    pub fn feed_timeout<F: AsFrame>(&mut self, frames: &[F], timeout: Duration) -> Result<Batch<B>, FeedError> {
        let frames = self.check(frames)?;
        self.ready_timeout(timeout)?;
        self.feed_checked(&frames)
    }

    /// As [`feed`](Self::feed), and gives the thread back while no slot is free. Once submitted the batch is returned at once; await its
    /// [`ready`](Batch::ready) for the tensor.
    ///
    /// # Errors
    /// [`FeedError`]; nothing was sent.
    pub async fn feed_async<F: AsFrame>(&mut self, frames: &[F]) -> Result<Batch<B>, FeedError> {
        let frames = self.check(frames)?;
        self.ready().await?;
        self.feed_checked(&frames)
    }

    /// Has a closure write each of `count` frames straight into the slot, so that nothing of gpufeed's copies them, and queues them as one
    /// batch. It is called once a frame, in order, and writes every field whole: see [`FrameWriter`]. Waits for the device only if no slot
    /// is free; to wait for one otherwise, call [`ready`](Self::ready) or [`ready_timeout`](Self::ready_timeout) before.
    ///
    /// A closure that panics costs nothing but its frames: the panic goes on to the caller, and the feeder can be used again.
    ///
    /// ```
    /// use gpufeed::backend::host::HostBackend;
    /// use gpufeed::{Feeder, FeederOptions, SampleLayout};
    ///
    /// # fn decode(number: usize, out: &mut impl std::io::Write) -> std::io::Result<()> { out.write_all(&[number as u8; 12]) }
    /// let options = FeederOptions { batch_size: 2, ..FeederOptions::default() };
    /// let mut feeder = Feeder::new(&HostBackend::new(), SampleLayout::image(2, 2, 3)?, options)?;
    /// let batch = feeder.feed_with(2, |frame| {
    ///     frame.set_tag(100 + frame.position() as u64);
    ///     decode(frame.position(), frame) // Anything that writes.
    /// })?;
    /// assert_eq!((batch.read()?, batch.tags()), ([[0; 12], [1; 12]].concat(), &[100, 101][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`FillError::Frame`] with the closure's own error, which ends the call; [`FillError::Feed`] for any other reason, among them a
    /// field that was not written whole. Nothing was sent.
    pub fn feed_with<E>(
        &mut self,
        count: usize,
        mut write: impl FnMut(&mut FrameWriter<'_>) -> Result<(), E>,
    ) -> Result<Batch<B>, FillError<E>> {
        self.check_count(count)?;
        loop {
            match self.try_feed(count, &mut write)? {
                Some(batch) => return Ok(batch),
                None => self.reap(Wait::One)?,
            }
        }
    }

    /// Waits until a slot is free, and keeps it for the next frames, which need not wait then. (On GL, where one thread may talk to the
    /// device, it blocks.)
    ///
    /// # Errors
    /// The device's.
    pub async fn ready(&mut self) -> Result<(), FeedError> {
        while !self.has_slot()? {
            match self.pending.first().map(|(_, tensor)| tensor.clone()) {
                Some(tensor) if !tensor.needs_pump() => self.outputs.waiter().wait(tensor).await?,
                // Where one thread may talk to the device, it is this one.
                _ => self.reap(Wait::One)?,
            }
        }
        Ok(())
    }

    /// As [`ready`](Self::ready), on this thread and for no longer than `timeout`. It looks once in a while.
    ///
    /// # Errors
    /// [`FeedError::TimedOut`], and the device's.
    pub fn ready_timeout(&mut self, timeout: Duration) -> Result<(), FeedError> {
        let start = Instant::now();
        while !self.has_slot()? {
            if start.elapsed() >= timeout {
                return Err(FeedError::TimedOut(timeout));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// What a frame is.
    #[must_use]
    pub fn frame(&self) -> &SampleLayout {
        &self.frame
    }

    /// The most frames in a batch.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.layout.batch_size()
    }

    /// The strategy in use.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The memory it was planned to take, in exact bytes.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// The memory it holds now and how often it has allocated. Tensors that were taken out are not its own any more; the next
    /// frames that need one make another.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        self.account.held(self.lane.memory(), self.outputs.taken())
    }
}

impl<B: Backend> Drop for Feeder<B> {
    fn drop(&mut self) {
        self.give_slot_back();
        self.outputs.close();
    }
}
