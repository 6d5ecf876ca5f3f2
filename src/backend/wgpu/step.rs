//! An application's step in a batch's submission.

use super::device::WgpuBackend;
use super::kernel::At;
use super::kernel_queue::kernel_queue;
use super::lane::WgpuLane;
use super::tensor::WgpuTensor;
use super::transfer;
use super::tuning::{CopyQueue, KernelQueue, SlotReads, Tuning};
use crate::backend::{LaneSpec, Strategy, WgpuBatch};
use crate::error::{DeviceError, Unsupported};
use crate::preprocess::Preprocess;

impl WgpuBackend {
    /// The device as a lane has it whose batches may have a step. A step is recorded on wgpu's own queue, for the application's own device, and
    /// is given no memory but wgpu's: what was left to gpufeed to choose is chosen so.
    ///
    /// # Errors
    /// [`Unsupported`] where something else was asked for by name.
    pub(super) fn for_step(&self, spec: &LaneSpec) -> Result<Self, Unsupported> {
        spec.check_step(self.api())?;
        if spec.step.is_none() {
            return Ok(self.clone());
        }
        let refused = |reason: &str| Err(Unsupported { strategy: spec.strategy, reason: reason.to_owned() });
        let (tuning, makes) = (self.tuning(), matches!(spec.preprocess, Preprocess::Own(_)));
        if tuning.kernels != KernelQueue::Automatic && kernel_queue(self, spec)?.is_some() {
            return refused("its kernels were asked to run beside wgpu's queue, where no step is recorded");
        }
        let in_place = spec.strategy == Strategy::SystemRing && tuning.slots == SlotReads::InPlace;
        if makes && (in_place || spec.strategy == Strategy::DirectMap) {
            return refused("its slots are read in place, and a step that makes the tensor is given none of them");
        }
        if makes && tuning.copies != CopyQueue::Automatic && transfer::family(self, spec)?.is_some() {
            return refused(
                "its copies were asked to run beside wgpu's queue, and a step reads none that arrive there",
            );
        }
        let copies = if makes { CopyQueue::Main } else { tuning.copies };
        Ok(self.with_tuning(Tuning { kernels: KernelQueue::Main, copies, ..tuning }))
    }
}

impl WgpuLane {
    /// The commands of the application's step, to be submitted behind the batch's own: in an encoder of their own, so that no step can take the
    /// batch's away. `input` are the batch's bytes, where a buffer of wgpu's has them.
    ///
    /// Runs in the error scope of the submission.
    ///
    /// # Errors
    /// [`DeviceError::Step`].
    pub(super) fn record_step(
        &self,
        input: Option<At<'_>>,
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<Option<wgpu::CommandBuffer>, DeviceError> {
        let Some(step) = &self.spec.step else { return Ok(None) };
        let device = self.backend.device();
        let desc = wgpu::CommandEncoderDescriptor { label: Some("a step of the application's") };
        let mut encoder = device.create_command_encoder(&desc);
        let batch = WgpuBatch {
            device,
            input: input.filter(|_| self.spec.preprocess.computes()).map(|at| (at.buffer, at.offset)),
            layout: &self.spec.layout,
            output: (output.target(), output.target_offset()),
            tensors: &self.tensors,
            samples,
        };
        step.record(&mut encoder, &batch)?;
        Ok(Some(encoder.finish()))
    }

    /// The bytes of a batch between staging and tensor.
    pub(super) fn staged_bytes(&self) -> Option<At<'_>> {
        self.device_bytes.as_ref().map(|buffer| At { buffer, offset: 0 })
    }
}
