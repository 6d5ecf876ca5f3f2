//! Vulkan among the APIs below wgpu.

use std::ops::Range;
use std::sync::Arc;

use super::super::FamilyQueues;
use super::query::import_limits;
use super::queues::SharedQueues;
use super::transfer::TransferQueue;
use super::{device_buffer, host_buffer, import};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{
    CopyQueue, Import, ImportError, ImportLimits, Native, Place, RawBuffer, Region, Writable,
};
use crate::error::DeviceError;
use crate::memory::StableHostMemory;

/// What Vulkan offers.
pub(in crate::backend::wgpu) fn native() -> Option<&'static dyn Native> {
    Some(&Vulkan)
}

struct Vulkan;

impl Native for Vulkan {
    fn host_buffer(
        &self,
        backend: &WgpuBackend,
        label: &str,
        bytes: u64,
        usage: wgpu::BufferUsages,
        place: Place,
    ) -> Result<(wgpu::Buffer, Writable), DeviceError> {
        host_buffer(backend, label, bytes, usage, place)
    }

    fn device_buffer(
        &self,
        backend: &WgpuBackend,
        label: &str,
        bytes: u64,
    ) -> Result<(wgpu::Buffer, RawBuffer), DeviceError> {
        device_buffer(backend, label, bytes)
    }

    fn import_limits(&self, device: &wgpu::Device) -> Result<ImportLimits, String> {
        import_limits(device).ok_or_else(|| "the device imports no memory".to_owned())
    }

    fn import(
        &self,
        backend: &WgpuBackend,
        memory: &Arc<dyn StableHostMemory>,
        range: Range<usize>,
    ) -> Result<Import, ImportError> {
        import::import(backend, memory, range)
    }

    fn record_copy(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        from: &Import,
        to: &wgpu::Buffer,
        regions: &[Region],
    ) -> bool {
        import::record_copy(encoder, from, to, regions)
    }

    fn copy_queue(
        &self,
        backend: &WgpuBackend,
        queues: FamilyQueues,
        room: usize,
    ) -> Result<Box<dyn CopyQueue>, DeviceError> {
        #[cfg(test)]
        if queues.family == super::super::WGPU_FAMILY {
            let own = SharedQueues::wgpus_own(backend.device()).ok_or_else(|| super::refused_by("it has no queue"))?;
            return Ok(Box::new(TransferQueue::new(backend, own, room)?));
        }
        let refused = |reason: super::super::NoSecondQueue| DeviceError::Refused { message: reason.to_string() };
        let shared = SharedQueues::of(backend.device(), queues).map_err(refused)?;
        Ok(Box::new(TransferQueue::new(backend, shared, room)?))
    }
}
