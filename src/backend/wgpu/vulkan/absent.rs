//! Platforms whose wgpu has no Vulkan: nothing of it is there, and everything says so.

use std::convert::Infallible;
use std::time::Duration;

use super::MemoryTypes;
use super::families::{Families, NoSecondQueue};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Native, RawBuffer};
use crate::error::DeviceError;

const ABSENT: &str = "there is no Vulkan on this platform";

pub(in super::super) fn native() -> Option<&'static dyn Native> {
    None
}

pub(in super::super) fn adapter_memory(_: &wgpu::Adapter) -> Option<MemoryTypes> {
    None
}

pub(in super::super) fn device_memory(_: &wgpu::Device) -> Option<MemoryTypes> {
    None
}

pub(in super::super) fn adapter_imports(_: &wgpu::Adapter) -> bool {
    false
}

pub(in super::super) fn open_device(
    _: &wgpu::Adapter,
    _: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), DeviceError> {
    Err(DeviceError::Refused { message: ABSENT.to_owned() })
}

/// Never there.
#[derive(Debug)]
pub(in super::super) struct Wakeup(Infallible);

impl Wakeup {
    pub fn new(_: &wgpu::Device, _: &wgpu::Queue) -> Option<Self> {
        None
    }

    pub fn of_twin(_: &wgpu::Device, _: &wgpu::Queue, _: &wgpu::Queue) -> Option<Self> {
        None
    }

    pub fn show(&self, _: u64) -> bool {
        match self.0 {}
    }

    pub fn signal<T>(&self, _: impl FnOnce() -> T) -> (T, Option<u64>) {
        match self.0 {}
    }

    pub fn wait(&self, _: u64, _: Duration) -> Result<bool, DeviceError> {
        match self.0 {}
    }
}

pub(in super::super) fn device_handle(_: &wgpu::Device) -> Option<u64> {
    None
}

pub(in super::super) fn twin(
    _: &wgpu::Device,
    _: &wgpu::DeviceDescriptor<'_>,
    _: (u32, u32),
) -> Result<(wgpu::Device, wgpu::Queue), DeviceError> {
    Err(DeviceError::Refused { message: ABSENT.to_owned() })
}

/// Nobody makes it.
pub(in super::super) struct SharedBuffer {
    pub main: wgpu::Buffer,
    pub twin: wgpu::Buffer,
    pub raw: RawBuffer,
}

impl SharedBuffer {
    pub fn new(_: &WgpuBackend, _: &WgpuBackend, _: &str, _: u64) -> Result<Self, DeviceError> {
        Err(DeviceError::Refused { message: ABSENT.to_owned() })
    }
}

pub(in super::super) fn adapter_families(_: &wgpu::Adapter) -> Result<Families, NoSecondQueue> {
    Err(NoSecondQueue::OneQueue)
}

pub(in super::super) fn device_families(_: &wgpu::Device) -> Result<Families, NoSecondQueue> {
    Err(NoSecondQueue::OneQueue)
}
