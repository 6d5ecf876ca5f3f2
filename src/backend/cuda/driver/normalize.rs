//! The kernels of `normalize.cu` and `gather.cu`.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError};

use super::launch::{Function, GROUP, Module, arg, check};
use super::{DeviceMemory, Registration};

/// Scale and bias of each channel, as the kernels take them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Affine {
    pub(in super::super) scale: [f32; 4],
    pub(in super::super) bias: [f32; 4],
}

/// What is normalised, and to what.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Shape {
    /// 1, 3 or 4.
    pub(in super::super) channels: u32,
    /// Pixels of one channel.
    pub(in super::super) plane: u32,
    /// One plane a channel, where there are several.
    pub(in super::super) planar: bool,
    /// f16 elements.
    pub(in super::super) half: bool,
}

impl Shape {
    /// Elements that one thread writes to a plane.
    fn each(self) -> u64 {
        if self.half { 8 } else { 4 }
    }

    fn sample_bytes(self) -> u64 {
        u64::from(self.channels) * u64::from(self.plane)
    }

    fn tensor_bytes(self, samples: u64) -> u64 {
        (samples * self.sample_bytes()).div_ceil(self.each()) * 16
    }

    fn kind(self) -> &'static str {
        match self.planar && self.channels > 1 {
            false => "interleaved",
            true if u64::from(self.plane).is_multiple_of(self.each()) => "planar",
            true => "planar_any",
        }
    }

    fn name(self, kind: &str) -> String {
        format!("{kind}_{}_{}", self.channels, if self.half { "f16" } else { "f32" })
    }
}

/// The kernel that normalises a batch on the device.
#[derive(Debug)]
pub(in super::super) struct Normalized {
    shape: Shape,
    affine: Affine,
    function: Function,
}

impl Normalized {
    pub(in super::super) fn new(module: &Arc<Module>, shape: Shape, affine: Affine) -> Result<Self, DriverError> {
        Ok(Self { shape, affine, function: Function::new(module, &shape.name(shape.kind()))? })
    }

    /// Queues the kernel for `samples` samples that follow each other in `from`.
    pub(in super::super) fn launch(
        &self,
        stream: &CudaStream,
        from: &DeviceMemory,
        to: &DeviceMemory,
        samples: usize,
    ) -> Result<(), DriverError> {
        let (shape, samples) = (self.shape, samples as u64);
        let (elements, each) = (samples * shape.sample_bytes(), shape.each());
        let (a, b, threads) = match shape.kind() {
            "planar" => {
                let vectors = u64::from(shape.plane) / each;
                (vectors, samples * vectors, samples * vectors)
            }
            "planar_any" => (u64::from(shape.plane), elements, elements.div_ceil(each)),
            _ => (0, elements.div_ceil(each), elements.div_ceil(each)),
        };
        let source = elements.next_multiple_of(each);
        check(elements > 0 && elements <= u64::from(u32::MAX) && source <= (from.bytes() as u64).next_multiple_of(16))?;
        check(shape.tensor_bytes(samples) <= to.bytes() as u64)?;
        let (a, b) = (u32::try_from(a).unwrap_or(0), u32::try_from(b).unwrap_or(0));
        let mut args = [arg(&from.address), arg(&to.address), arg(&a), arg(&b), arg(&self.affine)];
        // SAFETY: these are the parameters of every kernel of `normalize.cu`. It reads the elements, rounded up to the vector
        // that a thread takes, and writes as many; both were checked against the memory. Device memory is allocated in units
        // far larger than a vector.
        unsafe { self.function.launch(stream, threads.div_ceil(u64::from(GROUP)), &mut args) }
    }
}

/// The kernel that gathers samples out of registered memory and normalises them.
#[derive(Debug)]
pub(in super::super) struct Gathered {
    shape: Shape,
    affine: Affine,
    function: Function,
}

impl Gathered {
    /// Pixels that a block takes, as the kernel has it.
    const TILE: u32 = 4096;

    pub(in super::super) fn new(module: &Arc<Module>, shape: Shape, affine: Affine) -> Result<Self, DriverError> {
        let kind = if shape.planar && shape.channels > 1 { "gather_planar" } else { "gather_interleaved" };
        Ok(Self { shape, affine, function: Function::new(module, &shape.name(kind))? })
    }

    /// Queues the kernel for the samples at `offsets`, which `on_device` holds too once the stream is there.
    pub(in super::super) fn launch(
        &self,
        stream: &CudaStream,
        memory: &Registration,
        offsets: &[u64],
        on_device: &DeviceMemory,
        to: &DeviceMemory,
    ) -> Result<(), DriverError> {
        let (shape, samples) = (self.shape, offsets.len() as u64);
        let bytes = usize::try_from(shape.sample_bytes()).unwrap_or(usize::MAX);
        check(samples > 0 && memory.covers(offsets, bytes) && std::mem::size_of_val(offsets) <= on_device.bytes())?;
        check(shape.tensor_bytes(samples) <= to.bytes() as u64)?;
        let (from, tiles) = (memory.address(), shape.plane.div_ceil(Self::TILE));
        let mut args =
            [arg(&from), arg(&on_device.address), arg(&to.address), arg(&shape.plane), arg(&tiles), arg(&self.affine)];
        // SAFETY: these are the parameters of every kernel of `gather.cu`. It reads the samples, which lie inside of the
        // registered memory, in vectors that each hold one of their bytes and so lie in the same locked pages; it writes
        // their elements, which fit the tensor.
        unsafe { self.function.launch(stream, samples * u64::from(tiles), &mut args) }
    }
}
