//! The kernels of `fingerprint.cu`.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError, result};

use super::context::bind;
use super::launch::{Function, GROUP, Module, arg, check};
use super::{DeviceMemory, Registration};

/// The kernel that sums the fingerprints of one field.
#[derive(Debug)]
pub(in super::super) struct Sums {
    function: Function,
    sample_bytes: u64,
    /// Of samples that follow each other, the first byte.
    offset: usize,
    /// The first one's place among the sums.
    first: usize,
    steps: u32,
    groups: u32,
}

/// Where fingerprinted samples are.
pub(in super::super) enum Samples<'a> {
    /// One after the other.
    Following(&'a DeviceMemory),
    /// At these offsets of registered memory, which the device memory holds too.
    Scattered(&'a Registration, &'a [u64], &'a DeviceMemory),
}

impl Sums {
    /// Words that a thread sums: enough to make the sum at the end cheap, and few enough to spread a sample over many blocks.
    const STEPS: u64 = 16;

    /// For samples of so many bytes, which follow each other from byte `offset` on where they are not scattered, and whose sums are those
    /// from `first` on.
    pub(in super::super) fn new(
        module: &Arc<Module>,
        sample_bytes: usize,
        offset: usize,
        first: usize,
    ) -> Result<Self, DriverError> {
        let groups = (sample_bytes as u64).div_ceil(4).div_ceil(u64::from(GROUP));
        // A sample takes at most a few thousand blocks, so that their number stays far from the limit.
        let steps = groups.div_ceil(4096).max(Self::STEPS).min(groups);
        Ok(Self {
            function: Function::new(module, "fingerprint")?,
            sample_bytes: sample_bytes as u64,
            offset,
            first,
            steps: u32::try_from(steps).unwrap_or(u32::MAX),
            groups: u32::try_from(groups.div_ceil(steps)).unwrap_or(u32::MAX),
        })
    }

    /// Queues the sums of `samples` samples.
    pub(in super::super) fn launch(
        &self,
        stream: &CudaStream,
        from: &Samples<'_>,
        samples: usize,
        sums: &DeviceMemory,
    ) -> Result<(), DriverError> {
        let bytes = usize::try_from(self.sample_bytes).unwrap_or(usize::MAX);
        check(samples > 0 && (self.first + samples) * 8 <= sums.bytes())?;
        let to = sums.address + self.first as u64 * 8;
        let (source, offsets) = match from {
            Samples::Following(memory) => {
                check(samples.saturating_mul(bytes).saturating_add(self.offset) <= memory.bytes())?;
                (memory.address + self.offset as u64, 0)
            }
            Samples::Scattered(memory, offsets, on_device) => {
                check(offsets.len() == samples && memory.covers(offsets, bytes) && samples * 8 <= on_device.bytes())?;
                (memory.address(), on_device.address)
            }
        };
        bind(stream.context())?;
        // SAFETY: as many bytes as the sums have, checked above.
        unsafe { result::memset_d8_async(to, 0, samples * 8, stream.cu_stream()) }?;
        let Self { sample_bytes, steps, groups, .. } = self;
        let mut args = [arg(&source), arg(&offsets), arg(sample_bytes), arg(steps), arg(groups), arg(&to)];
        // SAFETY: these are the kernel's parameters. It reads the samples' words, each of which holds one of their bytes, and
        // adds to two words a sample; all were checked against the memory.
        unsafe { self.function.launch(stream, samples as u64 * u64::from(*groups), &mut args) }
    }
}

/// The kernel that only copies.
#[derive(Debug)]
pub(in super::super) struct Copied(Function);

impl Copied {
    pub(in super::super) fn new(module: &Arc<Module>) -> Result<Self, DriverError> {
        Function::new(module, "copy").map(Self)
    }

    /// Queues the copy of all of `from` that fits `to`, in whole vectors of 16 bytes; returns the bytes.
    pub(in super::super) fn launch(
        &self,
        stream: &CudaStream,
        from: &DeviceMemory,
        to: &DeviceMemory,
    ) -> Result<u64, DriverError> {
        let vectors = (from.bytes().min(to.bytes()) / 16) as u64;
        let mut args = [arg(&from.address), arg(&to.address), arg(&vectors)];
        // SAFETY: these are the kernel's parameters, and both memories hold so many vectors.
        unsafe { self.0.launch(stream, vectors.div_ceil(u64::from(4 * GROUP)), &mut args) }?;
        Ok(vectors * 16)
    }
}
