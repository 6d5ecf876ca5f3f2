//! The backend contract on a CUDA device.

use std::time::Duration;

use super::consumer::CudaConsumer;
use super::device::{CudaBackend, GatherMethod};
use super::kernel::fingerprint_bytes;
use super::lane::CudaLane;
use super::tensor::CudaTensor;
use crate::backend::{AdapterInfo, Backend, Footprint, LaneSpec, Strategy, check_direct};
use crate::error::{DeviceError, OpenError, Unsupported};
use crate::preprocess::{OutputLayout, Preprocess};

/// Device buffers between host and kernel: one is copied to while the other is read.
pub(super) const DEVICE_BUFFERS: usize = 2;

impl crate::backend::sealed::Sealed for CudaBackend {}

impl Backend for CudaBackend {
    type Lane = CudaLane;
    type Tensor = CudaTensor;
    type Consumer = CudaConsumer;

    fn info(&self) -> &AdapterInfo {
        self.info()
    }

    fn default_strategy(&self) -> Strategy {
        Strategy::PinnedRing
    }

    fn supports(&self, strategy: Strategy) -> Result<(), Unsupported> {
        let known = self.info().strategies.iter().find(|support| support.strategy == strategy);
        match known.map(|support| support.missing.clone()) {
            Some(None) => Ok(()),
            Some(Some(reason)) => Err(Unsupported { strategy, reason }),
            None => Err(Unsupported { strategy, reason: "it is not one of the CUDA backend's".to_owned() }),
        }
    }

    /// On streams of gpufeed's own. Page-locking and unlocking wait for the whole device.
    fn copies_beside(&self, strategy: Strategy) -> bool {
        strategy != Strategy::PinPerBatch && self.supports(strategy).is_ok()
    }

    fn footprint(&self, spec: &LaneSpec) -> Result<Footprint, OpenError> {
        self.supports(spec.strategy)?;
        spec.preprocess.validate(spec.layout.sample())?;
        check_indices(spec)?;
        spec.check_step(self.info().api)?;
        check_direct(spec)?;
        let staged = spec.strategy != Strategy::Registered;
        if !staged && spec.memory.is_none() {
            let reason = "it reads the source's own memory, and this source has none to offer".to_owned();
            return Err(Unsupported { strategy: spec.strategy, reason }.into());
        }
        let slots = if staged { spec.slots as u64 } else { 0 };
        let footprint = Footprint {
            staging: (spec.layout.slot_bytes() as u64).saturating_mul(slots),
            device: device_bytes(spec, self.gather()).saturating_mul(device_buffers(spec) as u64),
            outputs: output_bytes(spec)?.saturating_mul(spec.outputs as u64),
            host: 0,
        };
        let (needed, limit) = (footprint.device.saturating_add(footprint.outputs), self.info().memory);
        match limit {
            Some(limit) if needed > limit => Err(OpenError::TooLarge {
                what: "the batches and tensors on the device",
                needed,
                limit,
                limit_name: "its memory",
                advice: "take fewer outputs or smaller batches",
            }),
            _ => Ok(footprint),
        }
    }

    fn open_lane(&self, spec: &LaneSpec) -> Result<CudaLane, OpenError> {
        let footprint = self.footprint(spec)?;
        self.lost().check()?;
        CudaLane::new(self, spec, footprint)
    }

    fn copy_ceiling(&self, bytes: usize, at_least: Duration) -> Result<f64, DeviceError> {
        self.measure_copies(bytes, at_least)
    }

    fn pageable_ceiling(&self, bytes: usize, at_least: Duration) -> Result<Option<f64>, DeviceError> {
        self.measure_pageable(bytes, at_least).map(Some)
    }

    fn kernel_ceiling(&self, at_least: Duration) -> Result<Option<f64>, DeviceError> {
        self.measure_kernel_ceiling(at_least).map(Some)
    }

    fn consumer(&self) -> Result<CudaConsumer, DeviceError> {
        CudaConsumer::new(self)
    }
}

/// The kernels count elements in 32 bits.
fn check_indices(spec: &LaneSpec) -> Result<(), OpenError> {
    let elements = spec.layout.payload(spec.layout.batch_size()) as u64;
    if spec.preprocess.computes() && elements > u64::from(u32::MAX) {
        return Err(OpenError::TooLarge {
            what: "a batch for kernels",
            needed: elements,
            limit: u64::from(u32::MAX),
            limit_name: "elements that a kernel counts",
            advice: "take smaller batches",
        });
    }
    Ok(())
}

/// Bytes of one buffer between the host's memory and the kernels, or of the offsets that a gathering kernel reads.
pub(super) fn device_bytes(spec: &LaneSpec, gather: GatherMethod) -> u64 {
    match &spec.preprocess {
        Preprocess::Raw => 0,
        Preprocess::Normalize(_) if reads_host(spec, gather) => spec.layout.batch_size() as u64 * 8,
        Preprocess::Normalize(_) | Preprocess::Pipeline(_) | Preprocess::Own(_) => spec.layout.slot_bytes() as u64,
    }
}

/// How many there are.
pub(super) fn device_buffers(spec: &LaneSpec) -> usize {
    match &spec.preprocess {
        Preprocess::Raw => 0,
        Preprocess::Normalize(_) | Preprocess::Pipeline(_) | Preprocess::Own(_) => DEVICE_BUFFERS,
    }
}

/// Whether the kernel reads the source's memory itself.
pub(super) fn reads_host(spec: &LaneSpec, gather: GatherMethod) -> bool {
    let normalizes = matches!(spec.preprocess, Preprocess::Normalize(_));
    spec.strategy == Strategy::Registered && gather == GatherMethod::Kernel && normalizes
}

/// Bytes of one output: the tensors, and the fingerprints.
pub(super) fn output_bytes(spec: &LaneSpec) -> Result<u64, OpenError> {
    let tensors = OutputLayout::new(&spec.preprocess, &spec.layout)?.bytes();
    let sums = fingerprint_bytes(spec.fingerprint_count());
    Ok((tensors as u64).saturating_add(sums as u64))
}
