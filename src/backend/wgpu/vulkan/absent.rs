//! Platforms whose wgpu has no Vulkan: nothing of it is there, and everything says so.

use std::convert::Infallible;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use super::families::{Families, FamilyQueues, NoSecondQueue};
use super::{ImportError, ImportLimits, KeepAlive, MemoryTypes, Place};
use crate::backend::wgpu::WgpuBackend;
use crate::error::DeviceError;
use crate::memory::StableHostMemory;

const ABSENT: &str = "there is no Vulkan on this platform";

pub(in super::super) fn adapter_memory(_: &wgpu::Adapter) -> Option<MemoryTypes> {
    None
}

pub(in super::super) fn device_memory(_: &wgpu::Device) -> Option<MemoryTypes> {
    None
}

pub(in super::super) fn adapter_imports(_: &wgpu::Adapter) -> bool {
    false
}

pub(in super::super) fn device_imports(_: &wgpu::Device) -> bool {
    false
}

pub(in super::super) fn import_limits(_: &wgpu::Device) -> Option<ImportLimits> {
    None
}

pub(in super::super) fn open_device(
    _: &wgpu::Adapter,
    _: &wgpu::DeviceDescriptor<'_>,
) -> Result<(wgpu::Device, wgpu::Queue), DeviceError> {
    Err(DeviceError::Refused { message: ABSENT.to_owned() })
}

/// A region of a copy.
#[allow(dead_code)] // Nobody copies it.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Region {
    pub src_offset: u64,
    pub dst_offset: u64,
    pub size: u64,
}

/// Never there.
#[derive(Clone, Debug)]
pub(in super::super) struct RawBuffer(Infallible);

impl RawBuffer {
    pub fn keep(&self) -> KeepAlive {
        match self.0 {}
    }
}

/// Never there.
pub(in super::super) struct Writable(Infallible);

impl Writable {
    pub fn raw(&self) -> RawBuffer {
        match self.0 {}
    }

    pub fn keep(&self) -> KeepAlive {
        match self.0 {}
    }

    pub fn base(&self) -> NonNull<u8> {
        match self.0 {}
    }

    pub fn len(&self) -> usize {
        match self.0 {}
    }

    pub fn write(&mut self, _: usize, _: &[u8]) {
        match self.0 {}
    }
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

/// Never there.
pub(in super::super) struct Import {
    pub buffer: wgpu::Buffer,
    never: Infallible,
}

impl Import {
    pub fn raw(&self) -> RawBuffer {
        match self.never {}
    }

    pub fn keep(&self) -> KeepAlive {
        match self.never {}
    }
}

pub(in super::super) fn host_buffer(
    _: &WgpuBackend,
    _: &str,
    _: u64,
    _: wgpu::BufferUsages,
    _: Place,
) -> Result<(wgpu::Buffer, Writable), DeviceError> {
    Err(DeviceError::Refused { message: ABSENT.to_owned() })
}

pub(in super::super) fn import(
    _: &WgpuBackend,
    _: &Arc<dyn StableHostMemory>,
    _: Range<usize>,
) -> Result<Import, ImportError> {
    Err(ImportError::Refused(ABSENT.to_owned()))
}

pub(in super::super) fn record_copy(_: &mut wgpu::CommandEncoder, _: &Import, _: &wgpu::Buffer, _: &[Region]) -> bool {
    false
}

pub(in super::super) fn device_buffer(
    _: &WgpuBackend,
    _: &str,
    _: u64,
) -> Result<(wgpu::Buffer, RawBuffer), DeviceError> {
    Err(DeviceError::Refused { message: ABSENT.to_owned() })
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
    Err(NoSecondQueue::NotVulkan)
}

pub(in super::super) fn device_families(_: &wgpu::Device) -> Result<Families, NoSecondQueue> {
    Err(NoSecondQueue::NotVulkan)
}

/// Never there.
pub(in super::super) struct SharedQueues(Infallible);

impl SharedQueues {
    pub fn of(_: &wgpu::Device, _: FamilyQueues) -> Result<Arc<Self>, NoSecondQueue> {
        Err(NoSecondQueue::NotVulkan)
    }
}

/// A copy between two buffers.
#[allow(dead_code)] // Nobody makes it.
#[derive(Clone, Copy)]
pub(in super::super) struct Copy<'a> {
    pub from: &'a RawBuffer,
    pub to: &'a RawBuffer,
    pub regions: &'a [Region],
}

/// Of no transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct TransferTicket;

/// Never there.
pub(in super::super) struct TransferQueue(Infallible);

impl TransferQueue {
    pub fn new(_: &WgpuBackend, shared: Arc<SharedQueues>, _: usize) -> Result<Self, DeviceError> {
        match shared.0 {}
    }

    pub fn submit<'a>(&mut self, _: &(impl Iterator<Item = Copy<'a>> + Clone)) -> Result<TransferTicket, DeviceError> {
        match self.0 {}
    }

    pub fn is_reached(&self, _: TransferTicket) -> Result<bool, DeviceError> {
        match self.0 {}
    }

    pub fn wait(&self, _: TransferTicket, _: Duration) -> Result<bool, DeviceError> {
        match self.0 {}
    }

    pub fn stage(&self, _: TransferTicket) -> Result<(), DeviceError> {
        match self.0 {}
    }

    pub fn stage_ahead(&self, _: TransferTicket) -> Result<(), DeviceError> {
        match self.0 {}
    }

    pub fn keep(&self) -> KeepAlive {
        match self.0 {}
    }

    pub fn unstage(&self) {
        match self.0 {}
    }
}
