//! The normalisation kernels of `shaders/normalize.wgsl`: which one a lane takes, and how much it dispatches.

use super::program::{At, Grid, Part, Program, StorageEntry, scoped};
use super::segments::{Binding, Segment};
use crate::backend::LaneSpec;
use crate::error::OpenError;
use crate::layout::ImageLayout;
use crate::preprocess::{FloatType, Normalize, Preprocess, TensorLayout};

const HALF: &str = include_str!("../../../../shaders/half.wgsl");
const BATCH: &str = include_str!("../../../../shaders/normalize_batch.wgsl");
const PACK_BUILTIN: &str = include_str!("../../../../shaders/pack_builtin.wgsl");
const PACK_INTEGER: &str = include_str!("../../../../shaders/pack_integer.wgsl");
const CHANNELS: usize = 4;
const SCALES: [&str; CHANNELS] = ["scale0", "scale1", "scale2", "scale3"];
const BIASES: [&str; CHANNELS] = ["bias0", "bias1", "bias2", "bias3"];

/// The pipeline for one lane's images, and the batch's segments.
#[derive(Debug)]
pub(super) struct NormalizeKernel {
    program: Program,
    segments: Vec<Segment>,
    elements_per_sample: usize,
    /// Of one sample's tensor.
    tensor_bytes: usize,
    elements_per_thread: usize,
    most_groups: u32,
}

/// The kernels of `shaders/normalize_batch.wgsl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernel {
    /// f32 planes, four pixels a thread.
    Planar,
    /// f16 planes.
    PlanarHalf,
    /// Planes whose pixels are no multiple of four.
    PlanarAny,
    /// Elements in the order of the bytes.
    Interleaved,
}

impl Kernel {
    /// Its entry point in the shader.
    fn entry(self) -> &'static str {
        match self {
            Self::Planar => "planar",
            Self::PlanarHalf => "planar_half",
            Self::PlanarAny => "planar_any",
            Self::Interleaved => "interleaved",
        }
    }

    /// The kernel for these images, and the elements that one of its threads writes.
    fn choose(normalize: &Normalize, image: ImageLayout) -> (Self, usize) {
        // One vector of four words.
        let (vector, planar) = match normalize.dtype {
            FloatType::F32 => (4, Self::Planar),
            FloatType::F16 => (8, Self::PlanarHalf),
        };
        if image.channels() == 1 || normalize.layout == TensorLayout::Nhwc {
            (Self::Interleaved, vector)
        } else if image.plane().is_multiple_of(4) {
            (planar, 4 * image.channels())
        } else {
            (Self::PlanarAny, vector)
        }
    }
}

/// Whether all values are zero or normal f16 with a margin for rounding, so that packing them takes no care.
fn is_tame(normalize: &Normalize, channels: usize) -> bool {
    let (least, most) = (2f64.powi(-14), 65_504.0);
    (0..channels).all(|channel| {
        (0..=u8::MAX).all(|pixel| {
            let product = f64::from(pixel) * normalize.scale(channel);
            let (bias, value) = (normalize.bias(channel), product + normalize.bias(channel));
            let error = 2f64.powi(-22) * (product.abs() + bias.abs());
            // Zero for certain, and not by a difference that rounding might leave a rest of.
            (product == 0.0 && bias == 0.0) || (value.abs() - error >= least && value.abs() + error <= most)
        })
    })
}

/// What all kernels that normalise share, with the way to pack halves that this device has.
pub(super) fn shared_shader(device: &wgpu::Device, preprocess: &Preprocess) -> String {
    let halves = matches!(preprocess, Preprocess::Normalize(normalize) if normalize.dtype == FloatType::F16);
    // A device does not tell whether it has the built-in: some software drivers lack it.
    let compile = || {
        let source = wgpu::ShaderSource::Wgsl("fn probe() -> u32 { return pack2x16float(vec2<f32>(1.0)); }".into());
        device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("gpufeed probe"), source })
    };
    let builtin = halves && scoped(device, "pack2x16float", compile).is_ok();
    [HALF, include_str!("../../../../shaders/normalize.wgsl"), if builtin { PACK_BUILTIN } else { PACK_INTEGER }]
        .concat()
}

/// The overrides of normalize.wgsl.
pub(super) fn constants(normalize: &Normalize, channels: usize, plane: usize) -> Vec<(&'static str, f64)> {
    let half = if normalize.dtype == FloatType::F16 { 1.0 } else { 0.0 };
    let tame = if is_tame(normalize, channels) { 1.0 } else { 0.0 };
    let mut all = vec![("channels", channels as f64), ("plane", plane as f64)];
    all.extend([("half", half), ("tame", tame)]);
    for channel in 0..CHANNELS {
        // Channels that the image lacks still need a value. The others are rounded to f32 here, once, as the error bound
        // assumes.
        let (scale, bias) = if channel < channels {
            (normalize.scale(channel) as f32, normalize.bias(channel) as f32)
        } else {
            (0.0, 0.0)
        };
        all.push((SCALES[channel], f64::from(scale)));
        all.push((BIASES[channel], f64::from(bias)));
    }
    all
}

impl NormalizeKernel {
    pub fn new(device: &wgpu::Device, spec: &LaneSpec, normalize: &Normalize) -> Result<Option<Self>, OpenError> {
        let Some(image) = spec.layout.sample().as_image() else { return Ok(None) };
        let limits = device.limits();
        let segments = Binding::new(&limits).normalize(spec)?;
        let (kernel, elements_per_thread) = Kernel::choose(normalize, image);
        let entries = [StorageEntry::Read, StorageEntry::ReadWrite];
        Ok(Some(Self {
            program: Program::new(
                device,
                &(shared_shader(device, &spec.preprocess) + BATCH),
                kernel.entry(),
                &constants(normalize, image.channels(), image.plane()),
                &[&entries],
            )?,
            segments,
            elements_per_sample: spec.layout.payload(1),
            tensor_bytes: spec.preprocess.tensor(&spec.layout, 1).byte_len(),
            elements_per_thread,
            most_groups: limits.max_compute_workgroups_per_dimension,
        }))
    }

    /// One bind group a segment.
    pub fn bind(&self, device: &wgpu::Device, source: &wgpu::Buffer, tensor: &wgpu::Buffer) -> Vec<Part> {
        let bind = |segment: &Segment| Part {
            samples: segment.samples.clone(),
            group: self.program.bind(device, &[(source, &segment.source), (tensor, &segment.tensor)]),
        };
        self.segments.iter().map(bind).collect()
    }

    /// The same for the first `samples` samples, which lie anywhere in the two buffers.
    pub fn bind_at(&self, device: &wgpu::Device, source: At<'_>, tensor: At<'_>, samples: usize) -> Vec<Part> {
        let first = |segment: &Segment| segment.first(samples, self.elements_per_sample, self.tensor_bytes);
        let bind = |segment: Segment| Part {
            group: self.program.bind(
                device,
                &[(source.buffer, &source.range(&segment.source)), (tensor.buffer, &tensor.range(&segment.tensor))],
            ),
            samples: segment.samples,
        };
        self.segments.iter().filter_map(first).map(bind).collect()
    }

    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>, parts: &[Part], samples: usize) {
        pass.set_pipeline(&self.program.pipeline);
        for part in parts {
            let elements = part.count(samples) * self.elements_per_sample;
            part.dispatch(pass, Grid::linear(elements.div_ceil(self.elements_per_thread), self.most_groups));
        }
    }
}
