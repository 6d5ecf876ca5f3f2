//! A batch of frames, and where each of them comes from.

use std::fmt;
use std::ops::Deref;
use std::time::Instant;

use super::super::batch::Batch;
use super::collector::Queued;
use crate::backend::Backend;

/// A [`Batch`] of a [`FrameBatcher`](super::FrameBatcher), with the origin of each frame.
#[must_use = "dropping a batch gives its tensor back"]
pub struct FrameBatch<B: Backend> {
    batch: Batch<B>,
    origins: Vec<FrameOrigin>,
}

/// Where a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameOrigin {
    /// The number of its stream.
    pub stream: usize,
    /// The caller's own number.
    pub tag: u64,
    /// When it was pushed.
    pub arrived: Instant,
}

impl FrameOrigin {
    pub(super) fn of<F>(queued: &Queued<F>) -> Self {
        Self { stream: queued.stream, tag: queued.tag, arrived: queued.arrived }
    }
}

impl<B: Backend> FrameBatch<B> {
    pub(super) fn new(batch: Batch<B>, origins: impl Iterator<Item = FrameOrigin>) -> Self {
        Self { batch, origins: origins.collect() }
    }

    /// Where each frame comes from, in the order of the tensor.
    #[must_use]
    pub fn origins(&self) -> &[FrameOrigin] {
        &self.origins
    }

    /// The batch, and where each frame comes from.
    pub fn into_parts(self) -> (Batch<B>, Vec<FrameOrigin>) {
        (self.batch, self.origins)
    }
}

impl<B: Backend> Deref for FrameBatch<B> {
    type Target = Batch<B>;

    fn deref(&self) -> &Batch<B> {
        &self.batch
    }
}

impl<B: Backend> fmt::Debug for FrameBatch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameBatch").field("batch", &self.batch).field("origins", &self.origins).finish()
    }
}
