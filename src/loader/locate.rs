//! Where the samples of a batch lie that the device reads by itself, and what of them is still written on the host.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::outputs::{Output, reserved};
use super::worker::panic_message;
use crate::error::{DeviceError, LoadError, SourceError};
use crate::layout::BatchLayout;
use crate::source::{Direct, SampleContext};
use crate::staging::{SampleWriter, ShortField};

/// Looks samples up in a source's own memory.
pub(super) struct Locator {
    direct: Direct,
    layout: BatchLayout,
    /// The loader's; zero where it has none.
    seed: u64,
    offsets: Vec<u64>,
}

impl Locator {
    /// With room for batches of at most `samples` samples.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn new(direct: Direct, layout: &BatchLayout, seed: u64, samples: usize) -> Result<Self, DeviceError> {
        Ok(Self { direct, layout: layout.clone(), seed, offsets: reserved(samples)? })
    }

    /// Where the samples of the last batch lie.
    pub(super) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Looks up the samples of a batch, and writes their fields on the host. A source that panics costs the batch, not the thread.
    ///
    /// # Errors
    /// [`LoadError`] names the sample.
    pub(super) fn locate<T>(
        &mut self,
        (epoch, batch): (u64, u64),
        indices: impl Iterator<Item = u64>,
        output: &mut Output<T>,
    ) -> Result<(), LoadError> {
        let mut at = 0;
        let located = catch_unwind(AssertUnwindSafe(|| self.try_locate(epoch, indices, output, &mut at)));
        match located {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Failure::Source(source))) => Err(LoadError::Sample { index: at, batch, source }),
            Ok(Err(Failure::Short(ShortField { name: field, written, expected }))) => {
                Err(LoadError::ShortSample { index: at, batch, field, written, expected })
            }
            Err(panic) => Err(LoadError::Panic { index: at, batch, message: panic_message(panic) }),
        }
    }

    /// Leaves the index of the sample it is at in `at`.
    fn try_locate<T>(
        &mut self,
        epoch: u64,
        indices: impl Iterator<Item = u64>,
        output: &mut Output<T>,
        at: &mut u64,
    ) -> Result<(), Failure> {
        self.offsets.clear();
        output.indices.clear();
        for (position, index) in indices.enumerate() {
            *at = index;
            if position == 0 {
                self.direct.check()?;
            }
            self.offsets.push(self.direct.position(index));
            output.indices.push(index);
            if !output.host.is_empty() {
                let sample = SampleContext::of(index).in_epoch(epoch).with_seed(self.seed);
                let mut writer = SampleWriter::on_host(&self.layout, output.host.bytes_mut(), position);
                self.direct.write_host_fields(&sample, &mut writer)?;
                writer.short_field().map_or(Ok(()), |short| Err(Failure::Short(short)))?;
            }
        }
        Ok(())
    }
}

enum Failure {
    Source(SourceError),
    Short(ShortField),
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}
