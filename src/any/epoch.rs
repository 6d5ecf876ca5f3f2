//! The batches of an epoch, on a device of any backend.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;

use super::{AnyBatch, AnyLoader, each, same, wrap};
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
use crate::backend::host::HostBackend;
#[cfg(feature = "wgpu")]
use crate::backend::wgpu::WgpuBackend;
use crate::error::LoadError;
use crate::loader::{
    BadSampleReport, Canceller, Epoch, EpochStream, LoaderStats, Monitor, ResumeError, ResumeToken, Verdict,
};

/// One pass over the source, on a device of any backend. As an iterator it always ends, as [`Epoch`].
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

impl<'a> AnyEpoch<'a> {
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

    /// Has other epochs follow this one without a pause, as [`Epoch::followed_by`].
    pub fn followed_by(self, epochs: Range<u64>) -> Self {
        same!(self, epoch => epoch.followed_by(epochs), Self)
    }

    /// Gives the loader back, if the epoch owns it, as [`Epoch::into_loader`].
    pub fn into_loader(self) -> Option<AnyLoader> {
        Some(match self {
            Self::Host(epoch) => AnyLoader::Host(epoch.into_loader()?),
            #[cfg(feature = "wgpu")]
            Self::Wgpu(epoch) => AnyLoader::Wgpu(epoch.into_loader()?),
            #[cfg(feature = "cuda")]
            Self::Cuda(epoch) => AnyLoader::Cuda(epoch.into_loader()?),
        })
    }

    /// The same epoch as a [`Stream`], as [`Epoch::stream`].
    pub fn stream(self) -> AnyEpochStream<'a> {
        same!(self, epoch => epoch.stream(), AnyEpochStream)
    }

    /// What its loader has done so far, as [`Epoch::stats`].
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        each!(Self, self, epoch => epoch.stats())
    }

    /// What reads its loader's statistics from elsewhere, as [`Epoch::monitor`].
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        each!(Self, self, epoch => epoch.monitor())
    }

    /// What holds its loader back, as [`Epoch::verdict`].
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        each!(Self, self, epoch => epoch.verdict())
    }

    /// The samples that were left out or replaced, as [`Epoch::bad_samples`].
    #[must_use]
    pub fn bad_samples(&self) -> BadSampleReport {
        each!(Self, self, epoch => epoch.bad_samples())
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

    /// The next batch, waited for, as [`Epoch::try_next`]: it can be called again after any error.
    ///
    /// # Errors
    /// As `next`.
    pub fn try_next(&mut self) -> Option<Result<AnyBatch, LoadError>> {
        wrap!(self, epoch => epoch.try_next(), AnyBatch)
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

impl std::iter::FusedIterator for AnyEpoch<'_> {}

/// The batches of an [`AnyEpoch`] as a [`Stream`], as [`EpochStream`].
#[must_use = "a stream delivers nothing until it is polled"]
#[non_exhaustive]
pub enum AnyEpochStream<'a> {
    /// Host memory.
    Host(EpochStream<'a, HostBackend>),
    /// Vulkan, Metal, DX12 or GL.
    #[cfg(feature = "wgpu")]
    Wgpu(EpochStream<'a, WgpuBackend>),
    /// CUDA.
    #[cfg(feature = "cuda")]
    Cuda(EpochStream<'a, CudaBackend>),
}

impl Stream for AnyEpochStream<'_> {
    type Item = Result<AnyBatch, LoadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.get_mut() {
            Self::Host(stream) => {
                Pin::new(stream).poll_next(context).map(|item| item.map(|batch| batch.map(AnyBatch::Host)))
            }
            #[cfg(feature = "wgpu")]
            Self::Wgpu(stream) => {
                Pin::new(stream).poll_next(context).map(|item| item.map(|batch| batch.map(AnyBatch::Wgpu)))
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(stream) => {
                Pin::new(stream).poll_next(context).map(|item| item.map(|batch| batch.map(AnyBatch::Cuda)))
            }
        }
    }
}
