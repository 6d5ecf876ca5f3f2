//! The geometry of a pipeline's samples, which those in slots have there: the CPU writes it where the device copies it from.

use super::super::device::WgpuBackend;
use super::super::native::{KeepAlive, Place, Writable};
use crate::backend::LaneSpec;
use crate::error::OpenError;
use crate::preprocess::{Geometry, PipelinePlan, Preprocess};

/// Bytes of one sample's geometry.
const RECORD: u64 = 4 * Geometry::WORDS as u64;

/// Memory for one batch of them, for each submission that can be in flight.
pub(in super::super) struct Records {
    batches: Vec<(wgpu::Buffer, Writable)>,
    /// The byte of a slot at which they lie.
    offset: u64,
}

impl Records {
    /// `None` without a pipeline.
    pub(super) fn new(backend: &WgpuBackend, spec: &LaneSpec, submissions: usize) -> Result<Option<Self>, OpenError> {
        if !matches!(spec.preprocess, Preprocess::Pipeline(_)) {
            return Ok(None);
        }
        let (bytes, usage) = (batch_bytes(spec), wgpu::BufferUsages::COPY_SRC);
        let native = backend.native()?;
        let make = |_| native.host_buffer(backend, "gpufeed geometry", bytes, usage, Place::NearDevice);
        let batches = (0..submissions).map(make).collect::<Result<_, _>>()?;
        Ok(Some(Self { batches, offset: PipelinePlan::records_offset(&spec.layout) as u64 }))
    }

    /// What holds the memory of a submission's.
    pub(super) fn keep(&self, submission: usize) -> KeepAlive {
        self.batches[submission].1.keep()
    }

    /// Writes a batch's, which are of no submission in flight.
    pub(super) fn write(&mut self, submission: usize, records: &[[f32; Geometry::WORDS]]) {
        self.batches[submission].1.write(0, bytemuck::cast_slice(records));
    }

    /// Records their copy to where they would lie in a slot.
    pub(in super::super) fn record(
        &self,
        submission: usize,
        encoder: &mut wgpu::CommandEncoder,
        to: &wgpu::Buffer,
        samples: usize,
    ) {
        encoder.copy_buffer_to_buffer(&self.batches[submission].0, 0, to, self.offset, samples as u64 * RECORD);
    }
}

/// Bytes of a full batch's.
fn batch_bytes(spec: &LaneSpec) -> u64 {
    (spec.layout.batch_size() as u64).saturating_mul(RECORD)
}

/// Bytes of all of a lane's; zero without a pipeline.
pub(in super::super) fn record_bytes(spec: &LaneSpec) -> u64 {
    match spec.preprocess {
        Preprocess::Pipeline(_) => batch_bytes(spec).saturating_mul(super::submissions(spec) as u64),
        _ => 0,
    }
}
