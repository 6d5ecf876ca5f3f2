//! `write-buffer` and `write-buffer-with`: wgpu's own staging, allocated by wgpu for every batch.

use super::super::device::WgpuBackend;
use super::super::mapped::Memory;
use super::Staging;
use crate::error::DeviceError;
use crate::staging::HostMemory;

/// Slots in pageable memory, which `Queue::write_buffer` copies into a staging buffer of its own.
pub(super) struct WriteBuffer {
    backend: WgpuBackend,
    slots: Vec<Option<HostMemory>>,
    batches: u64,
}

impl WriteBuffer {
    pub(super) fn new(backend: &WgpuBackend, slots: usize, bytes: usize) -> Result<Self, DeviceError> {
        let slots = (0..slots).map(|_| HostMemory::new(bytes).map(Some)).collect::<Result<_, _>>()?;
        Ok(Self { backend: backend.clone(), slots, batches: 0 })
    }
}

impl Staging for WriteBuffer {
    fn begin(&mut self, slot: usize) -> Result<Memory, DeviceError> {
        let memory = self.slots[slot].take();
        memory.map(Memory::Host).ok_or_else(|| DeviceError::Refused { message: format!("slot {slot} is in use") })
    }

    fn record(&mut self, slot: usize, memory: Memory, _: &mut wgpu::CommandEncoder, to: wgpu::BufferSlice<'_>) {
        self.batches += 1;
        if let Memory::Host(memory) = memory {
            let bytes = usize::try_from(to.size()).unwrap_or(memory.len());
            // Ordered before the command buffer that follows.
            self.backend.queue().write_buffer(to.buffer(), to.offset(), &memory[..bytes]);
            self.slots[slot] = Some(memory);
        }
    }

    fn cancel(&mut self, slot: usize, memory: Memory) {
        if let Memory::Host(memory) = memory {
            self.slots[slot] = Some(memory);
        }
    }

    fn recover(&mut self, _slot: usize) -> Result<(), DeviceError> {
        self.backend.send_queued_writes();
        Ok(())
    }

    fn frees_on_submit(&self) -> bool {
        true
    }

    fn copies(&self) -> bool {
        false
    }

    fn allocations(&self) -> u64 {
        self.batches
    }
}

/// Slots in wgpu's staging memory, filled in place.
pub(super) struct WriteBufferWith {
    backend: WgpuBackend,
    to: wgpu::Buffer,
    bytes: u64,
    batches: u64,
}

impl WriteBufferWith {
    pub(super) fn new(backend: &WgpuBackend, to: wgpu::Buffer, bytes: u64) -> Self {
        Self { backend: backend.clone(), to, bytes, batches: 0 }
    }
}

impl Staging for WriteBufferWith {
    fn begin(&mut self, _slot: usize) -> Result<Memory, DeviceError> {
        self.batches += 1;
        let size = wgpu::BufferSize::new(self.bytes);
        let write = |size| self.backend.queue().write_buffer_with(&self.to, 0, size);
        let view = self.backend.allocate("a staging buffer of wgpu", self.bytes, || size.and_then(write))?;
        let refused = || DeviceError::Refused { message: "wgpu gave no staging buffer".to_owned() };
        view.map(Memory::Queue).ok_or_else(refused)
    }

    fn record(&mut self, _slot: usize, memory: Memory, encoder: &mut wgpu::CommandEncoder, to: wgpu::BufferSlice<'_>) {
        // Queues the copy, ordered before the command buffer that follows. The destination was settled before the memory
        // was filled, so a tensor that is the bytes themselves takes a second copy, inside the device.
        drop(memory);
        if *to.buffer() != self.to {
            encoder.copy_buffer_to_buffer(&self.to, 0, to.buffer(), to.offset(), to.size());
        }
    }

    fn cancel(&mut self, _slot: usize, memory: Memory) {
        // Queues a copy too; the next batch overwrites it before anything reads it. Only a submission lets go of the staging buffer,
        // and a lost device shows at the next one.
        let _ = self.backend.scope(|| {
            drop(memory);
            self.backend.submit([])
        });
    }

    fn recover(&mut self, _slot: usize) -> Result<(), DeviceError> {
        self.backend.send_queued_writes();
        Ok(())
    }

    fn copies(&self) -> bool {
        false
    }

    fn allocations(&self) -> u64 {
        self.batches
    }
}
