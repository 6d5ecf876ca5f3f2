//! The kernels of one lane.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::driver::{
    Affine, Consume, Copied, DeviceMemory, Gathered, Module, Normalized, PipelinePlaces, Pipelined, RegisteredReader,
    Samples, Shape, Sums,
};
use super::pipeline;
use super::tuning::parts;
use crate::backend::LaneSpec;
use crate::preprocess::{FloatType, Normalize, OutputLayout, PipelinePlan, Preprocess, TensorLayout};

const NORMALIZE: &str = include_str!("../../../shaders/normalize.ptx");
const GATHER: &str = include_str!("../../../shaders/gather.ptx");
const FINGERPRINT: &str = include_str!("../../../shaders/fingerprint.ptx");
const CONSUME: &str = include_str!("../../../shaders/consume.ptx");
const PIPELINE: &str = include_str!("../../../shaders/pipeline.ptx");

/// The modules of a device, translated by its driver.
#[derive(Debug)]
pub(super) struct Modules {
    normalize: Arc<Module>,
    gather: Arc<Module>,
    fingerprint: Arc<Module>,
    context: Arc<CudaContext>,
}

impl Modules {
    pub(super) fn load(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        Ok(Self {
            normalize: Module::load(context, NORMALIZE)?,
            gather: Module::load(context, GATHER)?,
            fingerprint: Module::load(context, FINGERPRINT)?,
            context: Arc::clone(context),
        })
    }

    /// The kernels of a pipeline, for its image and each mask. Their module is larger than the others together, and is translated where one
    /// is asked for.
    fn pipelines(&self, spec: &LaneSpec, output: &OutputLayout) -> Result<Vec<Pipelined>, DriverError> {
        // What does not fit was refused before.
        let sample = spec.layout.sample();
        let Some(image) = spec.preprocess.plan(sample).ok().flatten() else { return Ok(Vec::new()) };
        let (module, records) = (Module::load(&self.context, PIPELINE)?, PipelinePlan::records_offset(&spec.layout));
        let plans = std::iter::once(image).chain(spec.preprocess.masks(sample).unwrap_or_default());
        let geometry = PipelinePlan::record_field(sample).ok().and_then(|number| output.field(number));
        let kernels = plans.filter_map(|plan| {
            let field = output.field(plan.field)?;
            let told = geometry.filter(|_| !plan.is_mask).map(|field| field.desc.offset);
            let places = PipelinePlaces { frames: field.slot_offset, records, tensor: field.desc.offset, told };
            let lane = pipeline::lane(&plan, spec.layout.batch_size());
            Some(Pipelined::new(&module, pipeline::variant(&plan), lane, places))
        });
        kernels.collect()
    }

    /// The kernel that only copies.
    pub(super) fn copy(&self) -> Result<Copied, DriverError> {
        Copied::new(&self.fingerprint)
    }

    /// The kernel that works for a measured consumer, whose module nothing else needs.
    pub(super) fn consume(context: &Arc<CudaContext>) -> Result<Consume, DriverError> {
        Consume::new(&Module::load(context, CONSUME)?)
    }
}

/// What runs for each batch of a lane.
#[derive(Debug)]
pub(super) struct Kernels {
    normalized: Option<Normalized>,
    gathered: Option<Gathered>,
    /// Of a pipeline's image and of each of its masks.
    pipelined: Vec<Pipelined>,
    /// Of each field, and whether it is read where it arrived; none where fingerprints are not asked for.
    sums: Vec<(Sums, bool)>,
    /// Bytes of samples that one launch normalises.
    part_bytes: usize,
}

impl Kernels {
    pub(super) fn new(
        modules: &Modules,
        spec: &LaneSpec,
        output: &OutputLayout,
        part_bytes: usize,
    ) -> Result<Self, DriverError> {
        let fields = if spec.fingerprints { output.fields() } else { &[] };
        let sums = fields.iter().enumerate().map(|(row, field)| {
            let (bytes, first) = (field.source_bytes(&spec.layout), row * spec.layout.batch_size());
            // What kernels make of a field is not what is fingerprinted.
            let offset = if field.is_made { field.slot_offset } else { field.desc.offset };
            let sums = Sums::new(&modules.fingerprint, bytes, offset, first)?;
            Ok((sums, field.is_made || row == 0))
        });
        let sums = sums.collect::<Result<_, DriverError>>()?;
        Ok(Self { sums, ..Self::without_fingerprints(modules, spec, output, part_bytes)? })
    }

    pub(super) fn without_fingerprints(
        modules: &Modules,
        spec: &LaneSpec,
        output: &OutputLayout,
        part_bytes: usize,
    ) -> Result<Self, DriverError> {
        let plan = match &spec.preprocess {
            Preprocess::Raw | Preprocess::Pipeline(_) | Preprocess::Own(_) => None,
            Preprocess::Normalize(normalize) => shape(spec, normalize).map(|shape| (shape, affine(normalize))),
        };
        let normalized = plan.map(|(shape, affine)| Normalized::new(&modules.normalize, shape, affine));
        let gathered = plan.map(|(shape, affine)| Gathered::new(&modules.gather, shape, affine));
        let (normalized, gathered) = (normalized.transpose()?, gathered.transpose()?);
        let pipelined = modules.pipelines(spec, output)?;
        Ok(Self { normalized, gathered, pipelined, sums: Vec::new(), part_bytes })
    }

    /// Whether a kernel makes the tensor.
    pub(super) fn computes(&self) -> bool {
        self.normalized.is_some() || !self.pipelined.is_empty()
    }

    /// Queues what turns `samples` samples in `from` into the tensor, with their geometry, whose other fields are in `to` already; where
    /// there is nothing to compute `from` is `to`.
    pub(super) fn launch(
        &self,
        stream: &CudaStream,
        from: &DeviceMemory,
        to: &DeviceMemory,
        sums: Option<&DeviceMemory>,
        samples: usize,
    ) -> Result<(), DriverError> {
        if let Some(normalized) = &self.normalized {
            let mut parts = parts(samples, normalized.sample_bytes(), self.part_bytes);
            parts.try_for_each(|part| normalized.launch(stream, from, to, part))?;
        }
        self.pipelined.iter().try_for_each(|kernel| kernel.launch(stream, from, to, samples))?;
        let Some(sums) = sums else { return Ok(()) };
        self.sums.iter().try_for_each(|(kernel, where_arrived)| {
            let read = if *where_arrived { from } else { to };
            kernel.launch(stream, &Samples::Following(read), samples, sums)
        })
    }

    /// Queues what gathers and normalises the samples at `offsets`, which `on_device` holds too.
    pub(super) fn gather(
        &self,
        stream: &CudaStream,
        direct: &RegisteredReader,
        offsets: &[u64],
        on_device: &DeviceMemory,
        to: &DeviceMemory,
        sums: Option<&DeviceMemory>,
    ) -> Result<(), DriverError> {
        if let Some(gathered) = &self.gathered {
            gathered.launch(stream, direct.memory(), offsets, on_device, to)?;
        }
        match (self.sums.first(), sums) {
            (Some((kernel, _)), Some(sums)) => {
                let from = Samples::Scattered(direct.memory(), offsets, on_device);
                kernel.launch(stream, &from, offsets.len(), sums)
            }
            _ => Ok(()),
        }
    }
}

/// `None` for samples that are no images, which the preprocessing has refused before.
fn shape(spec: &LaneSpec, normalize: &Normalize) -> Option<Shape> {
    let image = spec.layout.sample().as_image()?;
    Some(Shape {
        channels: u32::try_from(image.channels()).ok()?,
        plane: u32::try_from(image.plane()).ok()?,
        planar: normalize.layout == TensorLayout::Nchw,
        half: normalize.dtype == FloatType::F16,
    })
}

#[allow(clippy::cast_possible_truncation)] // Rounded once, as the error bound says.
fn affine(normalize: &Normalize) -> Affine {
    let mut affine = Affine::default();
    for channel in 0..normalize.mean.len().min(4) {
        affine.scale[channel] = normalize.scale(channel) as f32;
        affine.bias[channel] = normalize.bias(channel) as f32;
    }
    affine
}

/// Bytes of so many fingerprints.
pub(super) fn fingerprint_bytes(count: usize) -> usize {
    count.saturating_mul(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(&str, &str, &str); 5] = [
        ("normalize", NORMALIZE, include_str!("../../../shaders/normalize.cu")),
        ("gather", GATHER, include_str!("../../../shaders/gather.cu")),
        ("fingerprint", FINGERPRINT, include_str!("../../../shaders/fingerprint.cu")),
        ("consume", CONSUME, include_str!("../../../shaders/consume.cu")),
        ("pipeline", PIPELINE, include_str!("../../../shaders/pipeline.cu")),
    ];

    /// FNV-1a, as `cargo xtask ptx` writes it.
    fn hash(text: &str) -> u64 {
        let bytes = text.bytes().filter(|&byte| byte != b'\r');
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    #[test]
    fn the_ptx_was_generated_from_the_cuda_source_beside_it() {
        for (name, ptx, source) in ALL {
            let first = ptx.lines().next().unwrap_or_default();
            let wanted = format!("// Generated by `cargo xtask ptx` from {name}.cu, FNV-1a {:016x}.", hash(source));
            assert_eq!(first, wanted, "run `cargo xtask ptx`");
        }
    }

    #[test]
    fn the_ptx_is_old_enough_for_every_supported_driver() {
        for (name, ptx, _) in ALL {
            let told =
                |key: &str| ptx.lines().find_map(|line| line.strip_prefix(key)).map(str::trim).unwrap_or_default();
            let version: Vec<u32> = told(".version").split('.').map(|part| part.parse().expect("a number")).collect();
            assert!(version.as_slice() <= &[8, 4][..], "{name}: .version {version:?} needs a newer driver");
            let target: u32 = told(".target sm_").parse().expect("a plain architecture");
            assert!(target <= 75, "{name}: .target sm_{target} leaves older cards out");
        }
    }
}
