//! A loader on a device of any backend.

use std::ops::Range;
use std::sync::Arc;

use super::{AnyBackend, AnyEpoch, each, same};
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
use crate::backend::host::HostBackend;
#[cfg(feature = "wgpu")]
use crate::backend::wgpu::WgpuBackend;
use crate::backend::{AdapterInfo, Backend, Footprint, MemoryUse, Strategy};
use crate::error::{LoadError, OpenError, Unsupported};
use crate::loader::{
    BadSampleReport, Canceller, Loader, LoaderOptions, LoaderStats, Monitor, ResumeError, ResumeToken, Verdict,
};
use crate::measure::{AutoOptions, Tuned};
use crate::preprocess::TensorDesc;
use crate::source::Source;

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
        same!(self, loader => loader.epoch(epoch), AnyEpoch)
    }

    /// As [`epoch`](Self::epoch), and the epoch owns the loader, as [`Loader::into_epoch`].
    pub fn into_epoch(self, epoch: u64) -> AnyEpoch<'static> {
        same!(self, loader => loader.into_epoch(epoch), AnyEpoch)
    }

    /// Several epochs in turn, without a pause in between, as [`Loader::epochs`].
    pub fn epochs(&mut self, epochs: Range<u64>) -> AnyEpoch<'_> {
        same!(self, loader => loader.epochs(epochs), AnyEpoch)
    }

    /// As [`epochs`](Self::epochs), and the iterator owns the loader, as [`Loader::into_epochs`].
    pub fn into_epochs(self, epochs: Range<u64>) -> AnyEpoch<'static> {
        same!(self, loader => loader.into_epochs(epochs), AnyEpoch)
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

    /// The device.
    #[must_use]
    pub fn backend(&self) -> AnyBackend {
        same!(self, loader => loader.backend().clone(), AnyBackend)
    }

    /// Whether the device can run a strategy.
    ///
    /// # Errors
    /// [`Unsupported`] says why not.
    pub fn supports(&self, strategy: Strategy) -> Result<(), Unsupported> {
        each!(Self, self, loader => loader.backend().supports(strategy))
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

    /// Chooses strategy and number of workers once more, now that it has been seen how long the consumer's steps take, and makes a loader
    /// with them: see [`tune_again`](crate::measure::tune_again). `tuned` is what this loader was made with. The epochs of the new loader
    /// have the same batches, and its counters start anew.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gpufeed::{AutoOptions, LoaderOptions, SampleLayout, source::random_images};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let images = Arc::new(random_images(SampleLayout::image(32, 32, 3)?, 1024, 1)?);
    /// let auto = AutoOptions::default();
    /// let (mut loader, tuned) = gpufeed::open_auto("host", images, LoaderOptions::default(), &auto)?;
    /// for batch in loader.epoch(0) {
    ///     let _step = batch?; // of training, say
    /// }
    /// let (mut loader, tuned) = loader.tune_again(&tuned, &auto)?;
    /// println!("{}", tuned.why);
    /// assert_eq!(loader.epoch(1).count(), 16);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`AnyBackend::tune`] and [`AnyBackend::loader`].
    pub fn tune_again(self, tuned: &Tuned, auto: &AutoOptions) -> Result<(Self, Tuned), OpenError> {
        let (backend, source, seen) = (self.backend(), Arc::clone(self.source()), self.stats());
        // The trials may need its memory.
        drop(self);
        let tuned = backend.tune_again(&source, tuned, &seen, auto)?;
        Ok((backend.loader(source, tuned.options.clone())?, tuned))
    }

    /// Starts counting anew.
    pub fn reset_stats(&self) {
        each!(Self, self, loader => loader.reset_stats());
    }
}
