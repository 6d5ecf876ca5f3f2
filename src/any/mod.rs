//! One loader type for programs that run on whatever device is there.
//!
//! A thin enum over the typed [`Loader`](crate::loader::Loader)s: made once, by [`open`] or [`AnyBackend::open`]. Whoever knows their backend uses
//! [`Loader`](crate::loader::Loader) itself.

mod backend;
mod batch;
mod epoch;
mod loader;
mod measure;

pub use backend::AnyBackend;
pub use batch::AnyBatch;
pub use epoch::{AnyEpoch, AnyEpochStream};
pub use loader::AnyLoader;

use crate::backend::AdapterInfo;
#[cfg(feature = "cuda")]
use crate::backend::cuda::adapters as cuda_adapters;
use crate::backend::host::host_info;
#[cfg(feature = "wgpu")]
use crate::backend::wgpu::adapters as wgpu_adapters;
use crate::error::OpenError;
use crate::loader::{IntoSource, LoaderOptions};
use crate::measure::{AutoOptions, Tuned};

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

/// As `each`, with the value as the same variant of another enum.
macro_rules! same {
    ($value:expr, $inner:ident => $call:expr, $to:ident) => {
        match $value {
            Self::Host($inner) => $to::Host($call),
            #[cfg(feature = "wgpu")]
            Self::Wgpu($inner) => $to::Wgpu($call),
            #[cfg(feature = "cuda")]
            Self::Cuda($inner) => $to::Cuda($call),
        }
    };
}

use {each, same, wrap};

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
/// [`OpenError::NoDevice`], and what [`Loader::new`](crate::loader::Loader::new) reports.
pub fn open(wanted: &str, source: impl IntoSource, options: LoaderOptions) -> Result<AnyLoader, OpenError> {
    AnyBackend::open(wanted)?.loader(source, options)
}

/// As [`open`], with the strategy and the number of workers that are measured to be best here, within two seconds: see [`tune`](crate::measure::tune).
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
    source: impl IntoSource,
    options: LoaderOptions,
    auto: &AutoOptions,
) -> Result<(AnyLoader, Tuned), OpenError> {
    let source = source.into_source();
    let backend = AnyBackend::open(wanted)?;
    let tuned = backend.tune(&source, options, auto)?;
    Ok((backend.loader(source, tuned.options.clone())?, tuned))
}
