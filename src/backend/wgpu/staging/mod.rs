//! The staging strategies: where a slot's memory comes from, and how its bytes get to the device.

mod belt;
mod fresh;
mod none;
mod queue;
mod ring;
mod system;

use super::device::WgpuBackend;
use super::mapped::Memory;
use super::native::{KeepAlive, RawBuffer};
use crate::backend::{LaneSpec, Strategy};
use crate::error::{DeviceError, Unsupported};

/// One strategy's slots. The lane knows which slot is free, filling or in flight; this knows what a slot is made of.
pub(super) trait Staging: Send {
    /// The memory of a free slot.
    fn begin(&mut self, slot: usize) -> Result<Memory, DeviceError>;

    /// Ends the writing and records the copy of as many bytes as `to` has, if there is one: a strategy whose slots the kernel reads
    /// directly has none to make unless the tensor is the bytes themselves.
    ///
    /// Runs in an error scope, before the kernels are recorded.
    fn record(&mut self, slot: usize, memory: Memory, encoder: &mut wgpu::CommandEncoder, to: wgpu::BufferSlice<'_>);

    /// The commands of [`record`](Self::record) are on their way. Runs in the same error scope.
    fn sent(&mut self, _slot: usize) {}

    /// Takes the memory of a slot back that will not be sent.
    fn cancel(&mut self, slot: usize, memory: Memory);

    /// Makes a slot usable again whose submission failed after [`record`](Self::record).
    fn recover(&mut self, slot: usize) -> Result<(), DeviceError>;

    /// Whether a slot is free as soon as its batch is submitted, because its bytes have been copied elsewhere.
    fn frees_on_submit(&self) -> bool {
        false
    }

    /// Whether [`record`](Self::record) copies the slot by a command, and not wgpu by itself beforehand.
    fn copies(&self) -> bool {
        self.in_place().is_empty()
    }

    /// The buffers that the kernel reads in place, one a slot; empty where the bytes are copied to the device first.
    fn in_place(&self) -> &[wgpu::Buffer] {
        &[]
    }

    /// What must outlive the submission that reads this slot, where wgpu does not see to it.
    fn keep(&self, _slot: usize) -> Option<KeepAlive> {
        None
    }

    /// The slot's memory, to be copied on a queue that wgpu does not know of.
    fn raw(&self, _slot: usize) -> Option<&RawBuffer> {
        None
    }

    /// Allocations made for batches so far, as far as they can be seen.
    fn allocations(&self) -> u64 {
        0
    }
}

/// Makes the slots of a strategy. `device_bytes` is where `write-buffer-with` copies to.
pub(super) fn make(
    backend: &WgpuBackend,
    spec: &LaneSpec,
    device_bytes: Option<&wgpu::Buffer>,
) -> Result<Box<dyn Staging>, StagingError> {
    let (slots, bytes) = (spec.slots, spec.layout.slot_bytes() as u64);
    Ok(match (spec.strategy, device_bytes) {
        (Strategy::WriteBuffer, _) => Box::new(queue::WriteBuffer::new(backend, slots, spec.layout.slot_bytes())?),
        (Strategy::WriteBufferWith, Some(to)) => Box::new(queue::WriteBufferWith::new(backend, to.clone(), bytes)),
        (Strategy::StagingBelt, _) => Box::new(belt::Belt::new(backend, slots, bytes)),
        (Strategy::FreshMapped, _) => Box::new(fresh::Fresh::new(backend, slots, bytes)),
        (Strategy::MappedRing, _) => Box::new(ring::Ring::mapped(backend, slots, bytes)?),
        (Strategy::DirectMap, _) => Box::new(ring::Ring::in_place(backend, slots, bytes, spec)?),
        (Strategy::Imported, _) => Box::new(none::NoSlots),
        (Strategy::SystemRing, _) => Box::new(system::System::new(backend, spec)?),
        (strategy, _) => {
            let reason = "it is not one of the wgpu backend's".to_owned();
            return Err(Unsupported { strategy, reason }.into());
        }
    })
}

/// Why slots could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum StagingError {
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<StagingError> for crate::error::OpenError {
    fn from(error: StagingError) -> Self {
        match error {
            StagingError::Unsupported(error) => error.into(),
            StagingError::Device(error) => error.into(),
        }
    }
}

/// The memory of a mapped buffer's range.
fn view(range: wgpu::BufferSlice<'_>) -> Result<Memory, DeviceError> {
    let view = range.get_mapped_range_mut();
    view.map(Memory::View).map_err(|error| DeviceError::Refused { message: format!("a slot is not mapped: {error}") })
}

/// A buffer that the CPU can write now.
fn mapped_buffer(
    backend: &WgpuBackend,
    label: &str,
    bytes: u64,
    usage: wgpu::BufferUsages,
) -> Result<wgpu::Buffer, DeviceError> {
    let desc = wgpu::BufferDescriptor { label: Some(label), size: bytes, usage, mapped_at_creation: true };
    backend.allocate(label, bytes, || backend.device().create_buffer(&desc))
}
