//! The batches of an epoch, on a device of any backend.

use std::time::Duration;

use super::{AnyBatch, each, wrap};
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
use crate::backend::host::HostBackend;
#[cfg(feature = "wgpu")]
use crate::backend::wgpu::WgpuBackend;
use crate::error::LoadError;
use crate::loader::{Canceller, Epoch, ResumeError, ResumeToken};

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
