//! The compute kernels of a lane: normalisation, pipelines and fingerprints. Compiles pipelines, binds buffers, records dispatches.

// Sizes pass to shaders as f64 overrides and to wgpu as u64; `segments` keeps them within 32 bits.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]

mod fingerprint;
mod gather;
mod module;
mod normalize;
mod pipeline;
mod program;
mod segments;
#[cfg(test)]
mod tests;
mod texture;
mod tiles;

use fingerprint::FingerprintKernel;
pub(crate) use gather::{GatherKernels, GatherOutput, GatherSource};
use normalize::NormalizeKernel;
use pipeline::PipelineKernels;
pub(crate) use program::At;
use program::Part;
pub(crate) use segments::{alignment, check_limits, fingerprint_bytes};
pub(crate) use texture::{Texels, UnpackKernel};

use crate::backend::LaneSpec;
use crate::error::OpenError;
use crate::preprocess::Preprocess;

/// Pipelines for one [`LaneSpec`] on one device.
#[derive(Debug)]
pub(crate) struct Kernels {
    tensor: Option<TensorKernel>,
    fingerprint: Option<FingerprintKernel>,
}

/// What makes the tensor.
#[derive(Debug)]
enum TensorKernel {
    Normalize(NormalizeKernel),
    Pipeline(PipelineKernels),
}

impl TensorKernel {
    fn new(device: &wgpu::Device, spec: &LaneSpec) -> Result<Option<Self>, OpenError> {
        if let Some(plan) = spec.preprocess.plan(spec.layout.sample())? {
            return PipelineKernels::new(device, spec, plan).map(|kernel| Some(Self::Pipeline(kernel)));
        }
        match &spec.preprocess {
            Preprocess::Normalize(normalize) => Ok(NormalizeKernel::new(device, spec, normalize)?.map(Self::Normalize)),
            Preprocess::Raw | Preprocess::Pipeline(_) | Preprocess::Own(_) => Ok(None),
        }
    }
}

/// Bind groups for one triple of buffers. Keeps the buffers alive.
#[derive(Debug)]
pub(crate) struct Bindings {
    /// By the kernel's tensors.
    tensor: Vec<Vec<Part>>,
    fingerprint: Vec<Vec<Part>>,
    sums: Option<wgpu::Buffer>,
}

impl Kernels {
    /// Compiles what the lane needs, which may be nothing.
    ///
    /// # Errors
    /// As [`check_limits`], and [`OpenError::Device`] where the device refuses the shaders.
    pub(crate) fn new(device: &wgpu::Device, spec: &LaneSpec) -> Result<Self, OpenError> {
        check_limits(&device.limits(), spec)?;
        let mut kernels = Self { tensor: TensorKernel::new(device, spec)?, fingerprint: None };
        if spec.fingerprints {
            kernels.fingerprint = Some(FingerprintKernel::new(device, spec)?);
        }
        Ok(kernels)
    }

    /// None: what there is to do is done otherwise.
    pub(crate) fn none() -> Self {
        Self { tensor: None, fingerprint: None }
    }

    /// Bind groups for these buffers, made once and reused. What the kernels do not use may be any buffer.
    ///
    /// All need `STORAGE`. `source` holds at least `slot_bytes` of the layout, `tensor` the output, and `fingerprints`
    /// [`fingerprint_bytes`] and `COPY_DST`; a lane with fingerprints must pass it.
    pub(crate) fn bind(
        &self,
        device: &wgpu::Device,
        source: &wgpu::Buffer,
        tensor: &wgpu::Buffer,
        fingerprints: Option<&wgpu::Buffer>,
    ) -> Bindings {
        let made = match &self.tensor {
            Some(TensorKernel::Normalize(kernel)) => vec![kernel.bind(device, source, tensor)],
            Some(TensorKernel::Pipeline(kernel)) => kernel.bind(device, source, tensor),
            None => Vec::new(),
        };
        let fingerprint = self.fingerprint.as_ref().zip(fingerprints);
        Bindings {
            tensor: made,
            fingerprint: fingerprint
                .map(|(kernel, sums)| kernel.bind(device, [source, tensor], sums))
                .unwrap_or_default(),
            sums: fingerprint.map(|(_, sums)| sums.clone()),
        }
    }

    /// Bind groups for the first `samples` samples of a batch that lie anywhere: its bytes from `source` on, its tensor from `tensor` on,
    /// both at multiples of [`alignment`]. The records of a pipeline are where a slot has them, or else in a buffer of their own. Without
    /// fingerprints.
    pub(crate) fn bind_at(
        &self,
        device: &wgpu::Device,
        (source, records): (At<'_>, Option<&wgpu::Buffer>),
        tensor: At<'_>,
        samples: usize,
    ) -> Bindings {
        let made = match &self.tensor {
            Some(TensorKernel::Normalize(kernel)) => vec![kernel.bind_at(device, source, tensor, samples)],
            Some(TensorKernel::Pipeline(kernel)) => kernel.bind_at(device, (source, records), tensor, samples),
            None => Vec::new(),
        };
        Bindings { tensor: made, fingerprint: Vec::new(), sums: None }
    }

    /// Records the kernels for the first `samples` samples, whose fields behind the first are in the output already. What follows them in the tensor is unspecified.
    pub(crate) fn encode(&self, encoder: &mut wgpu::CommandEncoder, bindings: &Bindings, samples: usize) {
        if let Some(sums) = &bindings.sums {
            encoder.clear_buffer(sums, 0, None);
        }
        if bindings.tensor.is_empty() && bindings.fingerprint.is_empty() {
            return;
        }
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some("gpufeed kernels"),
            timestamp_writes: None,
        });
        match &self.tensor {
            Some(TensorKernel::Normalize(kernel)) => {
                bindings.tensor.iter().for_each(|parts| kernel.encode(&mut pass, parts, samples));
            }
            Some(TensorKernel::Pipeline(kernels)) => kernels.encode(&mut pass, &bindings.tensor, samples),
            None => {}
        }
        if let Some(kernel) = &self.fingerprint {
            kernel.encode(&mut pass, &bindings.fingerprint, samples);
        }
    }
}
