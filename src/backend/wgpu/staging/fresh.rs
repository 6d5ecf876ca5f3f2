//! `fresh-mapped`: a new mapped buffer for every batch, kept to show what that costs.

use super::super::device::WgpuBackend;
use super::super::mapped::Memory;
use super::{Staging, mapped_buffer, view};
use crate::error::DeviceError;

pub(super) struct Fresh {
    backend: WgpuBackend,
    /// The buffers being filled.
    slots: Vec<Option<wgpu::Buffer>>,
    bytes: u64,
    batches: u64,
}

impl Fresh {
    pub(super) fn new(backend: &WgpuBackend, slots: usize, bytes: u64) -> Self {
        Self { backend: backend.clone(), slots: vec![None; slots], bytes, batches: 0 }
    }
}

impl Staging for Fresh {
    fn begin(&mut self, slot: usize) -> Result<Memory, DeviceError> {
        self.batches += 1;
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let buffer = mapped_buffer(&self.backend, "gpufeed buffer of one batch", self.bytes, usage)?;
        let memory = view(buffer.slice(..));
        self.slots[slot] = Some(buffer);
        memory
    }

    fn record(&mut self, slot: usize, memory: Memory, encoder: &mut wgpu::CommandEncoder, to: wgpu::BufferSlice<'_>) {
        drop(memory);
        // Dropped here: wgpu frees it when the device has read it.
        if let Some(buffer) = self.slots[slot].take() {
            buffer.unmap();
            encoder.copy_buffer_to_buffer(&buffer, 0, to.buffer(), to.offset(), to.size());
        }
    }

    fn cancel(&mut self, slot: usize, memory: Memory) {
        drop(memory);
        self.slots[slot] = None;
    }

    fn recover(&mut self, slot: usize) -> Result<(), DeviceError> {
        self.slots[slot] = None;
        Ok(())
    }

    fn allocations(&self) -> u64 {
        self.batches
    }
}
