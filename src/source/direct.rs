//! Samples that a device reads without the CPU.

use std::fmt;
use std::sync::Arc;

use super::SampleContext;
use crate::error::SourceError;
use crate::memory::StableHostMemory;
use crate::staging::SampleWriter;

type Position = dyn Fn(u64) -> u64 + Send + Sync;
type Check = dyn Fn() -> Result<(), SourceError> + Send + Sync;
type HostFields = dyn Fn(&SampleContext, &mut SampleWriter<'_>) -> Result<(), SourceError> + Send + Sync;

/// Memory that holds every sample of a [`Source`](super::Source), for strategies that let the device read it by itself: the samples have
/// one field on the device, and it lies there as it is. Fields on the host are still written, by
/// [`with_host_fields`](Self::with_host_fields).
///
/// Everything is called on one thread of the loader's, and should not block.
pub struct Direct {
    memory: Arc<dyn StableHostMemory>,
    position: Box<Position>,
    check: Box<Check>,
    host_fields: Box<HostFields>,
}

impl Direct {
    /// Sample `index` starts at byte `position(index)` of the memory.
    pub fn new(memory: Arc<dyn StableHostMemory>, position: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Self {
        Self { memory, position: Box::new(position), check: Box::new(|| Ok(())), host_fields: Box::new(|_, _| Ok(())) }
    }

    /// The same with a check before each batch that the memory still holds what it did. On an error the batch is not sent.
    #[must_use]
    pub fn with_check(mut self, check: impl Fn() -> Result<(), SourceError> + Send + Sync + 'static) -> Self {
        self.check = Box::new(check);
        self
    }

    /// The same with what writes a sample's fields on the host, labels for one. On an error the batch is not sent.
    #[must_use]
    pub fn with_host_fields(
        mut self,
        write: impl Fn(&SampleContext, &mut SampleWriter<'_>) -> Result<(), SourceError> + Send + Sync + 'static,
    ) -> Self {
        self.host_fields = Box::new(write);
        self
    }

    /// The same memory for a source of which sample `index` is this one's sample `inner(index)`.
    #[must_use]
    pub fn renumbered(self, inner: impl Fn(u64) -> u64 + Clone + Send + Sync + 'static) -> Self {
        let Self { memory, position, check, host_fields } = self;
        let of = inner.clone();
        Self {
            memory,
            position: Box::new(move |index| position(of(index))),
            check,
            host_fields: Box::new(move |sample, out| host_fields(&sample.at(inner(sample.index)), out)),
        }
    }

    /// The memory.
    #[must_use]
    pub fn memory(&self) -> &Arc<dyn StableHostMemory> {
        &self.memory
    }

    /// The byte of the memory at which a sample starts.
    #[must_use]
    pub fn position(&self, index: u64) -> u64 {
        (self.position)(index)
    }

    /// Whether the memory still holds what it did.
    ///
    /// # Errors
    /// Those of the source.
    pub fn check(&self) -> Result<(), SourceError> {
        (self.check)()
    }

    /// Writes a sample's fields on the host.
    ///
    /// # Errors
    /// Those of the source.
    pub fn write_host_fields(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        (self.host_fields)(sample, out)
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct").field("bytes", &self.memory.len()).finish_non_exhaustive()
    }
}
