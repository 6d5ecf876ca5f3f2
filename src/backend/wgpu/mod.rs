//! Vulkan, Metal, DX12 and GL, through wgpu.
//!
//! [`adapters`] lists what there is without opening anything. [`WgpuBackend::open`] opens a device by text,
//! [`WgpuBackend::from_device`] takes an application's own: create it with [`requirements`] and [`open_device`]. [`Tuning`] chooses among
//! ways that lead to the same bytes.

mod adapters;
mod buffers;
mod device;
mod direct;
mod feed;
mod health;
mod kernel;
mod lane;
mod mapped;
mod memory;
mod requirements;
mod staging;
mod submit;
mod tensor;
#[cfg(test)]
mod tests;
mod timing;
mod tuning;
mod vulkan;

pub use adapters::{adapters, adapters_of};
pub use device::{WgpuBackend, open_device};
pub use lane::WgpuLane;
pub use requirements::{Requirements, requirements};
pub use tensor::WgpuTensor;
pub use tuning::{Gather, HostCache, SlotReads, Tuning};
