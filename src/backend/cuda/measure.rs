//! Ceilings of the device: what copies and kernels can reach at all.

use std::time::{Duration, Instant};

use cudarc::driver::{CudaStream, DriverError};

use super::device::CudaBackend;
use super::driver::{self, DeviceMemory, Event, Memory, PinKind, Stream, wait_for};
use super::kernel::Kernels;
use crate::backend::LaneSpec;
use crate::error::{DeviceError, OpenError};
use crate::preprocess::OutputLayout;
use crate::staging::HostMemory;

/// How fast kernels move bytes in device memory, read and written, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelSpeed {
    /// The normalisation of full batches, alone on the device.
    pub normalize: f64,
    /// A kernel that only copies, as many bytes: the ceiling.
    pub copy: f64,
}

/// Copies queued before the first is waited for, at least. Enough for a round's own cost not to count.
const COPIES_A_ROUND: usize = 8;
/// Bytes of a round, where that takes no more than [`MAX_A_ROUND`].
const BYTES_A_ROUND: usize = 64 << 20;
/// What is queued at once, at most.
const MAX_A_ROUND: usize = 256;
/// Sets of buffers that kernels take in turn, so that no cache holds them all.
const SETS: usize = 6;
/// Bytes of one of them for the ceiling of all kernels.
const CEILING_BYTES: usize = 128 << 20;

impl CudaBackend {
    /// Measures what the kernels of a lane reach alone, and what a copying kernel reaches, each for at least as long as told.
    ///
    /// # Errors
    /// As [`open_lane`](crate::Backend::open_lane). Without normalisation both figures are of the copying kernel.
    pub fn kernel_speed(&self, spec: &LaneSpec, at_least: Duration) -> Result<KernelSpeed, OpenError> {
        crate::Backend::footprint(self, spec)?;
        let lost = self.lost();
        let output = OutputLayout::new(&spec.preprocess, &spec.layout)?;
        let measured = self.measure_kernels(spec, &output, at_least);
        measured.map_err(|error| lost.allocation("buffers to measure kernels with", 0, error).into())
    }

    fn measure_kernels(
        &self,
        spec: &LaneSpec,
        output: &OutputLayout,
        at_least: Duration,
    ) -> Result<KernelSpeed, DriverError> {
        let samples = spec.layout.batch_size();
        let to = output.bytes();
        let from = spec.layout.slot_bytes();
        let pair = |_| Ok((DeviceMemory::new(self.context(), from)?, DeviceMemory::new(self.context(), to)?));
        let sets = (0..SETS).map(pair).collect::<Result<Vec<_>, DriverError>>()?;
        // Whole batches: what the kernel reaches, and not what is left to others between its parts.
        let kernels = Kernels::without_fingerprints(self.modules(), spec, output, usize::MAX)?;
        let copy = self.modules().copy()?;
        let stream = Stream::new(self.context())?;
        let normalize = self.rate(&stream, at_least, |turn| {
            let (from, to) = &sets[turn % SETS];
            kernels.launch(&stream, from, to, None, samples)?;
            Ok((from.bytes() + to.bytes()) as u64)
        })?;
        let copy = self.rate(&stream, at_least, |turn| {
            // Tensor to tensor: the larger the copy, the nearer to the ceiling.
            let (from, to) = (&sets[turn % SETS].1, &sets[(turn + 1) % SETS].1);
            copy.launch(&stream, from, to).map(|bytes| 2 * bytes)
        })?;
        Ok(KernelSpeed { normalize: if kernels.computes() { normalize } else { copy }, copy })
    }

    /// What a copying kernel reaches, read and written.
    pub(super) fn measure_kernel_ceiling(&self, at_least: Duration) -> Result<f64, DeviceError> {
        self.lost().check()?;
        let bytes = self.info().memory.map_or(CEILING_BYTES, |memory| CEILING_BYTES.min(memory as usize / 32));
        let measured = || {
            let sets = (0..SETS).map(|_| DeviceMemory::new(self.context(), bytes)).collect::<Result<Vec<_>, _>>()?;
            let (copy, stream) = (self.modules().copy()?, Stream::new(self.context())?);
            self.rate(&stream, at_least, |turn| {
                copy.launch(&stream, &sets[turn % SETS], &sets[(turn + 1) % SETS]).map(|bytes| 2 * bytes)
            })
        };
        measured().map_err(|error| self.lost().allocation("buffers to measure kernels with", 0, error))
    }

    /// Copies from page-locked memory, in rounds, the next one queued before the last is waited for.
    pub(super) fn measure_copies(&self, bytes: usize, at_least: Duration) -> Result<f64, DeviceError> {
        self.lost().check()?;
        let bytes = bytes.max(1);
        let from = Memory::pinned(self.context(), bytes, PinKind::Cached)
            .map_err(|error| super::locks::LockBudget::read().error(bytes as u64, &driver::explain(error)))?;
        self.measure_copies_from(from, bytes, at_least)
    }

    /// The same from ordinary memory, which the driver stages itself.
    pub(super) fn measure_pageable(&self, bytes: usize, at_least: Duration) -> Result<f64, DeviceError> {
        self.lost().check()?;
        let bytes = bytes.max(1);
        self.measure_copies_from(Memory::Pageable(HostMemory::new(bytes)?), bytes, at_least)
    }

    fn measure_copies_from(&self, from: Memory, bytes: usize, at_least: Duration) -> Result<f64, DeviceError> {
        let failed = |error| self.lost().allocation("a buffer to measure copies with", bytes as u64, error);
        let to = DeviceMemory::new(self.context(), bytes).map_err(failed)?;
        let stream = Stream::new(self.context()).map_err(failed)?;
        let copies = driver::Copies::new(&stream, from, to);
        self.rate(&stream, at_least, |_| copies.queue().map(|()| bytes as u64)).map_err(failed)
    }

    /// Bytes a second of what `queue` queues and returns the bytes of, in steady state.
    fn rate(
        &self,
        stream: &CudaStream,
        at_least: Duration,
        queue: impl Fn(usize) -> Result<u64, DriverError>,
    ) -> Result<f64, DriverError> {
        let ends = [Event::new(self.context())?, Event::new(self.context())?];
        // The first pays for what is done lazily.
        let each = queue(0)?;
        wait_for(stream)?;
        let wanted = BYTES_A_ROUND.div_ceil(usize::try_from(each).unwrap_or(1).max(1));
        let turns = wanted.clamp(COPIES_A_ROUND, MAX_A_ROUND);
        let (start, mut bytes, mut round) = (Instant::now(), 0, 0);
        while start.elapsed() < at_least || round < 2 {
            // The round before last has ended, and the last one keeps the device busy meanwhile.
            ends[round % 2].wait()?;
            for turn in 0..turns {
                bytes += queue(turn)?;
            }
            ends[round % 2].record(stream)?;
            round += 1;
        }
        wait_for(stream)?;
        Ok(bytes as f64 / start.elapsed().as_secs_f64())
    }
}
