//! Vulkan, Metal, DX12 and GL, through wgpu.
//!
//! [`adapters`] lists what there is without opening anything. [`WgpuBackend::open`] opens a device by text,
//! [`WgpuBackend::from_device`] takes an application's own: create it with [`requirements`].

mod adapters;
mod device;
mod feed;
mod health;
mod kernel;
mod lane;
mod mapped;
mod memory;
mod requirements;
mod staging;
mod tensor;
#[cfg(test)]
mod tests;

pub use adapters::{adapters, adapters_of};
pub use device::WgpuBackend;
pub use lane::WgpuLane;
pub use requirements::{Requirements, requirements};
pub use tensor::WgpuTensor;
