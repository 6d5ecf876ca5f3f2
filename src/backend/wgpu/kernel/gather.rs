//! The kernels of `shaders/gather*.wgsl`: imported memory becomes tensors and fingerprints, without a copy between.

use std::ops::Range;

use super::fingerprint::steps_and_groups;
use super::normalize::{constants, shared_shader};
use super::program::{GROUP, Grid, Program, StorageEntry, Uniforms};
use super::segments::{Binding, Segment, fingerprint_bytes};
use crate::backend::LaneSpec;
use crate::error::OpenError;
use crate::preprocess::{FloatType, Normalize, Preprocess, TensorLayout};

/// Follows what kernels that normalise share.
const TENSOR: &str =
    concat!(include_str!("../../../../shaders/gather.wgsl"), include_str!("../../../../shaders/gather_tensor.wgsl"));
const FINGERPRINT: &str = concat!(
    include_str!("../../../../shaders/fingerprint.wgsl"),
    include_str!("../../../../shaders/gather.wgsl"),
    include_str!("../../../../shaders/gather_fingerprint.wgsl")
);
/// What is written and which samples it holds; then the window, the list, and which window it is.
const GROUPS: [&[StorageEntry]; 2] = [
    &[StorageEntry::ReadWrite, StorageEntry::Uniform],
    &[StorageEntry::Read, StorageEntry::Read, StorageEntry::Uniform],
];

/// The kernels of `shaders/gather_tensor.wgsl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernel {
    /// f32 planes, four pixels a thread.
    Planar,
    /// f16 planes.
    PlanarHalf,
    /// Elements in the order of the bytes.
    Interleaved,
    /// The bytes themselves.
    Bytes,
    /// Whatever the others cannot do.
    Any,
}

impl Kernel {
    /// Its entry point in the shader.
    fn entry(self) -> &'static str {
        match self {
            Self::Planar => "gather_planar",
            Self::PlanarHalf => "gather_planar_half",
            Self::Interleaved => "gather_interleaved",
            Self::Bytes => "gather_bytes",
            Self::Any => "gather_any",
        }
    }
}

/// Which kernel makes the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    kernel: Kernel,
    /// Source words that a thread reads; none where it counts vectors of the tensor instead.
    words: usize,
    /// The shader's number for the element type.
    format: u32,
    /// Elements of one vector of four words.
    vector: usize,
}

impl Choice {
    fn new(spec: &LaneSpec, most_groups: u32) -> Self {
        let bytes = spec.layout.payload(1);
        let image = spec.layout.sample().as_image();
        let (kernel, words, format, vector) = match (&spec.preprocess, image) {
            (Preprocess::Normalize(normalize), Some(image)) => {
                let (format, vector, planar) = match normalize.dtype {
                    FloatType::F32 => (1, 4, Kernel::Planar),
                    FloatType::F16 => (2, 8, Kernel::PlanarHalf),
                };
                if image.channels() == 1 || normalize.layout == TensorLayout::Nhwc {
                    let whole = bytes.is_multiple_of(vector);
                    (if whole { Kernel::Interleaved } else { Kernel::Any }, vector / 4, format, vector)
                } else {
                    let whole = image.plane().is_multiple_of(4);
                    (if whole { planar } else { Kernel::Any }, image.channels(), format, vector)
                }
            }
            _ => (if bytes.is_multiple_of(16) { Kernel::Bytes } else { Kernel::Any }, 4, 0, 16),
        };
        // A sample's workgroups are counted in one dimension.
        let fits = bytes / (4 * words) <= most_groups as usize * GROUP;
        Self { kernel: if fits { kernel } else { Kernel::Any }, words, format, vector }
    }

    fn is_any(self) -> bool {
        self.kernel == Kernel::Any
    }

    fn constants(self, spec: &LaneSpec) -> Vec<(&'static str, f64)> {
        let (mut all, nchw) = match (&spec.preprocess, spec.layout.sample().as_image()) {
            (Preprocess::Normalize(normalize), Some(image)) => (
                constants(normalize, image.channels(), image.plane()),
                normalize.layout == TensorLayout::Nchw && image.channels() > 1,
            ),
            // Nothing is computed, and overrides need values all the same.
            _ => (constants(&Normalize::unit(1), 1, 1), false),
        };
        all.extend(shared(spec));
        all.extend([
            ("words", self.words as f64),
            ("format", f64::from(self.format)),
            ("nchw", f64::from(u8::from(nchw))),
        ]);
        all
    }
}

/// The overrides of gather.wgsl.
fn shared(spec: &LaneSpec) -> [(&'static str, f64); 2] {
    [("batch", spec.layout.batch_size() as f64), ("bytes", spec.layout.payload(1) as f64)]
}

/// Pipelines for one lane on one device.
#[derive(Debug)]
pub(crate) struct GatherKernels {
    choice: Choice,
    tensor: Program,
    fingerprint: Option<(Program, usize)>,
    segments: Vec<Segment>,
    /// The segments' constants, and after them one of the whole batch.
    constants: Uniforms,
    windows: Uniforms,
    sample_bytes: usize,
    batch: usize,
    most_groups: u32,
}

/// Bind groups of one output.
#[derive(Debug)]
pub(crate) struct GatherOutput {
    tensor: Vec<wgpu::BindGroup>,
    fingerprint: Option<(wgpu::BindGroup, wgpu::Buffer)>,
}

/// Bind groups of one list, one a window.
#[derive(Debug)]
pub(crate) struct GatherSource {
    tensor: Vec<wgpu::BindGroup>,
    fingerprint: Vec<wgpu::BindGroup>,
}

impl GatherKernels {
    /// Compiles the kernels, for memory that is read through so many windows.
    ///
    /// # Errors
    /// [`OpenError::TooLarge`] where the tensor cannot be bound in parts, [`OpenError::Device`] where the device refuses the shaders.
    pub(crate) fn new(device: &wgpu::Device, spec: &LaneSpec, windows: usize) -> Result<Self, OpenError> {
        let limits = device.limits();
        let most_groups = limits.max_compute_workgroups_per_dimension;
        let segments = Binding::new(&limits).tensor(spec)?;
        let (choice, batch) = (Choice::new(spec, most_groups), spec.layout.batch_size());
        let sample_bytes = spec.layout.payload(1);
        let fingerprint = if spec.fingerprints {
            let (steps, groups) = steps_and_groups(sample_bytes, most_groups);
            let mut all = vec![("sample_bytes", sample_bytes as f64), ("steps", steps as f64)];
            all.extend(shared(spec));
            Some((Program::new(device, FINGERPRINT, "gather_fingerprint", &all, &GROUPS)?, groups))
        } else {
            None
        };
        let runs = segments.iter().map(|segment| segment.samples.clone()).chain(std::iter::once(0..batch));
        let records = runs.map(|samples| [samples.start as u64, samples.len() as u64]);
        let shader = shared_shader(device, &spec.preprocess) + TENSOR;
        Ok(Self {
            tensor: Program::new(device, &shader, choice.kernel.entry(), &choice.constants(spec), &GROUPS)?,
            constants: Uniforms::new(device, "gather", records)?,
            windows: Uniforms::new(device, "gather", (0..windows).map(|window| [window as u64, windows as u64]))?,
            choice,
            fingerprint,
            segments,
            sample_bytes,
            batch,
            most_groups,
        })
    }

    /// Bind groups for an output. A lane with fingerprints must pass their buffer.
    pub(crate) fn bind_output(
        &self,
        device: &wgpu::Device,
        tensor: &wgpu::Buffer,
        fingerprints: Option<&wgpu::Buffer>,
    ) -> GatherOutput {
        let constants = &self.constants.buffer;
        let bind = |(index, segment): (usize, &Segment)| {
            let buffers = [(tensor, &segment.tensor), (constants, &self.constants.range(index))];
            self.tensor.bind_group(device, 0, &buffers)
        };
        let sums = |((program, _), sums): (&(Program, usize), &wgpu::Buffer)| {
            let whole = &self.constants.range(self.segments.len());
            let group =
                program.bind_group(device, 0, &[(sums, &(0..fingerprint_bytes(self.batch))), (constants, whole)]);
            (group, sums.clone())
        };
        GatherOutput {
            tensor: self.segments.iter().enumerate().map(bind).collect(),
            fingerprint: self.fingerprint.as_ref().zip(fingerprints).map(sums),
        }
    }

    /// Bind groups for a list and the windows: buffers and the ranges of them that are read.
    pub(crate) fn bind_source(
        &self,
        device: &wgpu::Device,
        windows: &[(wgpu::Buffer, Range<u64>)],
        list: (&wgpu::Buffer, u64),
    ) -> GatherSource {
        let bind = |program: &Program| {
            let one = |(index, (buffer, range)): (usize, &(wgpu::Buffer, Range<u64>))| {
                let which = (&self.windows.buffer, &self.windows.range(index));
                program.bind_group(device, 1, &[(buffer, range), (list.0, &(0..list.1)), which])
            };
            windows.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        GatherSource {
            tensor: bind(&self.tensor),
            fingerprint: self.fingerprint.as_ref().map(|(program, _)| bind(program)).unwrap_or_default(),
        }
    }

    /// Records the kernels for a batch of `samples` samples, of which `counts` are in each window.
    pub(crate) fn encode(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        source: &GatherSource,
        output: &GatherOutput,
        counts: &[u32],
        samples: usize,
    ) {
        if let Some((_, sums)) = &output.fingerprint {
            encoder.clear_buffer(sums, 0, None);
        }
        let desc = wgpu::ComputePassDescriptor { label: Some("gpufeed gather"), timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&desc);
        let used =
            || counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, &count)| (at, count as usize));
        pass.set_pipeline(&self.tensor.pipeline);
        for (window, count) in used() {
            pass.set_bind_group(1, &source.tensor[window], &[]);
            for (segment, group) in self.segments.iter().zip(&output.tensor) {
                pass.set_bind_group(0, group, &[]);
                dispatch(&mut pass, self.grid(segment, count, samples));
            }
        }
        if let (Some((program, groups)), Some((group, _))) = (&self.fingerprint, &output.fingerprint) {
            pass.set_pipeline(&program.pipeline);
            pass.set_bind_group(0, group, &[]);
            for (window, count) in used() {
                pass.set_bind_group(1, &source.fingerprint[window], &[]);
                dispatch(&mut pass, Grid::per_sample(*groups, count, self.most_groups));
            }
        }
    }

    fn grid(&self, segment: &Segment, count: usize, samples: usize) -> Grid {
        if self.choice.is_any() {
            let here = samples.saturating_sub(segment.samples.start).min(segment.samples.len());
            return Grid::linear((here * self.sample_bytes).div_ceil(self.choice.vector), self.most_groups);
        }
        let threads = self.sample_bytes / (4 * self.choice.words);
        Grid::per_sample(threads.div_ceil(GROUP), count, self.most_groups)
    }
}

fn dispatch(pass: &mut wgpu::ComputePass<'_>, Grid([x, y, z]): Grid) {
    if x > 0 && y > 0 && z > 0 {
        pass.dispatch_workgroups(x, y, z);
    }
}
