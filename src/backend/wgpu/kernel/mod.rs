//! The compute kernels of a lane: normalisation and fingerprints. Compiles pipelines, binds buffers, records dispatches.

// Sizes pass to shaders as f64 overrides and to wgpu as u64; `segments` keeps them within 32 bits.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]

mod fingerprint;
mod gather;
mod normalize;
mod program;
mod segments;
#[cfg(test)]
mod tests;

use fingerprint::FingerprintKernel;
pub(crate) use gather::{GatherKernels, GatherOutput, GatherSource};
use normalize::NormalizeKernel;
use program::Part;
pub(crate) use segments::{check_limits, fingerprint_bytes};

use crate::backend::LaneSpec;
use crate::error::OpenError;
use crate::preprocess::Preprocess;

/// Pipelines for one [`LaneSpec`] on one device.
#[derive(Debug)]
pub(crate) struct Kernels {
    normalize: Option<NormalizeKernel>,
    fingerprint: Option<FingerprintKernel>,
}

/// Bind groups for one triple of buffers. Keeps the buffers alive.
#[derive(Debug)]
pub(crate) struct Bindings {
    normalize: Vec<Part>,
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
        let mut kernels = Self { normalize: None, fingerprint: None };
        if let Preprocess::Normalize(normalize) = &spec.preprocess {
            kernels.normalize = NormalizeKernel::new(device, spec, normalize)?;
        }
        if spec.fingerprints {
            kernels.fingerprint = Some(FingerprintKernel::new(device, spec)?);
        }
        Ok(kernels)
    }

    /// None: what there is to do is done otherwise.
    pub(crate) fn none() -> Self {
        Self { normalize: None, fingerprint: None }
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
        let normalize = self.normalize.as_ref().map(|kernel| kernel.bind(device, source, tensor));
        let fingerprint = self.fingerprint.as_ref().zip(fingerprints);
        Bindings {
            normalize: normalize.unwrap_or_default(),
            fingerprint: fingerprint
                .map(|(kernel, sums)| kernel.bind(device, [source, tensor], sums))
                .unwrap_or_default(),
            sums: fingerprint.map(|(_, sums)| sums.clone()),
        }
    }

    /// Records the kernels for the first `samples` samples, whose fields behind the first are in the output already. What follows them in the tensor is unspecified.
    pub(crate) fn encode(&self, encoder: &mut wgpu::CommandEncoder, bindings: &Bindings, samples: usize) {
        if let Some(sums) = &bindings.sums {
            encoder.clear_buffer(sums, 0, None);
        }
        if bindings.normalize.is_empty() && bindings.fingerprint.is_empty() {
            return;
        }
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some("gpufeed kernels"),
            timestamp_writes: None,
        });
        if let Some(kernel) = &self.normalize {
            kernel.encode(&mut pass, &bindings.normalize, samples);
        }
        if let Some(kernel) = &self.fingerprint {
            kernel.encode(&mut pass, &bindings.fingerprint, samples);
        }
    }
}
