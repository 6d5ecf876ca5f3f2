//! `mapped-ring` and `direct-map`: a fixed ring of buffers that are mapped again as soon as the device has read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::device::WgpuBackend;
use super::super::mapped::Memory;
use super::{Staging, mapped_buffer, view};
use crate::backend::LaneSpec;
use crate::error::DeviceError;
use crate::preprocess::Preprocess;

pub(super) struct Ring {
    backend: WgpuBackend,
    slots: Vec<wgpu::Buffer>,
    in_place: bool,
    copies: bool,
}

impl Ring {
    /// Staging buffers, copied to the device.
    pub(super) fn mapped(backend: &WgpuBackend, slots: usize, bytes: u64) -> Result<Self, DeviceError> {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        Self::new(backend, slots, bytes, usage, false, true)
    }

    /// Buffers that the kernels read where they are. Without a kernel the bytes are copied into the tensor all the same.
    pub(super) fn in_place(
        backend: &WgpuBackend,
        slots: usize,
        bytes: u64,
        spec: &LaneSpec,
    ) -> Result<Self, DeviceError> {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::STORAGE;
        Self::new(backend, slots, bytes, usage, true, matches!(spec.preprocess, Preprocess::Raw))
    }

    fn new(
        backend: &WgpuBackend,
        slots: usize,
        bytes: u64,
        usage: wgpu::BufferUsages,
        in_place: bool,
        copies: bool,
    ) -> Result<Self, DeviceError> {
        let slot = |_| mapped_buffer(backend, "gpufeed slot", bytes, usage);
        let slots = (0..slots).map(slot).collect::<Result<_, _>>()?;
        Ok(Self { backend: backend.clone(), slots, in_place, copies })
    }
}

impl Staging for Ring {
    fn begin(&mut self, slot: usize) -> Result<Memory, DeviceError> {
        view(self.slots[slot].slice(..))
    }

    fn record(&mut self, slot: usize, memory: Memory, encoder: &mut wgpu::CommandEncoder, to: wgpu::BufferSlice<'_>) {
        let buffer = &self.slots[slot];
        // A buffer with a view cannot be unmapped.
        drop(memory);
        buffer.unmap();
        if self.copies {
            encoder.copy_buffer_to_buffer(buffer, 0, to.buffer(), to.offset(), to.size());
        }
    }

    fn sent(&mut self, slot: usize) {
        // The lane waits for the submission itself; by then this has run. A failure shows at the next `begin`.
        self.slots[slot].map_async(wgpu::MapMode::Write, .., |_| {});
    }

    fn cancel(&mut self, _slot: usize, memory: Memory) {
        // The buffer stays mapped.
        drop(memory);
    }

    fn recover(&mut self, slot: usize) -> Result<(), DeviceError> {
        let buffer = &self.slots[slot];
        // Whether the mapping was requested depends on what failed. Unmapping takes either back; on an unmapped buffer it is an
        // error that this scope swallows.
        let _ = self.backend.scope(|| buffer.unmap());
        let mapped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&mapped);
        self.backend.scope(|| {
            buffer.map_async(wgpu::MapMode::Write, .., move |result| flag.store(result.is_ok(), Ordering::Release));
        })?;
        self.backend.wait_until(None, || mapped.load(Ordering::Acquire))
    }

    fn in_place(&self) -> &[wgpu::Buffer] {
        if self.in_place { &self.slots } else { &[] }
    }
}
