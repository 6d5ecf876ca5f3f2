//! What the CPU makes of a slot: normalisation from one table a channel, or a pipeline.

use half::f16;

use super::pipeline::PipelineKernel;
use crate::error::LayoutError;
use crate::layout::BatchLayout;
use crate::preprocess::{FloatType, Geometry, Normalize, PipelinePlan, Preprocess, TensorLayout};

/// What turns a slot's bytes into a tensor's bytes.
pub(super) enum Kernel {
    Copy,
    F32(Tables<f32>),
    F16(Tables<f16>),
    Pipeline(Box<Pipelines>),
}

/// A pipeline's kernels.
pub(super) struct Pipelines {
    image: PipelineKernel,
    /// By the number of the field.
    masks: Vec<(usize, PipelineKernel)>,
    /// The first byte of the samples' records in a slot.
    records: usize,
}

impl Pipelines {
    /// The records in a slot.
    fn records<'s>(&self, slot: &'s [u8]) -> &'s [f32] {
        let records = &slot[self.records..];
        let whole = records.len() - records.len() % (4 * Geometry::WORDS);
        bytemuck::cast_slice(&records[..whole])
    }
}

/// The 256 values of each channel, rounded once from f64 (f16 by way of f32, as the device kernels do).
pub(super) struct Tables<T> {
    values: Vec<[T; 256]>,
    layout: TensorLayout,
    sample_bytes: usize,
}

impl Kernel {
    /// # Errors
    /// [`LayoutError`] for a pipeline that does not fit.
    pub(super) fn new(preprocess: &Preprocess, layout: &BatchLayout) -> Result<Self, LayoutError> {
        if let Some(plan) = preprocess.plan(layout.sample())? {
            let masks = plan.masks(layout.sample())?;
            let masks = masks.into_iter().map(|plan| (plan.field, PipelineKernel::new(plan))).collect();
            let (image, records) = (PipelineKernel::new(plan), PipelinePlan::records_offset(layout));
            return Ok(Self::Pipeline(Box::new(Pipelines { image, masks, records })));
        }
        Ok(match preprocess {
            // What a step makes was refused before.
            Preprocess::Raw | Preprocess::Pipeline(_) | Preprocess::Own(_) => Self::Copy,
            Preprocess::Normalize(normalize) => match normalize.dtype {
                FloatType::F32 => Self::F32(Tables::new(normalize, layout, |value| value)),
                FloatType::F16 => Self::F16(Tables::new(normalize, layout, f16::from_f32)),
            },
        })
    }

    /// Whether it does more than copy.
    pub(super) fn computes(&self) -> bool {
        !matches!(self, Self::Copy)
    }

    /// Computes the tensor of whole samples, the first `bytes` of a slot. `out` is at least as long as the tensor and aligned for its
    /// elements.
    pub(super) fn run(&self, slot: &[u8], bytes: usize, out: &mut [u8]) {
        let samples = &slot[..bytes];
        match self {
            Self::Copy => out[..samples.len()].copy_from_slice(samples),
            Self::F32(tables) => tables.run(samples, bytemuck::cast_slice_mut(&mut out[..samples.len() * 4])),
            Self::F16(tables) => tables.run(samples, bytemuck::cast_slice_mut(&mut out[..samples.len() * 2])),
            Self::Pipeline(kernels) => kernels.image.run(samples, kernels.records(slot), out),
        }
    }

    /// Computes the tensor of a mask, whose samples are these bytes of a slot.
    pub(super) fn run_mask(&self, field: usize, slot: &[u8], samples: &[u8], out: &mut [u8]) {
        let Self::Pipeline(kernels) = self else { return };
        if let Some((_, kernel)) = kernels.masks.iter().find(|(number, _)| *number == field) {
            kernel.run(samples, kernels.records(slot), out);
        }
    }
}

impl<T: Copy> Tables<T> {
    #[allow(clippy::cast_possible_truncation)]
    fn new(normalize: &Normalize, layout: &BatchLayout, round: impl Fn(f32) -> T) -> Self {
        let table = |channel| {
            let (scale, bias) = (normalize.scale(channel), normalize.bias(channel));
            std::array::from_fn(|pixel| round((pixel as f64 * scale + bias) as f32))
        };
        Self {
            values: (0..normalize.mean.len()).map(table).collect(),
            layout: normalize.layout,
            sample_bytes: layout.payload(1),
        }
    }

    fn run(&self, samples: &[u8], out: &mut [T]) {
        let channels = self.values.len();
        for (from, to) in samples.chunks_exact(self.sample_bytes).zip(out.chunks_exact_mut(self.sample_bytes)) {
            match self.layout {
                TensorLayout::Nhwc => {
                    for (pixel, value) in from.chunks_exact(channels).zip(to.chunks_exact_mut(channels)) {
                        for ((&byte, value), table) in pixel.iter().zip(value).zip(&self.values) {
                            *value = table[usize::from(byte)];
                        }
                    }
                }
                TensorLayout::Nchw => {
                    let planes = to.chunks_exact_mut(self.sample_bytes / channels);
                    for (channel, (plane, table)) in planes.zip(&self.values).enumerate() {
                        for (pixel, value) in from.chunks_exact(channels).zip(plane) {
                            *value = table[usize::from(pixel[channel])];
                        }
                    }
                }
            }
        }
    }
}
