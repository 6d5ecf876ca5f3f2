//! Pushed feeding: an application's own frames and requests, on the same slots, strategies and kernels.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::account::OutputAccount;
use super::batch::Batch;
use super::geometry::{Geometries, staged_layout};
use super::host_fields::HostFields;
use super::options::{LoaderOptions, check_counts};
use super::outputs::{Output, OutputPool};
use crate::backend::{Backend, Footprint, Input, Lane, LaneSpec, MemoryUse, Strategy, SubmissionId, Wait};
use crate::error::{DeviceError, LayoutError, OpenError, Unsupported};
use crate::layout::{BatchLayout, Placement, SampleLayout};
use crate::preprocess::{OutputLayout, Preprocess};
use crate::staging::{Fill, Finish};

/// How often a wait that may end in time looks for a free slot.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Options of a [`Feeder`].
///
/// # Sizing
///
/// With one slot a frame waits for the copy of the one before it; two let the next be filled meanwhile. Outputs bound how many batches
/// the application holds at once.
#[derive(Clone, Debug)]
pub struct FeederOptions {
    /// The most frames in a batch.
    pub batch_size: usize,
    /// Staging slots. At least 1.
    pub slots: usize,
    /// Output tensors: batches that the application holds at once. At least 1.
    pub outputs: usize,
    /// How bytes get to the device; `None` takes the backend's default.
    pub strategy: Option<Strategy>,
    /// What the device does with the bytes. A pipeline draws what is random by the number of the frame, with seed and epoch zero.
    pub preprocess: Preprocess,
    /// The most bytes (staging, device and outputs together) it may hold; `None` for no bound. Tensors that were
    /// [taken out](Batch::into_tensor) are the caller's and do not count.
    pub byte_budget: Option<u64>,
}

impl Default for FeederOptions {
    fn default() -> Self {
        Self {
            batch_size: 1,
            slots: 3,
            outputs: 4,
            strategy: None,
            preprocess: Preprocess::default(),
            byte_budget: None,
        }
    }
}

/// Why frames were not fed. Nothing was sent, and the next call can succeed unless the device is lost.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// No frames, or more than a batch holds.
    #[error("{got} frames were given, and a batch holds 1 to {most}")]
    Count {
        /// How many were given.
        got: usize,
        /// The batch size.
        most: usize,
    },
    /// A frame of another size. Where the last field is [ragged](crate::Field::ragged) a frame ends behind any of its rows; where another
    /// one is, its rows cannot be told from a frame's bytes.
    #[error("frame {frame} has {got} bytes, and {expected} are needed")]
    Length {
        /// Which frame.
        frame: usize,
        /// Its bytes.
        got: usize,
        /// The bytes of a sample, of the largest where it is ragged.
        expected: usize,
    },
    /// The application holds every output: drop a batch, or raise `outputs`.
    #[error("all {outputs} output tensors are held by the caller: drop a batch or raise `outputs`")]
    AllTensorsLeased {
        /// How many outputs there are.
        outputs: usize,
    },
    /// No slot got free within the time that the caller gave.
    #[error("no slot was free within {0:?}")]
    TimedOut(Duration),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Feeds frames that an application has in its hands: no dataset, no epochs, no threads. The calling thread copies the frames into a
/// slot and queues the rest.
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
    fed: u64,
}

impl<B: Backend> Feeder<B> {
    /// Makes a feeder for frames of this layout, and allocates all of its memory.
    ///
    /// # Errors
    /// As [`Loader::new`](super::Loader::new).
    pub fn new(backend: &B, frame: SampleLayout, options: FeederOptions) -> Result<Self, OpenError> {
        let strategy = options.strategy.unwrap_or_else(|| backend.default_strategy());
        check(&frame, &options, strategy)?;
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
        };
        let backend = backend.for_single_batches();
        let host = HostFields::footprint(&layout, options.outputs);
        let footprint = Footprint { host, ..backend.footprint(&spec)? };
        footprint.within(options.byte_budget)?;
        let mut lane = backend.open_lane(&spec)?;
        let outputs = (0..options.outputs).map(|_| Ok(Output::new(lane.output()?, &layout, options.batch_size)?));
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
            fed: 0,
        })
    }

    /// Copies frames into a slot and queues them as one batch. Waits for the device only if no slot is free.
    ///
    /// The batch's [`indices`](Batch::indices) count the frames fed so far; its [`wait`](Batch::wait) returns when the tensor is ready.
    ///
    /// # Errors
    /// [`FeedError`]; nothing was sent.
    pub fn feed<F: AsRef<[u8]>>(&mut self, frames: &[F]) -> Result<Batch<B>, FeedError> {
        let frames = self.check(frames)?;
        loop {
            match self.try_feed(&frames)? {
                Some(batch) => return Ok(batch),
                None => self.reap(Wait::One)?,
            }
        }
    }

    /// As [`feed`](Self::feed), if a slot gets free within this time. It looks once in a while, so that `feed` learns of it sooner.
    ///
    /// # Errors
    /// [`FeedError`]; nothing was sent.
    pub fn feed_timeout<F: AsRef<[u8]>>(&mut self, frames: &[F], timeout: Duration) -> Result<Batch<B>, FeedError> {
        let frames = self.check(frames)?;
        let start = Instant::now();
        loop {
            if let Some(batch) = self.try_feed(&frames)? {
                return Ok(batch);
            }
            if start.elapsed() >= timeout {
                return Err(FeedError::TimedOut(timeout));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// As [`feed`](Self::feed), and gives the thread back while no slot is free. Once submitted the batch is returned at once; await its
    /// [`ready`](Batch::ready) for the tensor.
    ///
    /// # Errors
    /// [`FeedError`]; nothing was sent.
    pub async fn feed_async<F: AsRef<[u8]>>(&mut self, frames: &[F]) -> Result<Batch<B>, FeedError> {
        let frames = self.check(frames)?;
        loop {
            if let Some(batch) = self.try_feed(&frames)? {
                return Ok(batch);
            }
            match self.pending.first().map(|(_, tensor)| tensor.clone()) {
                Some(tensor) => self.outputs.waiter().wait(tensor).await?,
                None => self.reap(Wait::One)?,
            }
        }
    }

    /// Feeds frames that were checked, if a slot is free now.
    fn try_feed(&mut self, frames: &[&[u8]]) -> Result<Option<Batch<B>>, FeedError> {
        let output = self.take_output()?;
        match self.begin() {
            Ok(Some(fill)) => self.send(frames, fill, output).map(Some),
            Ok(None) => {
                self.outputs.put(output);
                Ok(None)
            }
            Err(error) => {
                self.outputs.put(output);
                Err(error.into())
            }
        }
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

    /// The bytes of each frame, which are asked for once.
    fn check<'f, F: AsRef<[u8]>>(&self, frames: &'f [F]) -> Result<Vec<&'f [u8]>, FeedError> {
        let (most, sample) = (self.layout.batch_size(), &self.frame);
        if frames.is_empty() || frames.len() > most {
            return Err(FeedError::Count { got: frames.len(), most });
        }
        let frames: Vec<&[u8]> = frames.iter().map(AsRef::as_ref).collect();
        match frames.iter().position(|frame| !sample.is_pushed_as(frame.len())) {
            Some(frame) => Err(FeedError::Length { frame, got: frames[frame].len(), expected: sample.pushed_bytes() }),
            None => Ok(frames),
        }
    }

    /// A free output, or a new one in place of one that was taken out.
    fn take_output(&mut self) -> Result<Output<B::Tensor>, FeedError> {
        if let Some(output) = self.outputs.take() {
            return Ok(output);
        }
        if self.outputs.size() >= self.wanted_outputs {
            return Err(FeedError::AllTensorsLeased { outputs: self.wanted_outputs });
        }
        self.account.check(self.lane.memory(), self.outputs.taken())?;
        let output = Output::new(self.lane.output()?, &self.layout, self.layout.batch_size())?;
        self.outputs.grow();
        Ok(output)
    }

    /// A slot, if one is free now.
    fn begin(&mut self) -> Result<Option<Fill>, DeviceError> {
        if self.lane.in_flight() > 0 {
            self.reap(Wait::Poll)?;
        }
        self.lane.begin()
    }

    fn reap(&mut self, wait: Wait) -> Result<(), DeviceError> {
        let result = self.lane.reap(wait, &mut self.finished);
        self.pending.retain(|(id, _)| !self.finished.contains(id));
        self.finished.clear();
        result
    }

    /// Fills the slot and submits it.
    fn send(&mut self, frames: &[&[u8]], mut fill: Fill, mut output: Output<B::Tensor>) -> Result<Batch<B>, FeedError> {
        let mut region = fill.take_region(&self.layout, frames.len());
        for (position, &frame) in frames.iter().enumerate() {
            let (mut writer, mut rest) = (region.writer(position, output.host.bytes_mut()), frame);
            if let Some(geometries) = &self.geometries {
                let written = geometries.write(self.fed + position as u64, 0, &mut writer);
                debug_assert!(written.is_ok());
            }
            for (number, field) in self.frame.written().enumerate() {
                let (bytes, others) = rest.split_at(field.byte_len().min(rest.len()));
                // `check` compared the lengths.
                let written = writer.field(number).and_then(|mut writer| writer.write(bytes));
                debug_assert!(written.is_ok());
                rest = others;
            }
            let finished = writer.finish();
            debug_assert!(finished.is_ok());
        }
        output.host.pack(frames.len());
        region.commit();
        let Finish::Filled(filled) = fill.finish() else {
            self.outputs.put(output);
            return Err(DeviceError::Refused { message: "the slot is still being filled".to_owned() }.into());
        };
        output.indices.clear();
        output.indices.extend(self.fed..self.fed + frames.len() as u64);
        let Output { tensor, indices, host } = output;
        match self.lane.submit(Input::Staged(filled), frames.len(), tensor) {
            Ok(submitted) => {
                self.pending.push((submitted.id, submitted.tensor.clone()));
                self.fed += frames.len() as u64;
                let output = Output { tensor: submitted.tensor, indices, host };
                let (pool, tensors) = (Arc::clone(&self.outputs), Arc::clone(&self.tensors));
                let batch = Batch::new(output, pool, tensors, submitted.id, 0, Instant::now());
                Ok(batch.with_geometries(self.geometries.clone()))
            }
            Err(rejected) => {
                self.outputs.put(Output { tensor: rejected.tensor, indices, host });
                Err(rejected.error.into())
            }
        }
    }
}

impl<B: Backend> Drop for Feeder<B> {
    fn drop(&mut self) {
        self.outputs.close();
    }
}

/// What can be refused before anything is made.
fn check(frame: &SampleLayout, options: &FeederOptions, strategy: Strategy) -> Result<(), OpenError> {
    check_counts(&[
        ("batch_size", options.batch_size, usize::MAX),
        ("slots", options.slots, LoaderOptions::MAX_POOLED),
        ("outputs", options.outputs, LoaderOptions::MAX_POOLED),
    ])?;
    if strategy.is_direct() {
        let reason = "it reads a dataset in place; frames are pushed through slots".to_owned();
        return Err(Unsupported { strategy, reason }.into());
    }
    if let Some(field) = frame.fields().iter().find(|field| field.placement() == Placement::Host) {
        let reason = "frames have fields on the device only";
        return Err(LayoutError::FieldName { name: field.name().to_owned(), reason }.into());
    }
    Ok(())
}
