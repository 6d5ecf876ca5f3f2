//! The device memory of a lane, in bytes and in buffers.

use super::device::WgpuBackend;
use super::direct::gather_of;
use super::kernel::fingerprint_bytes;
use super::tuning::{Gather, SlotReads, Tuning};
use crate::backend::{LaneSpec, Strategy};
use crate::error::DeviceError;
use crate::preprocess::OutputLayout;

/// Bytes of the buffer between staging and kernel.
pub(super) fn device_bytes(spec: &LaneSpec, tuning: Tuning) -> u64 {
    match spec.strategy {
        Strategy::DirectMap => 0,
        Strategy::Imported if gather_of(spec, tuning) == Gather::Kernel => 0,
        Strategy::SystemRing if tuning.slots == SlotReads::InPlace => 0,
        // Its destination is settled before the tensor is.
        Strategy::WriteBufferWith => spec.layout.slot_bytes() as u64,
        _ if spec.preprocess.computes() => spec.layout.slot_bytes() as u64,
        _ => 0,
    }
}

/// Bytes of one output: the tensors, and the fingerprints.
pub(super) fn output_bytes(spec: &LaneSpec) -> u64 {
    let tensors = OutputLayout::new(&spec.preprocess, &spec.layout);
    let sums = fingerprint_bytes(spec.fingerprint_count());
    tensors.map_or(u64::MAX, |tensors| (tensors.bytes() as u64).saturating_add(sums))
}

/// Zeroed, so that wgpu does not clear it later, over what it did not see being copied there.
pub(super) fn device_buffer(backend: &WgpuBackend, label: &str, size: u64) -> Result<wgpu::Buffer, DeviceError> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let desc = wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
    let buffer = backend.allocate(label, size, || backend.device().create_buffer(&desc))?;
    clear(backend, &buffer)?;
    Ok(buffer)
}

/// Queues the zeroing of a buffer.
pub(super) fn clear(backend: &WgpuBackend, buffer: &wgpu::Buffer) -> Result<(), DeviceError> {
    backend.scope(|| {
        let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.clear_buffer(buffer, 0, None);
        backend.submit([encoder.finish()]).map(drop)
    })?
}
