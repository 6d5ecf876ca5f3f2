//! The kernel of `consume.cu`.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError, result};

use super::DeviceMemory;
use super::context::bind;
use super::launch::{Function, Module, arg, check};

/// Words that the kernel looks at: as `consume.cu` has it.
const LOOKS: usize = 512;

/// The kernel that works for a measured consumer.
#[derive(Debug)]
pub(in super::super) struct Consume(Function);

impl Consume {
    pub(in super::super) fn new(module: &Arc<Module>) -> Result<Self, DriverError> {
        Function::new(module, "consume").map(Self)
    }

    /// Queues the work over the first `bytes` bytes of a tensor. `seen` has two counts and as many sums as there is room for.
    pub(in super::super) fn launch(
        &self,
        stream: &CudaStream,
        tensor: &DeviceMemory,
        bytes: usize,
        seen: &DeviceMemory,
        iterations: u32,
    ) -> Result<(), DriverError> {
        let words = bytes / 4;
        check(words > 0 && bytes <= tensor.bytes() && seen.bytes() >= 8)?;
        let stride = u32::try_from(words / LOOKS).unwrap_or(u32::MAX);
        let keep = u32::try_from(seen.bytes() / 4 - 2).unwrap_or(u32::MAX);
        let mut args = [arg(&tensor.address), arg(&seen.address), arg(&stride), arg(&iterations), arg(&keep)];
        // SAFETY: these are the kernel's parameters. It reads below 512 strides of the tensor, whose words are at least as many (or the first
        // word alone), and writes the counts and the sums that `seen` has room for; all were checked against the memory.
        unsafe { self.0.launch(stream, 1, &mut args) }
    }
}

impl DeviceMemory {
    /// Queues that all of it becomes zero.
    pub(in super::super) fn clear(&self, stream: &CudaStream) -> Result<(), DriverError> {
        bind(stream.context())?;
        // SAFETY: as many bytes as the memory has.
        unsafe { result::memset_d8_async(self.address, 0, self.bytes(), stream.cu_stream()) }
    }
}
