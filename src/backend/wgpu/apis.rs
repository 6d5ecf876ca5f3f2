//! Which API below wgpu a device is of, and what that offers.

use super::native::Native;
use super::vulkan::{Families, NoSecondQueue};
use super::{dx12, kinds, metal, unproven, vulkan};
use crate::backend::Api;
use crate::backend::wgpu::WgpuBackend;
use crate::error::DeviceError;

/// What an API offers beyond wgpu; `None` where that is nothing, or the API is not of this platform.
pub(super) fn native(api: Api) -> Option<&'static dyn Native> {
    match api {
        Api::Vulkan => vulkan::native(),
        Api::Dx12 => dx12::native(),
        Api::Metal => metal::native(),
        Api::Gl | Api::Host | Api::Cuda => None,
    }
}

impl WgpuBackend {
    /// What the API below wgpu offers.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] where that is nothing.
    pub(super) fn native(&self) -> Result<&'static dyn Native, DeviceError> {
        let nothing = || DeviceError::Refused { message: format!("{} offers nothing beyond wgpu", self.api().key()) };
        native(self.api()).ok_or_else(nothing)
    }
}

/// The queues apart from wgpu's that a device of this adapter can be opened with.
///
/// # Errors
/// [`NoSecondQueue`] says why there are none.
pub(super) fn adapter_families(adapter: &wgpu::Adapter) -> Result<Families, NoSecondQueue> {
    families(adapter.get_info().backend, || vulkan::adapter_families(adapter))
}

/// The queues apart from wgpu's that this device has.
///
/// # Errors
/// As [`adapter_families`].
pub(super) fn device_families(device: &wgpu::Device) -> Result<Families, NoSecondQueue> {
    families(device.adapter_info().backend, || vulkan::device_families(device))
}

fn families(
    backend: wgpu::Backend,
    vulkans: impl FnOnce() -> Result<Families, NoSecondQueue>,
) -> Result<Families, NoSecondQueue> {
    match kinds::api_of(backend) {
        Some(Api::Vulkan) => vulkans(),
        Some(Api::Metal) if !unproven::may_be_tried() => Err(NoSecondQueue::Unproven),
        Some(api @ (Api::Dx12 | Api::Metal)) if native(api).is_some() => Ok(Families::COPIES),
        _ => Err(NoSecondQueue::OneQueue),
    }
}
