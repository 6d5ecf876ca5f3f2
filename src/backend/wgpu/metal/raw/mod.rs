//! The calls into Metal, and the memory they make. Nothing here has run yet: it is compiled, and refused where nobody asks to
//! [try it](crate::backend::wgpu::unproven).

#![allow(unsafe_code)]

mod copies;
mod memory;

use std::ops::Range;
use std::sync::Arc;

use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::MTLDevice;

use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{CopyQueue, Import, ImportError, ImportLimits, Native, Place, RawBuffer, Writable};
use crate::backend::wgpu::vulkan::FamilyQueues;
use crate::error::DeviceError;
use crate::memory::StableHostMemory;

/// The pages of Apple silicon; those of older machines are a quarter of it.
const PAGE: usize = 16 << 10;

/// What Metal offers.
pub(in crate::backend::wgpu) struct Metal;

impl Native for Metal {
    fn host_buffer(
        &self,
        backend: &WgpuBackend,
        label: &str,
        bytes: u64,
        usage: wgpu::BufferUsages,
        place: Place,
    ) -> Result<(wgpu::Buffer, Writable), DeviceError> {
        memory::host_buffer(backend, label, bytes, usage, place)
    }

    fn device_buffer(
        &self,
        backend: &WgpuBackend,
        label: &str,
        bytes: u64,
    ) -> Result<(wgpu::Buffer, RawBuffer), DeviceError> {
        memory::device_buffer(backend, label, bytes)
    }

    fn import_limits(&self, device: &wgpu::Device) -> Result<ImportLimits, String> {
        Ok(ImportLimits { align: PAGE, most: device.limits().max_buffer_size })
    }

    fn import(
        &self,
        backend: &WgpuBackend,
        memory: &Arc<dyn StableHostMemory>,
        range: Range<usize>,
    ) -> Result<Import, ImportError> {
        memory::import(backend, memory, &range)
    }

    fn copy_queue(
        &self,
        backend: &WgpuBackend,
        _: FamilyQueues,
        room: usize,
    ) -> Result<Box<dyn CopyQueue>, DeviceError> {
        Ok(Box::new(copies::Copier::new(backend, room)?))
    }
}

/// The device below wgpu's.
fn raw_device(device: &wgpu::Device) -> Result<Retained<ProtocolObject<dyn MTLDevice>>, DeviceError> {
    // SAFETY: the object is counted, and used to make children of the device.
    let guard = unsafe { device.as_hal::<wgpu::hal::api::Metal>() };
    Ok(guard.ok_or_else(|| refused_by("this is no Metal device"))?.raw_device().clone())
}

fn refused_by(message: &str) -> DeviceError {
    DeviceError::Refused { message: message.to_owned() }
}
