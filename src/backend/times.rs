//! How long the device itself took.

use serde::Serialize;

/// What the device's own clock measured, summed over batches. Batches whose times were not read yet are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GpuTimes {
    /// Seconds of copies from staging memory to the device, where they are commands of their own.
    pub copy_s: f64,
    /// Seconds of kernels. Where a kernel reads staging memory itself, the bus is in here.
    pub kernel_s: f64,
    /// Batches measured.
    pub batches: u64,
}
