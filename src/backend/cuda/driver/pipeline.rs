//! The kernels of `pipeline.cu`.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError};

use super::DeviceMemory;
use super::launch::{Function, Module, arg, check};

/// Bytes of a sample's record.
const RECORD: usize = 96;
/// Samples of a launch, at most.
const MOST_SAMPLES: usize = 65_535;

/// What the kernels take for a lane, in their order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct PipelineLane {
    pub(in super::super) sample_bytes: u64,
    pub(in super::super) pitch: u32,
    pub(in super::super) frame_width: u32,
    pub(in super::super) frame_height: u32,
    /// The first byte of the chroma planes.
    pub(in super::super) plane1: u32,
    pub(in super::super) plane2: u32,
    pub(in super::super) left_sited: u32,
    /// Pixels of four bytes lie at multiples of four.
    pub(in super::super) whole_words: u32,
    pub(in super::super) antialias: u32,
    /// A mask, whose values stay what they are.
    pub(in super::super) keeps_values: u32,
    /// Of the tensor.
    pub(in super::super) width: u32,
    pub(in super::super) height: u32,
    /// 1 or 3.
    pub(in super::super) channels: u32,
    pub(in super::super) planar: u32,
    /// 0 f32, 1 f16, 2 bf16, 3 bytes.
    pub(in super::super) dtype: u32,
    /// Of a tile.
    pub(in super::super) rows: u32,
    /// Of a thread, or none where several share each pixel.
    pub(in super::super) rows_each: u32,
    /// Of a pixel, as a power of two.
    pub(in super::super) sharers: u32,
    pub(in super::super) zero_point: i32,
    /// Of a byte, before the zero point is added.
    pub(in super::super) least: f32,
    pub(in super::super) most: f32,
    pub(in super::super) scale: [f32; 3],
    pub(in super::super) bias: [f32; 3],
    /// Already scaled.
    pub(in super::super) fill: [f32; 3],
}

impl PipelineLane {
    fn sample_tensor_bytes(&self) -> u64 {
        let element = match self.dtype {
            0 => 4,
            1 | 2 => 2,
            _ => 1,
        };
        u64::from(self.width) * u64::from(self.height) * u64::from(self.channels) * element
    }
}

/// How pixels lie and are filtered: which of the kernels it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct PipelineVariant {
    pub(in super::super) format: &'static str,
    pub(in super::super) filter: &'static str,
}

impl PipelineVariant {
    /// The kernel's name in its module.
    pub(in super::super) fn name(self) -> String {
        format!("{}_{}", self.format, self.filter)
    }
}

/// Where the kernel of one field reads and writes, as first bytes in a slot and in the output.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct PipelinePlaces {
    pub(in super::super) frames: usize,
    pub(in super::super) records: usize,
    pub(in super::super) tensor: usize,
    /// Where the records are written too.
    pub(in super::super) told: Option<usize>,
}

/// The kernel of one field of a lane with a pipeline.
#[derive(Debug)]
pub(in super::super) struct Pipelined {
    lane: PipelineLane,
    /// Tiles of a sample, beside and below each other.
    tiles: (u32, u32),
    places: PipelinePlaces,
    function: Function,
}

impl Pipelined {
    pub(in super::super) fn new(
        module: &Arc<Module>,
        variant: PipelineVariant,
        (lane, tiles): (PipelineLane, (u32, u32)),
        places: PipelinePlaces,
    ) -> Result<Self, DriverError> {
        Ok(Self { lane, tiles, places, function: Function::new(module, &variant.name())? })
    }

    /// Queues the kernel for the first `samples` samples of a slot's bytes.
    pub(in super::super) fn launch(
        &self,
        stream: &CudaStream,
        slot: &DeviceMemory,
        to: &DeviceMemory,
        samples: usize,
    ) -> Result<(), DriverError> {
        let (count, lane) = (samples as u64, &self.lane);
        let PipelinePlaces { frames, records, tensor, told } = self.places;
        check(samples > 0 && frames as u64 + count * lane.sample_bytes <= records as u64)?;
        check([frames, records, tensor, told.unwrap_or(0)].iter().all(|at| at.is_multiple_of(4)))?;
        check(told.is_none_or(|told| told + samples * RECORD <= to.bytes()))?;
        check(records + samples * RECORD <= slot.bytes())?;
        check(tensor as u64 + count * lane.sample_tensor_bytes() <= to.bytes() as u64)?;
        (0..samples).step_by(MOST_SAMPLES).try_for_each(|first| {
            let skipped = |each: u64| first as u64 * each;
            let frames = slot.address + frames as u64 + skipped(lane.sample_bytes);
            let records = slot.address + records as u64 + skipped(RECORD as u64);
            let tensor = to.address + tensor as u64 + skipped(lane.sample_tensor_bytes());
            let told = told.map_or(0, |told| to.address + told as u64 + skipped(RECORD as u64));
            let grid = (self.tiles.0, self.tiles.1, (samples - first).min(MOST_SAMPLES) as u32);
            let mut args = [arg(&frames), arg(&records), arg(&tensor), arg(&told), arg(lane)];
            // SAFETY: these are the parameters of every kernel of `pipeline.cu`. It writes the samples' elements and their records, which fit
            // the output, and reads their records and frames, which lie in the slot. Which of a frame's bytes those are is for the record to
            // say, which the loader computes inside of the frame.
            unsafe { self.function.launch_grid(stream, grid, &mut args) }
        })
    }
}
