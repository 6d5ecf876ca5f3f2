//! The fingerprint kernel of `shaders/fingerprint.wgsl`.

use super::program::{GROUP, Grid, Part, Program, StorageEntry, Uniforms};
use super::segments::{Binding, Segment, fingerprint_bytes};
use crate::backend::LaneSpec;
use crate::error::OpenError;

const SHADER: &str = concat!(
    include_str!("../../../../shaders/fingerprint.wgsl"),
    include_str!("../../../../shaders/fingerprint_batch.wgsl")
);
/// Words that a thread sums, unless a sample is so large that the workgroups would run out: enough to make the reduction
/// at the end cheap, and few enough to spread one sample over many workgroups.
const STEPS: usize = 16;

/// Words that a thread sums of samples of this size, and the workgroups that a sample takes then.
pub(super) fn steps_and_groups(sample_bytes: usize, most_groups: u32) -> (usize, usize) {
    let groups = sample_bytes.div_ceil(4).div_ceil(GROUP);
    let steps = groups.div_ceil(most_groups as usize).max(STEPS).min(groups);
    (steps, groups.div_ceil(steps))
}

/// The pipeline for one lane's samples, the batch's segments, and their constants.
#[derive(Debug)]
pub(super) struct FingerprintKernel {
    program: Program,
    segments: Vec<Segment>,
    constants: Uniforms,
    sums_bytes: u64,
    groups_per_sample: usize,
    most_groups: u32,
}

impl FingerprintKernel {
    pub fn new(device: &wgpu::Device, spec: &LaneSpec) -> Result<Self, OpenError> {
        let limits = device.limits();
        let most_groups = limits.max_compute_workgroups_per_dimension;
        let segments = Binding::new(&limits).fingerprint(spec)?;
        let sample_bytes = spec.layout.payload(1);
        let (steps, groups_per_sample) = steps_and_groups(sample_bytes, most_groups);
        let overrides = [("sample_bytes", sample_bytes as f64), ("steps", steps as f64)];
        let entries = [StorageEntry::ReadWrite, StorageEntry::Read, StorageEntry::Uniform];
        let records = segments.iter().map(|s| [s.skip, s.samples.start as u64, s.samples.len() as u64, 0]);
        Ok(Self {
            program: Program::new(device, SHADER, "fingerprint", &overrides, &[&entries])?,
            constants: Uniforms::new(device, "fingerprint", records)?,
            segments,
            sums_bytes: fingerprint_bytes(spec.layout.batch_size()),
            groups_per_sample,
            most_groups,
        })
    }

    /// One bind group a segment.
    pub fn bind(&self, device: &wgpu::Device, source: &wgpu::Buffer, sums: &wgpu::Buffer) -> Vec<Part> {
        let bind = |(index, segment): (usize, &Segment)| {
            let constants = (&self.constants.buffer, &self.constants.range(index));
            let buffers = [(sums, &(0..self.sums_bytes)), (source, &segment.source), constants];
            Part { samples: segment.samples.clone(), group: self.program.bind(device, &buffers) }
        };
        self.segments.iter().enumerate().map(bind).collect()
    }

    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>, parts: &[Part], samples: usize) {
        pass.set_pipeline(&self.program.pipeline);
        for part in parts {
            part.dispatch(pass, Grid::per_sample(self.groups_per_sample, part.count(samples), self.most_groups));
        }
    }
}
