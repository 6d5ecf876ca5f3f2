//! The fingerprint kernel of `shaders/fingerprint.wgsl`.

use super::program::{GROUP, Grid, Part, Program, StorageEntry, Uniforms};
use super::segments::{Binding, Segment, fingerprint_bytes};
use crate::backend::LaneSpec;
use crate::error::OpenError;
use crate::preprocess::{OutputField, OutputLayout};

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

/// The pipelines for one lane's samples, one for each field on the device.
#[derive(Debug)]
pub(super) struct FingerprintKernel {
    fields: Vec<FieldKernel>,
    sums_bytes: u64,
    most_groups: u32,
}

/// The pipeline for one field, the batch's segments, and their constants.
#[derive(Debug)]
struct FieldKernel {
    program: Program,
    segments: Vec<Segment>,
    constants: Uniforms,
    groups_per_sample: usize,
    /// Whether its bytes are read where they arrived, and not where they are delivered.
    where_arrived: bool,
}

impl FingerprintKernel {
    pub fn new(device: &wgpu::Device, spec: &LaneSpec) -> Result<Self, OpenError> {
        let most_groups = device.limits().max_compute_workgroups_per_dimension;
        let output = OutputLayout::new(&spec.preprocess, &spec.layout)?;
        let fields = output.fields().iter().enumerate();
        let fields = fields.map(|(row, field)| FieldKernel::new(device, spec, row * spec.layout.batch_size(), field));
        Ok(Self {
            fields: fields.collect::<Result<_, _>>()?,
            sums_bytes: fingerprint_bytes(spec.fingerprint_count()),
            most_groups,
        })
    }

    /// For each field one bind group a segment. The first field, and what kernels make others of, is read where it arrived, and the others
    /// where they are delivered.
    pub fn bind(
        &self,
        device: &wgpu::Device,
        [source, output]: [&wgpu::Buffer; 2],
        sums: &wgpu::Buffer,
    ) -> Vec<Vec<Part>> {
        let bind = |field: &FieldKernel| {
            let read = if field.where_arrived { source } else { output };
            field.bind(device, read, (sums, self.sums_bytes))
        };
        self.fields.iter().map(bind).collect()
    }

    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>, fields: &[Vec<Part>], samples: usize) {
        for (field, parts) in self.fields.iter().zip(fields) {
            pass.set_pipeline(&field.program.pipeline);
            for part in parts {
                part.dispatch(pass, Grid::per_sample(field.groups_per_sample, part.count(samples), self.most_groups));
            }
        }
    }
}

impl FieldKernel {
    /// The field's samples have the fingerprints from `first` on.
    fn new(device: &wgpu::Device, spec: &LaneSpec, first: usize, field: &OutputField) -> Result<Self, OpenError> {
        let limits = device.limits();
        let (batch, sample_bytes) = (spec.layout.batch_size(), field.source_bytes(&spec.layout));
        let where_arrived = field.is_made || field.desc.offset == 0;
        let offset = if where_arrived { field.slot_offset } else { field.desc.offset };
        let segments = Binding::new(&limits).fingerprint(batch, offset, sample_bytes)?;
        let (steps, groups_per_sample) = steps_and_groups(sample_bytes, limits.max_compute_workgroups_per_dimension);
        let overrides = [("sample_bytes", sample_bytes as f64), ("steps", steps as f64)];
        let entries = [StorageEntry::ReadWrite, StorageEntry::Read, StorageEntry::Uniform];
        let records = segments.iter().map(|s| [s.skip, (first + s.samples.start) as u64, s.samples.len() as u64, 0]);
        Ok(Self {
            program: Program::new(device, SHADER, "fingerprint", &overrides, &[&entries])?,
            constants: Uniforms::new(device, "fingerprint", records)?,
            segments,
            groups_per_sample,
            where_arrived,
        })
    }

    fn bind(&self, device: &wgpu::Device, read: &wgpu::Buffer, (sums, bytes): (&wgpu::Buffer, u64)) -> Vec<Part> {
        let bind = |(index, segment): (usize, &Segment)| {
            let constants = (&self.constants.buffer, &self.constants.range(index));
            let buffers = [(sums, &(0..bytes)), (read, &segment.source), constants];
            Part { samples: segment.samples.clone(), group: self.program.bind(device, &buffers) }
        };
        self.segments.iter().enumerate().map(bind).collect()
    }
}
