//! The calls into DX12, and the memory they make.

#![allow(unsafe_code)]

mod copies;
mod import;
mod memory;

use std::ops::Range;
use std::sync::Arc;

use windows::Win32::Foundation::E_OUTOFMEMORY;
use windows::Win32::Graphics::Direct3D12::ID3D12Device;
use windows::Win32::Graphics::Dxgi::{DXGI_ERROR_DEVICE_HUNG, DXGI_ERROR_DEVICE_REMOVED, DXGI_ERROR_DEVICE_RESET};

use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{CopyQueue, Import, ImportError, ImportLimits, Native, Place, RawBuffer, Writable};
use crate::backend::wgpu::vulkan::FamilyQueues;
use crate::error::DeviceError;
use crate::memory::StableHostMemory;

/// What DX12 offers.
pub(in crate::backend::wgpu) struct Dx12;

impl Native for Dx12 {
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
        import::limits(device)
    }

    fn import(
        &self,
        backend: &WgpuBackend,
        memory: &Arc<dyn StableHostMemory>,
        range: Range<usize>,
    ) -> Result<Import, ImportError> {
        import::import(backend, memory, range)
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
fn raw_device(device: &wgpu::Device) -> Result<ID3D12Device, DeviceError> {
    // SAFETY: the interface is counted, and used to make children of the device.
    let guard = unsafe { device.as_hal::<wgpu::hal::api::Dx12>() };
    Ok(guard.ok_or_else(|| refused_by("this is no DX12 device"))?.raw_device().clone())
}

fn refused_by(message: &str) -> DeviceError {
    DeviceError::Refused { message: message.to_owned() }
}

fn failed(backend: &WgpuBackend, what: &str, bytes: u64, error: &windows::core::Error) -> DeviceError {
    match error.code() {
        DXGI_ERROR_DEVICE_REMOVED | DXGI_ERROR_DEVICE_HUNG | DXGI_ERROR_DEVICE_RESET => {
            backend.lose("the driver gave it up")
        }
        E_OUTOFMEMORY => DeviceError::OutOfMemory { what: what.to_owned(), bytes },
        _ => DeviceError::Refused { message: format!("{what}: {}", told(error)) },
    }
}

/// `0x80004001: Not implemented`.
fn told(error: &windows::core::Error) -> String {
    format!("{:#010x}: {}", error.code().0, error.message().trim())
}
