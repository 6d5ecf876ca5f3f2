//! The kernels of `normalize.cu` and `gather.cu`.

use std::ops::Range;
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

    /// Which kernel normalises samples that follow each other.
    fn variant(self) -> Variant {
        match self.planar && self.channels > 1 {
            false => Variant::Interleaved,
            true if u64::from(self.plane).is_multiple_of(self.each()) => Variant::Planar,
            true => Variant::PlanarAny,
        }
    }

    /// Which one gathers them.
    fn gather_variant(self) -> Variant {
        if self.planar && self.channels > 1 { Variant::GatherPlanar } else { Variant::GatherInterleaved }
    }

    /// The kernel's name in its module.
    fn name(self, variant: Variant) -> String {
        format!("{}_{}_{}", variant.prefix(), self.channels, if self.half { "f16" } else { "f32" })
    }
}

/// The kernels of `normalize.cu` and `gather.cu`, each of which is there for every number of channels and both floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// Channels beside each other, or a single one.
    Interleaved,
    /// Planes of whole vectors.
    Planar,
    /// Planes of any length.
    PlanarAny,
    GatherInterleaved,
    GatherPlanar,
}

impl Variant {
    #[cfg(test)]
    const ALL: [Self; 5] =
        [Self::Interleaved, Self::Planar, Self::PlanarAny, Self::GatherInterleaved, Self::GatherPlanar];

    fn prefix(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::Planar => "planar",
            Self::PlanarAny => "planar_any",
            Self::GatherInterleaved => "gather_interleaved",
            Self::GatherPlanar => "gather_planar",
        }
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
        Ok(Self { shape, affine, function: Function::new(module, &shape.name(shape.variant()))? })
    }

    /// Bytes of one sample.
    pub(in super::super) fn sample_bytes(&self) -> usize {
        usize::try_from(self.shape.sample_bytes()).unwrap_or(usize::MAX)
    }

    /// Queues the kernel for a part of the samples that follow each other in `from`. The bytes before it are whole vectors.
    pub(in super::super) fn launch(
        &self,
        stream: &CudaStream,
        from: &DeviceMemory,
        to: &DeviceMemory,
        part: Range<usize>,
    ) -> Result<(), DriverError> {
        let (shape, before, samples) = (self.shape, part.start as u64, part.len() as u64);
        let (skipped, written) = (before * shape.sample_bytes(), shape.tensor_bytes(before));
        let (elements, each) = (samples * shape.sample_bytes(), shape.each());
        let (a, b, threads) = match shape.variant() {
            Variant::Planar => {
                let vectors = u64::from(shape.plane) / each;
                (vectors, samples * vectors, samples * vectors)
            }
            Variant::PlanarAny => (u64::from(shape.plane), elements, elements.div_ceil(each)),
            _ => (0, elements.div_ceil(each), elements.div_ceil(each)),
        };
        let source = elements.next_multiple_of(each);
        let end = (from.bytes() as u64).next_multiple_of(16);
        check(elements > 0 && elements <= u64::from(u32::MAX) && skipped + source <= end)?;
        check(skipped.is_multiple_of(16) && written + shape.tensor_bytes(samples) <= to.bytes() as u64)?;
        let (from, to) = (from.address + skipped, to.address + written);
        let (a, b) = (u32::try_from(a).unwrap_or(0), u32::try_from(b).unwrap_or(0));
        let mut args = [arg(&from), arg(&to), arg(&a), arg(&b), arg(&self.affine)];
        // SAFETY: these are the parameters of every kernel of `normalize.cu`. It reads the part's elements, rounded up to the vector
        // that a thread takes, and writes as many; both were checked against the memory, and that both begin with a vector. Device
        // memory is allocated in units far larger than a vector.
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
        Ok(Self { shape, affine, function: Function::new(module, &shape.name(shape.gather_variant()))? })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_that_can_be_asked_for_is_in_the_modules() {
        let modules =
            [include_str!("../../../../shaders/normalize.ptx"), include_str!("../../../../shaders/gather.ptx")];
        for variant in Variant::ALL {
            // One channel has no planes.
            let channels: &[u32] = match variant {
                Variant::Interleaved | Variant::GatherInterleaved => &[1, 3, 4],
                _ => &[3, 4],
            };
            for &channels in channels {
                for half in [false, true] {
                    let name = Shape { channels, plane: 1, planar: true, half }.name(variant);
                    let entry = format!(".entry {name}(");
                    assert!(modules.iter().any(|module| module.contains(&entry)), "{name} is in no module");
                }
            }
        }
    }

    #[test]
    fn planes_of_whole_vectors_have_a_kernel_of_their_own() {
        let shape = Shape { channels: 3, plane: 12, planar: true, half: false };
        assert_eq!(shape.variant(), Variant::Planar);
        assert_eq!(
            Shape { half: true, ..shape }.variant(),
            Variant::PlanarAny,
            "12 elements are no whole vectors of 8"
        );
        assert_eq!(Shape { planar: false, ..shape }.variant(), Variant::Interleaved);
        assert_eq!(Shape { channels: 1, ..shape }.variant(), Variant::Interleaved, "a single channel is its own plane");
    }
}
