//! Tensors in a buffer of the application's.

use super::super::kernel::{At, Bindings, alignment};
use super::super::lane::WgpuLane;
use super::super::tensor::{TensorMemory, WgpuTensor};
use super::error::{ResourceError, SubmitError, check_buffer};
use crate::layout::{COPY_ALIGN, VECTOR_ALIGN, align_up};
use crate::preprocess::{OutputField, OutputLayout, Preprocess};

impl WgpuLane {
    /// Whether tensors of `samples` samples can be written into `target` from `offset` on, as a whole by a kernel or as the lane does it.
    ///
    /// # Errors
    /// [`ResourceError`] of the buffer's usages, the offset or the size.
    pub(crate) fn check_target(
        &self,
        tensors: &OutputLayout,
        samples: usize,
        (target, offset): (&wgpu::Buffer, u64),
        by_kernel: bool,
    ) -> Result<(), ResourceError> {
        let (storage, copied) = (wgpu::BufferUsages::STORAGE, wgpu::BufferUsages::COPY_DST);
        let (usages, align) = match &self.spec.preprocess {
            Preprocess::Raw if !by_kernel => (copied, wgpu::COPY_BUFFER_ALIGNMENT),
            _ if self.copied_to_target().next().is_none() => (storage, self.alignment()),
            _ => (storage | copied, self.alignment()),
        };
        check_buffer("the target buffer", target, usages, (offset, align), self.target_bytes(tensors, samples))
    }

    /// What offsets of what kernels read and write are multiples of.
    pub(super) fn alignment(&self) -> u64 {
        alignment(&self.backend.device().limits())
    }

    /// The fields behind the first that are copied to a target.
    fn copied_to_target(&self) -> impl Iterator<Item = &OutputField> {
        let geometry = self.geometry_field();
        self.copied_fields.iter().filter(move |field| Some(field.field) != geometry)
    }

    /// Bytes that are written from a target's offset on.
    fn target_bytes(&self, tensors: &OutputLayout, samples: usize) -> u64 {
        if matches!(self.spec.preprocess, Preprocess::Raw) {
            return self.spec.layout.copy_bytes(samples) as u64;
        }
        let end = |field: &OutputField, align: usize| {
            let tensor = field.of(samples);
            align_up(tensor.byte_len(), align).unwrap_or(usize::MAX).saturating_add(tensor.offset) as u64
        };
        let made = tensors.fields().iter().filter(|field| field.is_made).map(|field| end(field, VECTOR_ALIGN));
        let copied = self.copied_to_target().map(|field| end(field, COPY_ALIGN));
        made.chain(copied).max().unwrap_or_default()
    }

    /// A tensor in a buffer of the application's that was checked, for one submission of `samples` samples out of a slot.
    ///
    /// # Errors
    /// The device's, or why the buffer is refused.
    pub(crate) fn tensor_in(
        &self,
        slot: usize,
        samples: usize,
        target: &wgpu::Buffer,
        offset: u64,
    ) -> Result<WgpuTensor, SubmitError> {
        let to = At { buffer: target, offset };
        let bindings = match self.kernels_read(slot) {
            Some(from) if !matches!(self.spec.preprocess, Preprocess::Raw) => {
                let from = At { buffer: from, offset: 0 };
                vec![self.backend.scope(|| self.kernels.bind_at(self.backend.device(), (from, None), to, samples))?]
            }
            _ => Vec::new(),
        };
        Ok(self.tensor_of(to, bindings))
    }

    /// A tensor in a buffer of the application's that was checked, for frames that are in no slot.
    pub(crate) fn bare_tensor_in(&self, target: &wgpu::Buffer, offset: u64) -> WgpuTensor {
        self.tensor_of(At { buffer: target, offset }, Vec::new())
    }

    fn tensor_of(&self, to: At<'_>, bindings: Vec<Bindings>) -> WgpuTensor {
        let memory = TensorMemory { buffer: to.buffer.clone(), offset: to.offset, is_given: true, written: None };
        WgpuTensor::new(self.backend.clone(), usize::MAX, memory, None, bindings, None)
    }
}
