//! An opened device: gpufeed's own, or an application's.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};

use super::adapters;
use super::driver::{self, BatchCopy, Nvml, Stream};
use super::health::LostFlag;
use super::kernel::Modules;
use super::tuning::Tuning;
use crate::backend::{AdapterInfo, select};
use crate::error::{DeviceError, OpenError};

/// How `registered` brings scattered samples to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatherMethod {
    /// One call that queues a copy for each sample (`cuMemcpyBatchAsync`): the fastest, since copy engines make larger requests of
    /// the bus than kernels do, at about a microsecond of CPU a sample. Needs a driver of CUDA 12.8 or later.
    Batched,
    /// One call for each sample: several microseconds of CPU a sample, which bounds the throughput.
    Each,
    /// The normalisation kernel reads host memory itself: a few percent slower than [`Batched`](Self::Batched), and a batch
    /// costs the CPU little more than a launch. Without normalisation this is the same as [`Each`](Self::Each).
    Kernel,
}

/// A CUDA device that batches can be fed to. Clones are the same device.
#[derive(Clone, Debug)]
pub struct CudaBackend {
    inner: Arc<Inner>,
    gather: GatherMethod,
    tuning: Tuning,
}

#[derive(Debug)]
struct Inner {
    info: AdapterInfo,
    modules: Modules,
    batch: Option<BatchCopy>,
    /// Reading back must wait for nobody's work but what it reads.
    reads: Arc<Stream>,
    lost: LostFlag,
    // Last: everything above is freed in it.
    context: Arc<CudaContext>,
}

impl CudaBackend {
    /// Opens a device chosen by text: see [`select`](mod@crate::backend::select). Its primary context is used, which it shares
    /// with everything in the process that uses the CUDA runtime.
    ///
    /// # Errors
    /// [`OpenError::NoDevice`] with the reason in one line where there is no driver, and where nothing matches;
    /// [`OpenError::Option`] where several cards do; [`OpenError::Device`] where the driver refuses.
    pub fn open(wanted: &str) -> Result<Self, OpenError> {
        let no_device = |found| OpenError::NoDevice { wanted: wanted.to_owned(), found };
        let all = adapters::find().map_err(|reason| no_device(format!("none: {reason}")))?;
        let info = select::select(&all, wanted)?;
        let index = all.iter().position(|other| other.id == info.id).unwrap_or(0);
        let lost = LostFlag::default();
        let context = CudaContext::new(index)
            .map_err(|error| lost.allocation(&format!("{} cannot be opened", info.id), 0, error))?;
        Self::new(context, info.clone())
    }

    /// Takes an application's context. Nothing of it is changed: gpufeed makes streams and events of its own in it.
    ///
    /// # Errors
    /// [`OpenError::NoDevice`] where the driver is too old, [`OpenError::Device`] where it refuses.
    pub fn from_context(context: Arc<CudaContext>) -> Result<Self, OpenError> {
        let id = format!("cuda:{}", context.ordinal());
        let version = driver::start().map_err(|reason| OpenError::NoDevice { wanted: id.clone(), found: reason })?;
        let lost = LostFlag::new(&context);
        let device = driver::of_context(&context).map_err(|error| lost.error("the context's device", error))?;
        let info = adapters::describe(id, &device, version, Nvml::load().as_ref());
        Self::new(context, info)
    }

    fn new(context: Arc<CudaContext>, info: AdapterInfo) -> Result<Self, OpenError> {
        let lost = LostFlag::new(&context);
        let version = driver::start().map_err(|reason| DeviceError::Refused { message: reason })?;
        let batch = BatchCopy::load(version);
        let modules = Modules::load(&context).map_err(|error| lost.error("the kernels cannot be loaded", error))?;
        let reads = Stream::new(&context).map_err(|error| lost.error("a stream cannot be made", error))?;
        let gather = if batch.is_some() { GatherMethod::Batched } else { GatherMethod::Kernel };
        Ok(Self {
            inner: Arc::new(Inner { info, modules, batch, reads, lost, context }),
            gather,
            tuning: Tuning::default(),
        })
    }

    /// The same device, with another way for `registered` to gather samples. The default is the fastest that the driver has.
    ///
    /// # Errors
    /// [`OpenError::Option`] for [`GatherMethod::Batched`] where the driver is older than CUDA 12.8.
    pub fn with_gather(&self, gather: GatherMethod) -> Result<Self, OpenError> {
        if gather == GatherMethod::Batched && self.inner.batch.is_none() {
            let reason = format!("batched copies need CUDA 12.8, and this is {}", self.inner.info.driver_info);
            return Err(OpenError::Option { option: "gather", reason });
        }
        Ok(Self { gather, ..self.clone() })
    }

    /// The same device, whose lanes run their kernels in another way. For measuring what is best on a device.
    #[must_use]
    pub fn with_tuning(&self, tuning: Tuning) -> Self {
        Self { tuning, ..self.clone() }
    }

    /// How lanes run their kernels.
    #[must_use]
    pub fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// How `registered` gathers samples.
    #[must_use]
    pub fn gather(&self) -> GatherMethod {
        self.gather
    }

    /// The context. gpufeed leaves its recorded errors alone: those that cudarc notes in a drop are for the application to find.
    #[must_use]
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.inner.context
    }

    /// The device and its driver, and the strategies it can run.
    #[must_use]
    pub fn info(&self) -> &AdapterInfo {
        &self.inner.info
    }

    /// Treats the device as lost from now on: everything on it fails with [`DeviceError::Lost`]. For tests of how a program takes
    /// that. The device itself goes on, since a real loss would end the context of everybody else in the process.
    pub fn lose(&self, reason: &str) {
        self.inner.lost.set(reason);
    }

    pub(super) fn lost(&self) -> &LostFlag {
        &self.inner.lost
    }

    pub(super) fn modules(&self) -> &Modules {
        &self.inner.modules
    }

    pub(super) fn batch(&self) -> Option<BatchCopy> {
        self.inner.batch.filter(|_| self.gather == GatherMethod::Batched)
    }

    pub(super) fn reads(&self) -> &CudaStream {
        &self.inner.reads
    }
}
