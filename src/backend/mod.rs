//! The contract between the loader and a device.
//!
//! # Who does what
//!
//! A [`Backend`] is an opened device. [`Backend::open_lane`] makes a [`Lane`]: staging slots, device memory and kernels for one
//! batch layout, one strategy and one kind of preprocessing. The lane is owned by one thread (the loader's pump), and every
//! call into the device happens there; workers only ever see [`Region`](crate::staging::Region)s, which are plain memory.
//!
//! # The way of a slot: `Free -> Filling -> Ready -> InFlight -> Free`
//!
//! 1. [`Lane::begin`] takes a free slot and returns its memory as a [`Fill`]; strategies that make memory for each batch make
//!    it here, and the time counts as theirs. `None` means that no slot is free: [`Lane::reap`] brings them back.
//! 2. The fill's regions are written, on any thread, and committed. [`Fill::finish`](crate::staging::Fill::finish) gives a
//!    [`Filled`], the only thing that can be submitted, or a [`Cancelled`], which must go back through [`Lane::cancel`].
//! 3. [`Lane::submit`] consumes the slot and a free output tensor: the copy and the kernel are recorded and queued, and nothing
//!    waits. On an error the tensor comes back in [`Rejected`], the slot is free again, and nothing of it was sent.
//! 4. [`Lane::reap`] reports submissions that the device has finished, in any order. A slot is not handed out again before the
//!    device has finished reading it.
//!
//! # What is outstanding
//!
//! A submission gives back two things: its slot when the copy has ended, and itself, with its tensor, when all of it has. A lane keeps
//! one record of both, in the order of submission, so that they cannot disagree: a submission is never reported before its slot is
//! back. [`Lane::in_flight`] counts every submission of which anything is outstanding, the report included. Where it is zero, every
//! slot that is not being filled is free, or will never be (after a loss); where [`Lane::begin`] finds no slot because of
//! submissions, it is not zero, and reaping makes progress.
//!
//! # The way of a tensor: `Free -> Written -> Leased -> Free`
//!
//! [`Lane::output`] makes a tensor; the caller pools them. Between `submit` and the caller's use the order of the device's queue is
//! the only synchronisation: a submitted tensor may be used at once by work queued later on the same queue, or, in a lane that works on
//! a queue of its own, once [`Lane::has_arrived`] says so. Where such a lane writes the tensor itself there, nothing orders that behind the
//! caller's work: it says so ([`Tensor::must_be_idle`]), is told when the caller has queued its last use ([`Tensor::given_back`]), and is
//! submitted to again when it is idle. Reading it on the CPU ([`Tensor::read`]) waits for the device; before a tensor has arrived that may
//! give what it held before.
//!
//! # Errors
//!
//! [`DeviceError::Lost`] is final: every later call fails the same way, `begin` hands out no more
//! memory, and dropping the lane still frees everything. Any other error concerns one batch only. No call panics on bad
//! input or a lost device.
//!
//! # Dropping
//!
//! Dropping a lane waits until the device has finished with its memory and frees it. A slot whose regions are still open at
//! that time (a worker stuck in a source) is leaked with a logged error: the one permitted leak. Tensors live on their own.
//!
//! # Three ways in
//!
//! *Staged*: workers fill slots. *Direct*: the device reads the source's own memory ([`StableHostMemory`]) through
//! [`Input::Direct`], and there is no slot. *Pushed*: an application's frames go through the same slots as staged samples. (On wgpu they
//! may also lie in a buffer or a texture of the application's, and their tensors too; no slot is involved then.)

mod completions;
mod consumer;
#[cfg(feature = "cuda")]
pub mod cuda;
mod footprint;
pub mod host;
mod info;
pub mod select;
mod step;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod tiles;
mod times;
#[cfg(feature = "wgpu")]
pub mod wgpu;

pub use crate::strategy::{Strategy, UnknownStrategy};
pub use consumer::{Consumer, Seen};
pub use footprint::{Footprint, MemoryUse};
pub use info::{AdapterInfo, Api, DeviceType, StrategySupport};
#[cfg(feature = "cuda")]
pub use step::CudaBatch;
pub use step::Step;
#[cfg(feature = "wgpu")]
pub use step::WgpuBatch;
pub use times::{GpuSpan, GpuTimes};

use std::sync::Arc;
use std::time::Duration;

use crate::error::{DeviceError, OpenError, Unsupported};
use crate::layout::BatchLayout;
use crate::memory::StableHostMemory;
use crate::preprocess::{Fingerprint, Geometry, Preprocess, TensorDesc};
use crate::staging::{Cancelled, Fill, Filled};

/// An opened device that batches can be fed to. Cheap to clone; clones are the same device.
///
/// Sealed, as are [`Lane`] and [`Tensor`]: the backends are this crate's, so that the contract can grow. What an application adds is a
/// [`Source`](crate::Source), or memory ([`StableHostMemory`]).
pub trait Backend: sealed::Sealed + Clone + Send + Sync + 'static {
    /// The lanes of this backend.
    type Lane: Lane<Tensor = Self::Tensor>;
    /// The tensors of this backend.
    type Tensor: Tensor;
    /// What uses batches in measurements.
    type Consumer: Consumer<Tensor = Self::Tensor>;

    /// The device and its driver.
    fn info(&self) -> &AdapterInfo;

    /// The strategy that serves best where nothing else is known.
    fn default_strategy(&self) -> Strategy;

    /// The same for frames that are pushed and waited for, which have no other batch to be copied beside.
    fn default_push_strategy(&self) -> Strategy {
        self.default_strategy()
    }

    /// Whether the device can run a strategy.
    ///
    /// # Errors
    /// [`Unsupported`] says why not.
    fn supports(&self, strategy: Strategy) -> Result<(), Unsupported>;

    /// Whether a strategy's copies run beside what an application queues on the device, and so are hidden behind its work, and not in turn
    /// with it.
    fn copies_beside(&self, strategy: Strategy) -> bool {
        let _ = strategy;
        false
    }

    /// The bytes a lane would take. Allocates nothing.
    ///
    /// # Errors
    /// [`OpenError::Unsupported`], [`OpenError::Layout`], or [`OpenError::TooLarge`] where the device cannot bind or allocate
    /// such a batch, not even in parts.
    fn footprint(&self, spec: &LaneSpec) -> Result<Footprint, OpenError>;

    /// The same device, for lanes of which every batch is waited for: no latency is traded for throughput there.
    #[must_use]
    fn for_single_batches(&self) -> Self {
        self.clone()
    }

    /// Makes a lane. All staging and device memory is allocated here, except for strategies that allocate per batch.
    ///
    /// # Errors
    /// As [`footprint`](Self::footprint), and [`OpenError::Device`]. Nothing stays allocated.
    fn open_lane(&self, spec: &LaneSpec) -> Result<Self::Lane, OpenError>;

    /// Measures the device's own copy from staging memory to device memory, with no CPU work, in bytes a second.
    ///
    /// # Errors
    /// The device's error.
    fn copy_ceiling(&self, bytes: usize, at_least: Duration) -> Result<f64, DeviceError>;

    /// Measures the driver's copy from ordinary, pageable memory to device memory, in bytes a second; `None` where the device's API
    /// has no such copy.
    ///
    /// # Errors
    /// The device's error.
    fn pageable_ceiling(&self, bytes: usize, at_least: Duration) -> Result<Option<f64>, DeviceError> {
        let _ = (bytes, at_least);
        Ok(None)
    }

    /// Measures how fast a kernel that only copies moves bytes within the device's memory, read and written, in bytes a second:
    /// the ceiling of every kernel. `None` where the device runs no kernels.
    ///
    /// # Errors
    /// The device's error.
    fn kernel_ceiling(&self, at_least: Duration) -> Result<Option<f64>, DeviceError> {
        let _ = at_least;
        Ok(None)
    }

    /// Makes what uses batches in measurements beside a consumer that computes.
    ///
    /// # Errors
    /// The device's error.
    fn consumer(&self) -> Result<Self::Consumer, DeviceError>;
}

/// How long a caller that waits for a tensor looks out before it sleeps: an interrupt's way through the driver takes longer than a
/// small batch.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
const LOOK_OUT: Duration = Duration::from_micros(150);

/// Keeps the traits of this module to the crate.
pub(crate) mod sealed {
    /// Of the crate's own types.
    pub trait Sealed {}
}

/// What a lane is made for. Made with [`new`](Self::new) and update syntax, `LaneSpec { slots: 4, ..LaneSpec::new(..) }`, which later
/// fields leave valid.
#[derive(Clone)]
pub struct LaneSpec {
    /// Samples and batch size.
    pub layout: BatchLayout,
    /// What the device does with the bytes.
    pub preprocess: Preprocess,
    /// How the bytes get there.
    pub strategy: Strategy,
    /// How many batches can be filled and copied at once.
    pub slots: usize,
    /// How many output tensors the caller will make.
    pub outputs: usize,
    /// Whether the device also computes a fingerprint of each sample's delivered bytes, for each of its fields there.
    pub fingerprints: bool,
    /// The source's own memory, for strategies that read it directly.
    pub memory: Option<Arc<dyn StableHostMemory>>,
    /// Whether the device measures its own copies and kernels: see [`Lane::gpu_times`].
    pub timing: bool,
    /// The application's own commands behind those of every batch.
    pub step: Option<Step>,
}

impl LaneSpec {
    /// Two slots and two outputs, no fingerprints, no timing, no memory of a source and no step.
    #[must_use]
    pub fn new(layout: BatchLayout, preprocess: Preprocess, strategy: Strategy) -> Self {
        Self {
            layout,
            preprocess,
            strategy,
            slots: 2,
            outputs: 2,
            fingerprints: false,
            memory: None,
            timing: false,
            step: None,
        }
    }

    /// Refuses a step that a device of this kind cannot record, and a tensor that nothing makes.
    fn check_step(&self, api: Api) -> Result<(), Unsupported> {
        step::check_step(self.step.as_ref(), &self.preprocess, self.strategy, api)
    }

    /// The number of an output's fingerprints: of each field on the device, one for each sample of a full batch. None where they are not asked
    /// for.
    pub(crate) fn fingerprint_count(&self) -> usize {
        let fields = if self.fingerprints { self.layout.sample().on_device().count() } else { 0 };
        fields.saturating_mul(self.layout.batch_size())
    }
}

/// The bytes that a submission sends.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A filled slot.
    Staged(Filled),
    /// Samples within the lane's [`StableHostMemory`], for strategies that read it directly. A lane has room for [`slots`](LaneSpec::slots)
    /// and [`outputs`](LaneSpec::outputs) together such submissions in flight, one that copies on a queue of its own for
    /// [`slots`](LaneSpec::slots), and refuses more.
    Direct {
        /// The first byte of each.
        offsets: &'a [u64],
        /// With a pipeline the [words](Geometry::words) of each one's geometry, which a slot would hold; none without.
        records: &'a [[f32; Geometry::WORDS]],
    },
}

/// A submission, to be matched with what [`Lane::reap`] reports. Counted from zero within a lane.
pub type SubmissionId = u64;

/// How long [`Lane::reap`] may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Look and return.
    Poll,
    /// Return when at least one submission in flight has finished. A backend that cannot wait polls.
    One,
    /// Return when at most this many submissions in flight have not finished.
    AtMost(usize),
    /// Return when all submissions in flight have finished.
    All,
}

/// Refuses samples of several fields on the device, which lie apart in a batch, and ragged ones, where it reads them in place.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn check_direct(spec: &LaneSpec) -> Result<(), Unsupported> {
    let (strategy, sample) = (spec.strategy, spec.layout.sample());
    // The geometry that a pipeline adds is sent beside.
    let added = usize::from(matches!(spec.preprocess, Preprocess::Pipeline(_)));
    let fields = sample.on_device().count().saturating_sub(added);
    if let Some(field) = sample.on_device().find(|field| strategy.is_direct() && field.is_ragged()) {
        let reason = format!("it reads samples of one size in place, and field `{}` is ragged", field.name());
        return Err(Unsupported { strategy, reason });
    }
    if strategy.is_direct() && fields > 1 {
        let reason = format!("it reads one field of each sample in place, and these have {fields} on the device");
        return Err(Unsupported { strategy, reason });
    }
    Ok(())
}

/// Refuses a batch that has no samples, too many, or more than were filled.
fn check_filled(layout: &BatchLayout, filled: &Filled, samples: usize) -> Result<(), DeviceError> {
    check_samples(layout, samples)?;
    match (filled.bytes(), layout.payload(samples)) {
        (bytes, needed) if bytes < needed => Err(DeviceError::Refused {
            message: format!("{bytes} bytes are filled and {samples} samples need {needed}"),
        }),
        _ => Ok(()),
    }
}

/// Refuses samples of a direct batch without an offset each, and with a pipeline without a geometry each.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn check_lists(
    spec: &LaneSpec,
    samples: usize,
    offsets: &[u64],
    records: &[[f32; Geometry::WORDS]],
) -> Result<(), DeviceError> {
    check_samples(&spec.layout, samples)?;
    let wanted = if matches!(spec.preprocess, Preprocess::Pipeline(_)) { samples } else { 0 };
    if offsets.len() == samples && records.len() == wanted {
        return Ok(());
    }
    let (offsets, records) = (offsets.len(), records.len());
    let message =
        format!("{offsets} offsets and {records} geometries were given for {samples} samples that have {wanted}");
    Err(DeviceError::Refused { message })
}

/// Refuses a batch that has no samples, or too many.
fn check_samples(layout: &BatchLayout, samples: usize) -> Result<(), DeviceError> {
    match layout.batch_size() {
        most if samples == 0 || samples > most => {
            Err(DeviceError::Refused { message: format!("{samples} samples do not make a batch of at most {most}") })
        }
        _ => Ok(()),
    }
}

/// A batch on its way: queued, not waited for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Submitted<T> {
    /// What [`Lane::reap`] will report.
    pub id: SubmissionId,
    /// The tensor that is being written.
    pub tensor: T,
}

/// A batch that was not sent. The slot is free again.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rejected<T> {
    /// Why.
    pub error: DeviceError,
    /// The output tensor, unchanged.
    pub tensor: T,
}

/// Slots, device memory and kernels for one layout and one strategy. Owned by one thread. See the [module](self) for the contract.
pub trait Lane: sealed::Sealed + Send + 'static {
    /// The tensors of this lane's backend.
    type Tensor: Tensor;

    /// Makes one output tensor.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] or [`DeviceError::Lost`]; nothing stays allocated.
    fn output(&mut self) -> Result<Self::Tensor, DeviceError>;

    /// Takes a slot to fill, or `None` if none is free. A strategy that reads memory directly has none at all.
    ///
    /// # Errors
    /// The device's error; no slot is taken then.
    fn begin(&mut self) -> Result<Option<Fill>, DeviceError>;

    /// Gives back a slot that must not be sent.
    fn cancel(&mut self, slot: Cancelled);

    /// Queues the copy and the kernel for the first `samples` samples. Never waits for the device.
    ///
    /// # Errors
    /// [`Rejected`] with the output; nothing was sent and the slot is free.
    fn submit(
        &mut self,
        input: Input<'_>,
        samples: usize,
        output: Self::Tensor,
    ) -> Result<Submitted<Self::Tensor>, Rejected<Self::Tensor>>;

    /// Appends the submissions that have finished since the last call.
    ///
    /// # Errors
    /// The device's error; what had finished before is still appended.
    fn reap(&mut self, wait: Wait, finished: &mut Vec<SubmissionId>) -> Result<(), DeviceError>;

    /// Whether a submitted tensor may be used by work that is queued from now on. Where one queue orders everything it may be at
    /// once; a lane that copies on a queue of its own says so when the copies have ended, which [`reap`](Self::reap) notices.
    ///
    /// # Errors
    /// Why the batch will never arrive, once; it counts as finished then, and its slot is free.
    fn has_arrived(&mut self, id: SubmissionId) -> Result<bool, DeviceError> {
        let _ = id;
        Ok(true)
    }

    /// Waits until the oldest submission that has not arrived may have, or for this long. Returns at once where nothing is under way.
    fn await_arrival(&mut self, at_most: Duration) {
        let _ = at_most;
    }

    /// The number of submissions of which anything is outstanding: the slot, the tensor, or the report that they are finished. Never
    /// zero while a slot may still come back from the device.
    fn in_flight(&self) -> usize;

    /// What the lane holds now.
    fn memory(&self) -> MemoryUse;

    /// What the device's own clock measured so far, if the lane was opened for it and the device has a clock that can be
    /// believed. Strategies that leave the copy to their API have it measured with neither.
    fn gpu_times(&mut self) -> Option<GpuTimes> {
        None
    }

    /// Appends when the device worked on each submission whose times were read since the last call. A lane keeps those of as many
    /// as can be in flight; it has none where [`gpu_times`](Self::gpu_times) has none.
    fn gpu_spans(&mut self, spans: &mut Vec<GpuSpan>) {
        let _ = spans;
    }
}

/// Device memory that holds a batch. Clones are the same memory.
pub trait Tensor: sealed::Sealed + Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Whether only the loader's pump thread may talk to the device, while there is one: so it is on GL.
    fn needs_pump(&self) -> bool {
        false
    }

    /// Waits until the device has written the tensor.
    ///
    /// # Errors
    /// The device's error.
    fn wait(&self) -> Result<(), DeviceError>;

    /// Whether the device has written the tensor: looks, and never waits.
    ///
    /// # Errors
    /// The device's error.
    fn is_written(&self) -> Result<bool, DeviceError>;

    /// Whether everything that was queued with the tensor, by the loader or through its guards, has ended: a write of the next
    /// batch would wait for nothing. Looks, and never waits. One that is not idle may be submitted all the same, and the device
    /// orders the two, unless it [must be idle](Self::must_be_idle); the loader prefers those that are. Where one queue orders
    /// everything, all are alike.
    ///
    /// # Errors
    /// The device's error.
    fn is_idle(&self) -> Result<bool, DeviceError> {
        Ok(true)
    }

    /// Whether nothing may be submitted to the tensor before it is idle, since the device would not order the two.
    fn must_be_idle(&self) -> bool {
        false
    }

    /// The caller has queued its last use of the tensor, and gives it back to be written again.
    fn given_back(&self) {}

    /// Whether the caller still has a guard of the tensor, so that a submission to it would be refused. A guard that was
    /// forgotten holds it for ever, and costs this tensor only.
    fn is_held(&self) -> bool {
        false
    }

    /// Waits for the device and reads the tensor's elements back, without padding.
    ///
    /// # Errors
    /// The device's error.
    fn read(&self, desc: &TensorDesc) -> Result<Vec<u8>, DeviceError>;

    /// Waits for the device and reads the first `count` fingerprints that it computed over the delivered bytes: field after field, and of
    /// each field one for each sample of a full batch, where those behind the last sample of a shorter one are of no meaning. The first
    /// field's are of the bytes that arrived, before preprocessing; the others' are of the output. `None` if the lane was opened without.
    ///
    /// # Errors
    /// The device's error.
    fn fingerprints(&self, count: usize) -> Result<Option<Vec<Fingerprint>>, DeviceError>;
}
