//! The kernels of `shaders/pipeline.wgsl`: frames become a network's input.

use super::program::{At, Part, Program, StorageEntry, Uniforms};
use super::segments::{Binding, Segment};
use super::tiles::Work;
use crate::backend::LaneSpec;
use crate::error::OpenError;
use crate::layout::{ChromaSiting, FrameLayout, PixelFormat};
use crate::preprocess::{Filter, Geometry, OutputLayout, PipelinePlan, TensorLayout, TensorType};

const SHADER: &str = concat!(
    include_str!("../../../../shaders/half.wgsl"),
    include_str!("../../../../shaders/pipeline_frame.wgsl"),
    include_str!("../../../../shaders/pipeline_span.wgsl"),
    include_str!("../../../../shaders/pipeline.wgsl"),
    include_str!("../../../../shaders/pipeline_near.wgsl")
);

/// The kernels for one lane's frames: for the image's, and for those of each mask.
#[derive(Debug)]
pub(super) struct PipelineKernels(Vec<PipelineKernel>);

impl PipelineKernels {
    /// # Errors
    /// As [`check_limits`](super::check_limits), and the device's.
    pub fn new(device: &wgpu::Device, spec: &LaneSpec, plan: PipelinePlan) -> Result<Self, OpenError> {
        let (masks, output) = (plan.masks(spec.layout.sample())?, OutputLayout::new(&spec.preprocess, &spec.layout)?);
        let plans = std::iter::once(plan).chain(masks);
        let kernels = plans.filter_map(|plan| {
            let field = output.field(plan.field)?;
            Some(PipelineKernel::new(device, spec, &plan, (field.slot_offset as u64, field.desc.offset as u64)))
        });
        kernels.collect::<Result<_, _>>().map(Self)
    }

    /// Of each kernel one bind group a segment.
    pub fn bind(&self, device: &wgpu::Device, source: &wgpu::Buffer, tensor: &wgpu::Buffer) -> Vec<Vec<Part>> {
        self.0.iter().map(|kernel| kernel.bind(device, source, tensor)).collect()
    }

    /// The same for the first `samples` samples, which lie anywhere, with their records where a slot has them or in a buffer of their own.
    pub fn bind_at(
        &self,
        device: &wgpu::Device,
        source: (At<'_>, Option<&wgpu::Buffer>),
        tensor: At<'_>,
        samples: usize,
    ) -> Vec<Vec<Part>> {
        self.0.iter().map(|kernel| kernel.bind_at(device, source, tensor, samples)).collect()
    }

    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>, parts: &[Vec<Part>], samples: usize) {
        self.0.iter().zip(parts).for_each(|(kernel, parts)| kernel.encode(pass, parts, samples));
    }
}

/// The kernel for the frames of one field, the batch's segments, and their constants.
#[derive(Debug)]
struct PipelineKernel {
    program: Program,
    segments: Vec<Segment>,
    constants: Uniforms,
    records: std::ops::Range<u64>,
    /// The first byte of the field in a slot, and of its tensor in the output.
    offsets: (u64, u64),
    /// Bytes of one sample, and of its tensor.
    sizes: (usize, usize),
    work: Work,
    most_groups: u32,
}

impl PipelineKernel {
    fn new(
        device: &wgpu::Device,
        spec: &LaneSpec,
        plan: &PipelinePlan,
        offsets: (u64, u64),
    ) -> Result<Self, OpenError> {
        let limits = device.limits();
        let segments = Binding::new(&limits).pipeline(spec, plan)?;
        let work = Work::of(plan, spec.layout.batch_size(), limits.max_compute_workgroups_per_dimension);
        let entries = [StorageEntry::Read, StorageEntry::Read, StorageEntry::ReadWrite, StorageEntry::Uniform];
        let runs = segments.iter().map(|segment| [segment.samples.start as u64, segment.samples.len() as u64]);
        let first = PipelinePlan::records_offset(&spec.layout) as u64;
        let record_bytes = 4 * Geometry::WORDS as u64;
        Ok(Self {
            program: Program::new(device, SHADER, work.entry(), &constants(plan, work), &[&entries])?,
            constants: Uniforms::new(device, "pipeline", runs)?,
            records: first..first + record_bytes * spec.layout.batch_size() as u64,
            offsets,
            sizes: (plan.frame.byte_len(), plan.tensor_bytes()),
            segments,
            work,
            most_groups: limits.max_compute_workgroups_per_dimension,
        })
    }

    /// One bind group a segment.
    fn bind(&self, device: &wgpu::Device, source: &wgpu::Buffer, tensor: &wgpu::Buffer) -> Vec<Part> {
        let from = At { buffer: source, offset: self.offsets.0 };
        let to = At { buffer: tensor, offset: self.offsets.1 };
        let bind = |(index, segment): (usize, &Segment)| {
            let constants = (&self.constants.buffer, &self.constants.range(index));
            let (pixels, records) = ((source, &from.range(&segment.source)), (source, &self.records));
            let to = (tensor, &to.range(&segment.tensor));
            let group = self.program.bind(device, &[pixels, records, to, constants]);
            Part { samples: segment.samples.clone(), group }
        };
        self.segments.iter().enumerate().map(bind).collect()
    }

    fn bind_at(
        &self,
        device: &wgpu::Device,
        (source, records): (At<'_>, Option<&wgpu::Buffer>),
        tensor: At<'_>,
        samples: usize,
    ) -> Vec<Part> {
        let own = 0..self.records.end - self.records.start;
        let records = records.map_or((source.buffer, self.records.clone()), |records| (records, own));
        let source = At { offset: source.offset + self.offsets.0, ..source };
        let tensor = At { offset: tensor.offset + self.offsets.1, ..tensor };
        let bind = |(index, segment): (usize, &Segment)| {
            let first = segment.first(samples, self.sizes.0, self.sizes.1)?;
            let constants = (&self.constants.buffer, &self.constants.range(index));
            let pixels = (source.buffer, &source.range(&first.source));
            let (records, tensor) = ((records.0, &records.1), (tensor.buffer, &tensor.range(&first.tensor)));
            let group = self.program.bind(device, &[pixels, records, tensor, constants]);
            Some(Part { samples: first.samples, group })
        };
        self.segments.iter().enumerate().filter_map(bind).collect()
    }

    fn encode(&self, pass: &mut wgpu::ComputePass<'_>, parts: &[Part], samples: usize) {
        pass.set_pipeline(&self.program.pipeline);
        for part in parts {
            let count = part.count(samples);
            if count > 0 {
                part.dispatch(pass, self.work.grid(count, self.most_groups));
            }
        }
    }
}

/// The overrides of the shader.
fn constants(plan: &PipelinePlan, work: Work) -> Vec<(&'static str, f64)> {
    let (pipeline, (height, width)) = (&plan.pipeline, plan.size);
    let dtype = match pipeline.dtype {
        TensorType::F32 => 0,
        TensorType::F16 => 1,
        TensorType::Bf16 => 2,
        TensorType::U8(_) | TensorType::I8(_) => 3,
    };
    let (least, most) = pipeline.dtype.range();
    let zero_point = pipeline.dtype.quantization().map_or(0, |quantization| quantization.zero_point);
    let taps = match pipeline.filter {
        Filter::Nearest => 0,
        Filter::Bilinear => 1,
        Filter::Bicubic => 2,
    };
    let flag = |is: bool| f64::from(u8::from(is));
    let mut all = of_frame(&plan.frame);
    all.extend(work.constants());
    all.extend([
        ("taps", f64::from(taps)),
        ("antialias", flag(pipeline.antialias)),
        ("keeps_values", flag(plan.is_mask)),
        ("width", width as f64),
        ("height", height as f64),
        ("channels", pipeline.channels.count() as f64),
        ("planar", flag(pipeline.layout == TensorLayout::Nchw)),
        ("dtype", f64::from(dtype)),
        ("least", f64::from(least - zero_point)),
        ("most", f64::from(most - zero_point)),
        ("zero_point", f64::from(zero_point)),
    ]);
    let names = [("scale0", "bias0", "fill0"), ("scale1", "bias1", "fill1"), ("scale2", "bias2", "fill2")];
    for ((scale_name, bias_name, fill_name), (scale, bias, fill)) in names.into_iter().zip(plan.affine()) {
        all.extend([(scale_name, f64::from(scale)), (bias_name, f64::from(bias)), (fill_name, f64::from(fill))]);
    }
    all
}

fn of_frame(frame: &FrameLayout) -> Vec<(&'static str, f64)> {
    let format = match frame.format() {
        PixelFormat::Gray8 => 0,
        PixelFormat::Rgb8 | PixelFormat::Bgr8 => 1,
        PixelFormat::Rgba8 | PixelFormat::Bgra8 => 2,
        PixelFormat::Nv12(_) => 3,
        PixelFormat::I420(_) => 4,
    };
    let left_sited = frame.format().yuv().is_some_and(|yuv| yuv.siting == ChromaSiting::Left);
    let [_, plane1, plane2] = frame.plane_offsets();
    vec![
        ("format", f64::from(format)),
        ("pitch", frame.pitch() as f64),
        ("frame_width", frame.width() as f64),
        ("frame_height", frame.height() as f64),
        ("plane1", plane1 as f64),
        ("plane2", plane2 as f64),
        ("left_sited", f64::from(u8::from(left_sited))),
        ("sample_bytes", frame.byte_len() as f64),
    ]
}
