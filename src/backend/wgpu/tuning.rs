//! Choices that depend on the device, and whose defaults are what served best where it was measured.

pub use super::vulkan::HostCache;

/// How strategies of the Vulkan backend do what more than one way leads to. The delivered bytes are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// The memory of `system-ring`, where the driver has both kinds.
    pub host_cache: HostCache,
    /// How a batch of `system-ring` becomes a tensor.
    pub slots: SlotReads,
    /// How a batch of `imported` is gathered.
    pub gather: Gather,
}

/// How a filled slot in host memory becomes a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotReads {
    /// A copy to the device, and then the kernel: each runs near its own limit.
    #[default]
    Copy,
    /// The kernel reads the slot over the bus: one pass, and no device memory between.
    InPlace,
}

/// How the samples of a batch are collected from imported memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gather {
    /// A kernel reads them over the bus and writes the tensor: one pass.
    #[default]
    Kernel,
    /// One copy of many regions to the device, and then the kernel. Copies move whole words: a batch with a sample whose size or
    /// place is no multiple of four bytes takes the kernel instead.
    Copy,
}
