//! One loader type for programs that run on whatever device is there.
//!
//! A thin enum over the typed [`Loader`]s: made once, by [`open`] or [`AnyBackend::open`]. Whoever knows their backend uses
//! [`Loader`] itself.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
#[cfg(feature = "cuda")]
use crate::backend::cuda::adapters as cuda_adapters;
use crate::backend::host::{HostBackend, host_info};
#[cfg(feature = "wgpu")]
use crate::backend::wgpu::WgpuBackend;
#[cfg(feature = "wgpu")]
use crate::backend::wgpu::adapters as wgpu_adapters;
use crate::backend::{AdapterInfo, Api, Backend, Footprint, MemoryUse, Strategy, select};
use crate::error::{DeviceError, LoadError, OpenError, Unsupported};
use crate::loader::{
    BadSampleReport, Batch, Canceller, Epoch, Loader, LoaderOptions, LoaderStats, Monitor, ResumeError, ResumeToken,
    Verdict,
};
use crate::measure::{AutoOptions, Tuned, tune};
use crate::preprocess::{DType, Fingerprint, TensorDesc};
use crate::source::Source;

#[cfg(not(feature = "wgpu"))]
const fn wgpu_adapters() -> Vec<AdapterInfo> {
    Vec::new()
}

#[cfg(not(feature = "cuda"))]
const fn cuda_adapters() -> Vec<AdapterInfo> {
    Vec::new()
}

/// Every device there is, without opening one: those reached through wgpu, then through CUDA, then the host.
#[must_use]
pub fn devices() -> Vec<AdapterInfo> {
    wgpu_adapters().into_iter().chain(cuda_adapters()).chain([host_info()]).collect()
}

/// Opens the device chosen by text and makes a loader on it.
///
/// `wanted` is `auto` (the best there is; the host if there is nothing else), an API (`vulkan`), an id (`vulkan:0`, `host`), an index into
/// [`devices`], or a part of a device's name. What was chosen stands in [`AnyLoader::info`].
///
/// # Errors
/// [`OpenError::NoDevice`], and what [`Loader::new`] reports.
pub fn open(wanted: &str, source: Arc<dyn Source>, options: LoaderOptions) -> Result<AnyLoader, OpenError> {
    AnyBackend::open(wanted)?.loader(source, options)
}

/// As [`open`], with the strategy and the number of workers that are measured to be best here, within two seconds: see [`tune`].
///
/// ```
/// use std::sync::Arc;
/// use gpufeed::{AutoOptions, LoaderOptions, SampleLayout, source::random_images};
///
/// # fn main() -> Result<(), gpufeed::OpenError> {
/// let images = Arc::new(random_images(SampleLayout::image(32, 32, 3)?, 256, 1)?);
/// let (loader, tuned) = gpufeed::open_auto("host", images, LoaderOptions::default(), &AutoOptions::default())?;
/// println!("{} with {} workers: {}", tuned.strategy, tuned.workers, tuned.why);
/// # assert_eq!(loader.strategy(), tuned.strategy);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`open`].
pub fn open_auto(
    wanted: &str,
    source: Arc<dyn Source>,
    options: LoaderOptions,
    auto: &AutoOptions,
) -> Result<(AnyLoader, Tuned), OpenError> {
    let backend = AnyBackend::open(wanted)?;
    let tuned = backend.tune(&source, options, auto)?;
    Ok((backend.loader(source, tuned.options.clone())?, tuned))
}

macro_rules! each {
    ($kind:ident, $value:expr, $inner:ident => $call:expr) => {
        match $value {
            $kind::Host($inner) => $call,
            #[cfg(feature = "wgpu")]
            $kind::Wgpu($inner) => $call,
            #[cfg(feature = "cuda")]
            $kind::Cuda($inner) => $call,
        }
    };
}

/// As `each`, with a result of the same variant of another enum.
macro_rules! wrap {
    ($value:expr, $inner:ident => $call:expr, $to:ident) => {
        match $value {
            Self::Host($inner) => $call.map(|result| result.map($to::Host)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu($inner) => $call.map(|result| result.map($to::Wgpu)),
            #[cfg(feature = "cuda")]
            Self::Cuda($inner) => $call.map(|result| result.map($to::Cuda)),
        }
    };
}

/// An opened device of any backend.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyBackend {
    /// Host memory.
    Host(HostBackend),
    /// Vulkan, Metal, DX12 or GL.
    #[cfg(feature = "wgpu")]
    Wgpu(WgpuBackend),
    /// CUDA.
    #[cfg(feature = "cuda")]
    Cuda(CudaBackend),
}

impl AnyBackend {
    /// Opens the device chosen by text, as [`open`] does.
    ///
    /// # Errors
    /// [`OpenError::NoDevice`] lists what there is; [`OpenError::Device`] where the driver refuses.
    pub fn open(wanted: &str) -> Result<Self, OpenError> {
        // The id of an API loads the drivers of that API only.
        match select::api_of(wanted) {
            Some(api) => Self::open_api(api, wanted),
            None => {
                let all = devices();
                let chosen = select::select(&all, wanted)?;
                Self::open_api(chosen.api, &chosen.id)
            }
        }
    }

    fn open_api(api: Api, wanted: &str) -> Result<Self, OpenError> {
        match api {
            Api::Host => Ok(Self::Host(HostBackend::new())),
            #[cfg(feature = "cuda")]
            Api::Cuda => CudaBackend::open(wanted).map(Self::Cuda).map_err(|error| match error {
                // Why there is none, and what there is instead.
                OpenError::NoDevice { wanted, found: reason } => {
                    let found = devices().iter().map(|info| format!("{} {}", info.id, info.name)).collect::<Vec<_>>();
                    OpenError::NoDevice { wanted, found: format!("{} (CUDA: {reason})", found.join(", ")) }
                }
                other => other,
            }),
            #[cfg(not(feature = "cuda"))]
            Api::Cuda => Err(select::no_device(wanted, &devices())),
            #[cfg(feature = "wgpu")]
            _ => WgpuBackend::open(wanted).map(Self::Wgpu).map_err(|error| match error {
                // The others are there as well.
                OpenError::NoDevice { .. } => select::no_device(wanted, &devices()),
                other => other,
            }),
            #[cfg(not(feature = "wgpu"))]
            _ => Err(select::no_device(wanted, &devices())),
        }
    }

    /// The device and its driver.
    #[must_use]
    pub fn info(&self) -> &AdapterInfo {
        each!(Self, self, backend => Backend::info(backend))
    }

    /// The strategy used where none is asked for.
    #[must_use]
    pub fn default_strategy(&self) -> Strategy {
        each!(Self, self, backend => backend.default_strategy())
    }

    /// Whether the device can run a strategy.
    ///
    /// # Errors
    /// [`Unsupported`] says why not.
    pub fn supports(&self, strategy: Strategy) -> Result<(), Unsupported> {
        each!(Self, self, backend => backend.supports(strategy))
    }

    /// Chooses strategy and number of workers for a loader of `source` on this device, as [`tune`].
    ///
    /// # Errors
    /// As [`tune`].
    pub fn tune(
        &self,
        source: &Arc<dyn Source>,
        options: LoaderOptions,
        auto: &AutoOptions,
    ) -> Result<Tuned, OpenError> {
        each!(Self, self, backend => tune(backend, source, options, auto))
    }

    /// Makes a loader on this device.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn loader(&self, source: Arc<dyn Source>, options: LoaderOptions) -> Result<AnyLoader, OpenError> {
        match self {
            Self::Host(backend) => Loader::new(backend, source, options).map(AnyLoader::Host),
            #[cfg(feature = "wgpu")]
            Self::Wgpu(backend) => Loader::new(backend, source, options).map(AnyLoader::Wgpu),
            #[cfg(feature = "cuda")]
            Self::Cuda(backend) => Loader::new(backend, source, options).map(AnyLoader::Cuda),
        }
    }
}

/// A loader on a device of any backend.
#[non_exhaustive]
pub enum AnyLoader {
    /// Host memory.
    Host(Loader<HostBackend>),
    /// Vulkan, Metal, DX12 or GL.
    #[cfg(feature = "wgpu")]
    Wgpu(Loader<WgpuBackend>),
    /// CUDA.
    #[cfg(feature = "cuda")]
    Cuda(Loader<CudaBackend>),
}

impl AnyLoader {
    /// Starts epoch number `epoch`, as [`Loader::epoch`].
    pub fn epoch(&mut self, epoch: u64) -> AnyEpoch<'_> {
        match self {
            Self::Host(loader) => AnyEpoch::Host(loader.epoch(epoch)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu(loader) => AnyEpoch::Wgpu(loader.epoch(epoch)),
            #[cfg(feature = "cuda")]
            Self::Cuda(loader) => AnyEpoch::Cuda(loader.epoch(epoch)),
        }
    }

    /// Goes on where a token was made, as [`Loader::resume`].
    ///
    /// # Errors
    /// As [`Loader::resume`].
    pub fn resume(&mut self, token: &ResumeToken) -> Result<AnyEpoch<'_>, ResumeError> {
        match self {
            Self::Host(loader) => loader.resume(token).map(AnyEpoch::Host),
            #[cfg(feature = "wgpu")]
            Self::Wgpu(loader) => loader.resume(token).map(AnyEpoch::Wgpu),
            #[cfg(feature = "cuda")]
            Self::Cuda(loader) => loader.resume(token).map(AnyEpoch::Cuda),
        }
    }

    /// Whether [`resume`](Self::resume) would take this token, as [`Loader::check_resume`].
    ///
    /// # Errors
    /// As `resume`.
    pub fn check_resume(&self, token: &ResumeToken) -> Result<(), ResumeError> {
        each!(Self, self, loader => loader.check_resume(token))
    }

    /// What ends the loader's waits, from another thread.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        each!(Self, self, loader => loader.canceller())
    }

    /// The samples that were left out or replaced, as [`Loader::bad_samples`].
    #[must_use]
    pub fn bad_samples(&self) -> BadSampleReport {
        each!(Self, self, loader => loader.bad_samples())
    }

    /// The device and its driver.
    #[must_use]
    pub fn info(&self) -> &AdapterInfo {
        each!(Self, self, loader => Backend::info(loader.backend()))
    }

    /// The number of batches in an epoch: of this rank's share of it.
    #[must_use]
    pub fn batches_per_epoch(&self) -> u64 {
        each!(Self, self, loader => loader.batches_per_epoch())
    }

    /// The number of samples in those batches.
    #[must_use]
    pub fn samples_per_epoch(&self) -> u64 {
        each!(Self, self, loader => loader.samples_per_epoch())
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn Source> {
        each!(Self, self, loader => loader.source())
    }

    /// The options it was made with.
    #[must_use]
    pub fn options(&self) -> &LoaderOptions {
        each!(Self, self, loader => loader.options())
    }

    /// The strategy in use.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        each!(Self, self, loader => loader.strategy())
    }

    /// Shape and element type of a full batch.
    #[must_use]
    pub fn tensor(&self) -> TensorDesc {
        each!(Self, self, loader => loader.tensor())
    }

    /// The memory it was planned to take, in exact bytes.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        each!(Self, self, loader => loader.footprint())
    }

    /// The memory it holds now; `None` if its pump is gone.
    #[must_use]
    pub fn memory(&self) -> Option<MemoryUse> {
        each!(Self, self, loader => loader.memory())
    }

    /// Waits until the device has finished everything that was submitted, as [`Loader::wait_idle`].
    ///
    /// # Errors
    /// As [`Loader::wait_idle`].
    pub fn wait_idle(&self) -> Result<(), LoadError> {
        each!(Self, self, loader => loader.wait_idle())
    }

    /// What it has done so far, and where the time went.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        each!(Self, self, loader => loader.stats())
    }

    /// What reads its counters from elsewhere, as [`Loader::monitor`].
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        each!(Self, self, loader => loader.monitor())
    }

    /// What holds it back, as [`Loader::verdict`].
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        each!(Self, self, loader => loader.verdict())
    }

    /// Starts counting anew.
    pub fn reset_stats(&self) {
        each!(Self, self, loader => loader.reset_stats());
    }
}

/// One pass over the source, on a device of any backend.
#[must_use = "an epoch delivers nothing until it is iterated"]
#[non_exhaustive]
pub enum AnyEpoch<'a> {
    /// Host memory.
    Host(Epoch<'a, HostBackend>),
    /// Vulkan, Metal, DX12 or GL.
    #[cfg(feature = "wgpu")]
    Wgpu(Epoch<'a, WgpuBackend>),
    /// CUDA.
    #[cfg(feature = "cuda")]
    Cuda(Epoch<'a, CudaBackend>),
}

impl AnyEpoch<'_> {
    /// The batches still to come, errors included.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        each!(Self, self, epoch => epoch.remaining())
    }

    /// The epoch's number.
    #[must_use]
    pub fn number(&self) -> u64 {
        each!(Self, self, epoch => epoch.number())
    }

    /// Ends the epoch early and loses no work, as [`Epoch::wind_down`].
    pub fn wind_down(&mut self) {
        each!(Self, self, epoch => epoch.wind_down());
    }

    /// What ends the loader's waits, from another thread.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        each!(Self, self, epoch => epoch.canceller())
    }

    /// The next batch, as [`Epoch::next_async`].
    ///
    /// # Errors
    /// As `next`.
    pub async fn next_async(&mut self) -> Option<Result<AnyBatch, LoadError>> {
        wrap!(self, epoch => epoch.next_async().await, AnyBatch)
    }

    /// Where delivery stands, as [`Epoch::resume_token`].
    ///
    /// # Errors
    /// As [`Epoch::resume_token`].
    pub fn resume_token(&self) -> Result<ResumeToken, ResumeError> {
        each!(Self, self, epoch => epoch.resume_token())
    }

    /// The next batch if it comes within this time, as [`Epoch::next_timeout`].
    ///
    /// # Errors
    /// As [`Epoch::next_timeout`].
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Result<AnyBatch, LoadError>> {
        wrap!(self, epoch => epoch.next_timeout(timeout), AnyBatch)
    }
}

impl Iterator for AnyEpoch<'_> {
    type Item = Result<AnyBatch, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        wrap!(self, epoch => epoch.next(), AnyBatch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        each!(Self, self, epoch => epoch.size_hint())
    }
}

/// A batch on a device of any backend. Match on it for the typed tensor.
#[derive(Debug)]
#[must_use = "dropping a batch gives its tensor back"]
#[non_exhaustive]
pub enum AnyBatch {
    /// Host memory.
    Host(Batch<HostBackend>),
    /// Vulkan, Metal, DX12 or GL.
    #[cfg(feature = "wgpu")]
    Wgpu(Batch<WgpuBackend>),
    /// CUDA.
    #[cfg(feature = "cuda")]
    Cuda(Batch<CudaBackend>),
}

impl AnyBatch {
    /// Shape and element type of the tensor.
    #[must_use]
    pub fn desc(&self) -> TensorDesc {
        each!(Self, self, batch => batch.desc())
    }

    /// The dimensions of the tensor, samples first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        each!(Self, self, batch => batch.shape())
    }

    /// The element type of the tensor.
    #[must_use]
    pub fn dtype(&self) -> DType {
        each!(Self, self, batch => batch.dtype())
    }

    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        each!(Self, self, batch => batch.len())
    }

    /// Whether there are no samples; never true for a delivered batch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples' indices in the source, in the order of the tensor.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        each!(Self, self, batch => batch.indices())
    }

    /// The samples' labels, in the order of the tensor; `None` if the source has none.
    #[must_use]
    pub fn labels(&self) -> Option<&[i64]> {
        each!(Self, self, batch => batch.labels())
    }

    /// The batch's number within its epoch, from zero.
    #[must_use]
    pub fn number(&self) -> u64 {
        each!(Self, self, batch => batch.number())
    }

    /// The epoch it belongs to.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        each!(Self, self, batch => batch.epoch())
    }

    /// How many of the last samples are repetitions, as [`Batch::padding`].
    #[must_use]
    pub fn padding(&self) -> usize {
        each!(Self, self, batch => batch.padding())
    }

    /// Whether the device has written the tensor, as [`Batch::is_ready`].
    ///
    /// # Errors
    /// The device's error.
    pub fn is_ready(&self) -> Result<bool, DeviceError> {
        each!(Self, self, batch => batch.is_ready())
    }

    /// Waits until the device has written the tensor, as [`Batch::wait`].
    ///
    /// # Errors
    /// The device's error.
    pub fn wait(&self) -> Result<(), DeviceError> {
        each!(Self, self, batch => batch.wait())
    }

    /// As [`wait`](Self::wait), for no longer than `timeout`, as [`Batch::wait_timeout`].
    ///
    /// # Errors
    /// The device's error.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool, DeviceError> {
        each!(Self, self, batch => batch.wait_timeout(timeout))
    }

    /// Waits for the device and reads the tensor back, as [`Batch::read`].
    ///
    /// # Errors
    /// The device's error.
    pub fn read(&self) -> Result<Vec<u8>, DeviceError> {
        each!(Self, self, batch => batch.read())
    }

    /// Waits for the device and reads the tensor back as f32, as [`Batch::read_f32`].
    ///
    /// # Errors
    /// The device's error.
    pub fn read_f32(&self) -> Result<Vec<f32>, DeviceError> {
        each!(Self, self, batch => batch.read_f32())
    }

    /// Waits for the device and reads each sample's fingerprint, as [`Batch::fingerprints`].
    ///
    /// # Errors
    /// The device's error.
    pub fn fingerprints(&self) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        each!(Self, self, batch => batch.fingerprints())
    }

    /// Waits for the device and gives one number for the whole batch, as [`Batch::fingerprint`].
    ///
    /// # Errors
    /// The device's error.
    pub fn fingerprint(&self) -> Result<Option<Fingerprint>, DeviceError> {
        each!(Self, self, batch => batch.fingerprint())
    }
}
