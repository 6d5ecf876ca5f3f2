//! `system-ring`: a fixed ring in host memory that stays mapped for as long as the lane lives.
//!
//! Below wgpu the end of a submission makes a slot writable again, and a submission sees everything written before it: with
//! coherent memory, which DX12 and Metal have no other of, there is nothing to map, unmap or flush.

use super::super::device::WgpuBackend;
use super::super::mapped::Memory;
use super::super::native::{KeepAlive, Place, RawBuffer, Writable};
use super::super::tuning::SlotReads;
use super::Staging;
use crate::backend::LaneSpec;
use crate::error::DeviceError;
use crate::preprocess::Preprocess;

pub(super) struct System {
    buffers: Vec<wgpu::Buffer>,
    /// The right to write each slot, except while it is lent.
    slots: Vec<Option<Writable>>,
    keeps: Vec<KeepAlive>,
    raws: Vec<RawBuffer>,
    in_place: bool,
    copies: bool,
}

impl System {
    pub(super) fn new(backend: &WgpuBackend, spec: &LaneSpec) -> Result<Self, DeviceError> {
        let tuning = backend.tuning();
        let in_place = tuning.slots == SlotReads::InPlace;
        let usage = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::STORAGE;
        let bytes = spec.layout.slot_bytes() as u64;
        let mut made = Self {
            buffers: Vec::with_capacity(spec.slots),
            slots: Vec::with_capacity(spec.slots),
            keeps: Vec::with_capacity(spec.slots),
            raws: Vec::with_capacity(spec.slots),
            in_place,
            copies: !in_place || matches!(spec.preprocess, Preprocess::Raw),
        };
        for _ in 0..spec.slots {
            let place = Place::System(tuning.host_cache);
            let (buffer, memory) =
                backend.native()?.host_buffer(backend, "gpufeed system slot", bytes, usage, place)?;
            made.buffers.push(buffer);
            made.keeps.push(memory.keep());
            made.raws.push(memory.raw());
            made.slots.push(Some(memory));
        }
        Ok(made)
    }

    fn put_back(&mut self, slot: usize, memory: Memory) {
        if let Memory::Raw(memory) = memory {
            self.slots[slot] = Some(memory);
        }
    }
}

impl Staging for System {
    fn begin(&mut self, slot: usize) -> Result<Memory, DeviceError> {
        let memory = self.slots[slot].take();
        memory.map(Memory::Raw).ok_or_else(|| DeviceError::Refused { message: format!("slot {slot} is in use") })
    }

    fn record(&mut self, slot: usize, memory: Memory, encoder: &mut wgpu::CommandEncoder, to: wgpu::BufferSlice<'_>) {
        // The lane lends it again only when the submission has ended.
        self.put_back(slot, memory);
        if self.copies {
            encoder.copy_buffer_to_buffer(&self.buffers[slot], 0, to.buffer(), to.offset(), to.size());
        }
    }

    fn cancel(&mut self, slot: usize, memory: Memory) {
        self.put_back(slot, memory);
    }

    fn recover(&mut self, _slot: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    fn in_place(&self) -> &[wgpu::Buffer] {
        if self.in_place { &self.buffers } else { &[] }
    }

    fn raw(&self, slot: usize) -> Option<&RawBuffer> {
        self.raws.get(slot)
    }

    fn keep(&self, slot: usize) -> Option<KeepAlive> {
        self.keeps.get(slot).cloned()
    }
}
