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
    /// Which queue copies a batch of `system-ring` or `imported` to the device.
    pub copies: CopyQueue,
    /// Which queue runs the kernels of `system-ring` and `imported`.
    pub kernels: KernelQueue,
}

/// How a filled slot in host memory becomes a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotReads {
    /// A copy to the device, and then the kernel: each runs near its own limit.
    #[default]
    Copy,
    /// The kernel reads the slot over the bus: one pass, and no device memory between.
    InPlace,
}

/// How the samples of a batch are collected from imported memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gather {
    /// A kernel reads them over the bus and writes the tensor: one pass.
    #[default]
    Kernel,
    /// One copy of many regions to the device, and then the kernel. So it always is with a [`Pipeline`](crate::Pipeline), whose kernels read
    /// every pixel several times.
    Copy,
}

/// Where the copies of `system-ring` and `imported` run.
///
/// On wgpu's queue they take turns with what the application computes there. On a queue of another family they run meanwhile, and only the
/// kernel that makes the tensor runs on wgpu's queue; that takes a buffer on the device for each slot, and a batch is delivered when it
/// has arrived. On Vulkan a device has such queues if [`open_device`](super::open_device) opened it and its driver offers them; on DX12
/// every device has one for copies, and on Metal it is untried: `GPUFEED_UNPROVEN=1` in the environment allows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyQueue {
    /// For `system-ring` the copy engines' queues where the device has them and slots are [copied](SlotReads::Copy); wgpu's otherwise.
    /// What that comes to is in the [support](crate::backend::StrategySupport::queues) of the strategy.
    #[default]
    Automatic,
    /// wgpu's queue.
    Main,
    /// The copy engines' queues where the device has them, else a second compute queue, else wgpu's.
    Beside,
    /// The copy engines' queues, or the strategy is unsupported.
    Transfer,
    /// Queues of a second compute family, or the strategy is unsupported.
    Compute,
    #[cfg(test)]
    /// wgpu's queue, used as if it were another.
    WgpusOwn,
}

/// Where the kernels of `system-ring` and `imported` run, and with them the copies that no other queue makes.
///
/// On wgpu's queue they take turns with what the application computes there. On a queue of the compute family they run beside it, as far as
/// the device lets queues run beside each other. A tensor is then written again only when all has ended that the application had submitted
/// when it gave its batch back: **what uses a batch is submitted before the batch is dropped.** That keeps one output more in use, so a
/// loader needs one more [`outputs`](crate::LoaderOptions::outputs) to be as far ahead. Frames that are pushed stay on wgpu's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelQueue {
    /// A queue of a second compute family where the device has one to spare, else wgpu's. The kernels of `system-ring` are short, and run
    /// with the lowest priority; those of `imported` read over the bus all the time that a batch takes, and have the usual one.
    #[default]
    Automatic,
    /// wgpu's queue.
    Main,
    /// A queue of a second compute family where the device has one to spare, else wgpu's.
    Beside,
    /// A queue of a second compute family, or the strategy is unsupported.
    Compute,
    /// The same with the lowest priority, or the strategy is unsupported.
    LowCompute,
    #[cfg(test)]
    /// wgpu's queue, used as if it were another.
    WgpusOwn,
}
