//! `staging-belt`: wgpu's `StagingBelt`, one a slot, since finishing a belt closes all of its chunks.

use super::super::device::WgpuBackend;
use super::super::mapped::Memory;
use super::{Staging, view};
use crate::error::DeviceError;

pub(super) struct Belt {
    backend: WgpuBackend,
    slots: Vec<Slot>,
    bytes: u64,
}

struct Slot {
    belt: wgpu::util::StagingBelt,
    /// Where in the belt the slot's memory is while it is filled.
    chunk: Option<(wgpu::Buffer, u64)>,
}

impl Belt {
    pub(super) fn new(backend: &WgpuBackend, slots: usize, bytes: u64) -> Self {
        let belt = || wgpu::util::StagingBelt::new(backend.device().clone(), bytes);
        let slots = (0..slots).map(|_| Slot { belt: belt(), chunk: None }).collect();
        Self { backend: backend.clone(), slots, bytes }
    }
}

impl Staging for Belt {
    fn begin(&mut self, slot: usize) -> Result<Memory, DeviceError> {
        let bytes = self.bytes;
        let Slot { belt, chunk } = &mut self.slots[slot];
        let (Some(size), Some(align)) = (wgpu::BufferSize::new(bytes), wgpu::BufferSize::new(wgpu::MAP_ALIGNMENT))
        else {
            return Err(DeviceError::Refused { message: "a slot has no bytes".to_owned() });
        };
        self.backend.allocate("a chunk of the staging belt", bytes, || {
            let range = belt.allocate(size, align);
            *chunk = Some((range.buffer().clone(), range.offset()));
            view(range)
        })?
    }

    fn record(&mut self, slot: usize, memory: Memory, encoder: &mut wgpu::CommandEncoder, to: wgpu::BufferSlice<'_>) {
        drop(memory);
        let Slot { belt, chunk } = &mut self.slots[slot];
        if let Some((buffer, offset)) = chunk.take() {
            encoder.copy_buffer_to_buffer(&buffer, offset, to.buffer(), to.offset(), to.size());
        }
        belt.finish();
    }

    fn sent(&mut self, slot: usize) {
        self.slots[slot].belt.recall();
    }

    fn cancel(&mut self, slot: usize, memory: Memory) {
        drop(memory);
        let Slot { belt, chunk } = &mut self.slots[slot];
        *chunk = None;
        // The chunk was used up by being handed out; it comes back at the next poll.
        belt.finish();
        belt.recall();
        // Without a submission nobody else polls. A lost device shows at the next one.
        let _ = self.backend.look();
    }

    fn recover(&mut self, slot: usize) -> Result<(), DeviceError> {
        // Its chunks may never come back; a new belt makes a new one.
        self.slots[slot].belt = wgpu::util::StagingBelt::new(self.backend.device().clone(), self.bytes);
        Ok(())
    }
}
