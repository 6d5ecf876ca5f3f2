//! The fingerprint kernel of `shaders/fingerprint.wgsl`.

use super::program::{GROUP, Grid, Part, Program, StorageEntry, scoped};
use super::segments::{Binding, Segment, fingerprint_bytes};
use crate::backend::LaneSpec;
use crate::error::OpenError;

const SHADER: &str = include_str!("../../../../shaders/fingerprint.wgsl");
/// Words that a thread sums, unless a sample is so large that the workgroups would run out: enough to make the reduction
/// at the end cheap, and few enough to spread one sample over many workgroups.
const STEPS: usize = 16;
/// Room for one segment's constants: a multiple of every device's uniform offset alignment.
const UNIFORM_STRIDE: u64 = 256;
/// Bytes of one segment's constants.
const UNIFORM_BYTES: u64 = 16;

/// The pipeline for one lane's samples, the batch's segments, and their constants.
#[derive(Debug)]
pub(super) struct FingerprintKernel {
    program: Program,
    segments: Vec<Segment>,
    constants: wgpu::Buffer,
    sums_bytes: u64,
    groups_per_sample: usize,
    most_groups: u32,
}

impl FingerprintKernel {
    pub fn new(device: &wgpu::Device, spec: &LaneSpec) -> Result<Self, OpenError> {
        let limits = device.limits();
        let most_groups = limits.max_compute_workgroups_per_dimension;
        let segments = Binding::new(&limits).fingerprint(spec)?;
        let sample_bytes = spec.layout.sample().byte_len();
        let groups = sample_bytes.div_ceil(4).div_ceil(GROUP);
        let steps = groups.div_ceil(most_groups as usize).max(STEPS).min(groups);
        let overrides = [("sample_bytes", sample_bytes as f64), ("steps", steps as f64)];
        let entries = [StorageEntry::Read, StorageEntry::ReadWrite, StorageEntry::Uniform];
        Ok(Self {
            program: Program::new(device, SHADER, "fingerprint", &overrides, &entries)?,
            constants: scoped(device, "fingerprint", || constants(device, &segments))?,
            segments,
            sums_bytes: fingerprint_bytes(spec.layout.batch_size()),
            groups_per_sample: groups.div_ceil(steps),
            most_groups,
        })
    }

    /// One bind group a segment.
    pub fn bind(&self, device: &wgpu::Device, source: &wgpu::Buffer, sums: &wgpu::Buffer) -> Vec<Part> {
        let bind = |(index, segment): (u64, &Segment)| {
            let start = index * UNIFORM_STRIDE;
            let constants = start..start + UNIFORM_BYTES;
            let buffers = [(source, &segment.source), (sums, &(0..self.sums_bytes)), (&self.constants, &constants)];
            Part { samples: segment.samples.clone(), group: self.program.bind(device, &buffers) }
        };
        (0..).zip(&self.segments).map(bind).collect()
    }

    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>, parts: &[Part], samples: usize) {
        pass.set_pipeline(&self.program.pipeline);
        for part in parts {
            part.dispatch(pass, Grid::per_sample(self.groups_per_sample, part.count(samples), self.most_groups));
        }
    }
}

/// What the shader's `Segment` holds, one entry a segment. Written while the buffer is made: nothing is uploaded later.
fn constants(device: &wgpu::Device, segments: &[Segment]) -> wgpu::Buffer {
    let mut words = Vec::new();
    for segment in segments {
        // A binding is addressable in 32 bits, and so are a batch's samples: `fingerprint` and `check_limits` saw to it.
        let values = [segment.skip, segment.samples.start as u64, segment.samples.len() as u64];
        words.extend(values.map(|value| u32::try_from(value).unwrap_or(u32::MAX)));
        words.resize(words.len().next_multiple_of(UNIFORM_STRIDE as usize / 4), 0);
    }
    let bytes: &[u8] = bytemuck::cast_slice(&words);
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("gpufeed fingerprint segments"),
        size: bytes.len() as u64,
        usage: wgpu::BufferUsages::UNIFORM,
        mapped_at_creation: true,
    });
    if let Ok(mut view) = buffer.get_mapped_range_mut(..) {
        view.copy_from_slice(bytes);
    }
    buffer.unmap();
    buffer
}
