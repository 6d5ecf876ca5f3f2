//! Opening a device of any backend.

use std::sync::Arc;

use super::{AnyLoader, devices, each};
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
use crate::backend::host::HostBackend;
#[cfg(feature = "wgpu")]
use crate::backend::wgpu::WgpuBackend;
use crate::backend::{AdapterInfo, Backend, Strategy};
use crate::backend::{Api, select};
use crate::error::{OpenError, Unsupported};
use crate::loader::{IntoSource, Loader, LoaderOptions, LoaderStats};
use crate::measure::{AutoOptions, Tuned, tune, tune_again};
use crate::source::Source;

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
    /// Opens the device chosen by text, as [`open`](super::open) does.
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

    /// Chooses once more beside the consumer that a loader has had, as [`tune_again`].
    ///
    /// # Errors
    /// As [`tune_again`].
    pub fn tune_again(
        &self,
        source: &Arc<dyn Source>,
        tuned: &Tuned,
        seen: &LoaderStats,
        auto: &AutoOptions,
    ) -> Result<Tuned, OpenError> {
        each!(Self, self, backend => tune_again(backend, source, tuned, seen, auto))
    }

    /// Makes a loader on this device.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn loader(&self, source: impl IntoSource, options: LoaderOptions) -> Result<AnyLoader, OpenError> {
        match self {
            Self::Host(backend) => Loader::new(backend, source, options).map(AnyLoader::Host),
            #[cfg(feature = "wgpu")]
            Self::Wgpu(backend) => Loader::new(backend, source, options).map(AnyLoader::Wgpu),
            #[cfg(feature = "cuda")]
            Self::Cuda(backend) => Loader::new(backend, source, options).map(AnyLoader::Cuda),
        }
    }
}
