//! Frames that are on the GPU already: submitted without a slot.

use super::super::buffers::device_buffer;
use super::super::kernel::At;
use super::super::lane::WgpuLane;
use super::super::tensor::WgpuTensor;
use super::super::work::Work;
use super::error::{ResourceError, SubmitError, check_buffer};
use super::texture::{check_texture, stored_values, texels};
use crate::backend::SubmissionId;
use crate::error::DeviceError;
use crate::preprocess::Preprocess;

/// Frames on the GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GpuFrames<'a> {
    /// Back to back in a buffer, from this byte on.
    Buffer(&'a wgpu::Buffer, u64),
    /// One, as a texture.
    Texture(&'a wgpu::TextureView),
}

impl WgpuLane {
    /// Whether another submission without a slot may be queued: what is in flight is bounded.
    pub(crate) fn has_room(&self) -> bool {
        self.completions.outstanding() < self.spec.slots + self.spec.outputs
    }

    /// Whether `samples` frames can be read from there.
    ///
    /// # Errors
    /// [`ResourceError`] says what is in the way.
    pub(crate) fn check_frames(&self, frames: GpuFrames<'_>, samples: usize) -> Result<(), ResourceError> {
        let layout = self.spec.layout.sample();
        let fields = layout.fields().len() - usize::from(self.geometry_field().is_some());
        if fields > 1 {
            return Err(ResourceError::Fields { fields });
        }
        match frames {
            GpuFrames::Texture(view) => check_texture(texels(layout)?, view.texture()),
            GpuFrames::Buffer(buffer, offset) => {
                let (usages, align) = match &self.spec.preprocess {
                    Preprocess::Raw => (wgpu::BufferUsages::COPY_SRC, wgpu::COPY_BUFFER_ALIGNMENT),
                    _ => (wgpu::BufferUsages::STORAGE, self.alignment()),
                };
                check_buffer("the buffer of frames", buffer, usages, (offset, align), self.frame_bytes(samples))
            }
        }
    }

    /// Bytes of device memory that such frames take beside, from now on.
    pub(crate) fn missing_bytes(&self, frames: GpuFrames<'_>) -> u64 {
        let records = if self.slotless.records.is_none() { self.record_bytes() } else { 0 };
        records + if let GpuFrames::Texture(_) = frames { self.missing_texture_bytes() } else { 0 }
    }

    /// Bytes of a full batch's records; zero without a pipeline.
    fn record_bytes(&self) -> u64 {
        let field = self.geometry_field().and_then(|number| self.spec.layout.sample().fields().get(number));
        field.map_or(0, |field| (field.byte_len() * self.spec.layout.batch_size()) as u64)
    }

    /// Has the records of these samples written before what is submitted next.
    fn write_records(&mut self, records: &[f32]) -> Result<(), DeviceError> {
        if records.is_empty() {
            return Ok(());
        }
        if self.slotless.records.is_none() {
            let bytes = self.record_bytes();
            self.slotless.records = Some(device_buffer(&self.backend, "gpufeed geometry", bytes)?);
            self.note_device_bytes(bytes);
        }
        let Some(buffer) = &self.slotless.records else { return Ok(()) };
        self.backend.scope(|| self.backend.queue().write_buffer(buffer, 0, bytemuck::cast_slice(records)))
    }

    /// Bytes of frames, in whole words.
    fn frame_bytes(&self, samples: usize) -> u64 {
        (self.spec.layout.payload(samples) as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT)
    }

    /// Queues the kernels, or the copy, for frames that were checked, in one submission; `records` are the geometries that a pipeline has
    /// for them.
    ///
    /// # Errors
    /// The device's, or why something of the application's is refused. Nothing was sent.
    pub(crate) fn submit_frames(
        &mut self,
        frames: GpuFrames<'_>,
        samples: usize,
        records: &[f32],
        output: &WgpuTensor,
    ) -> Result<SubmissionId, SubmitError> {
        self.write_records(records)?;
        let sent = self.send_frames(frames, samples, output);
        if sent.is_err() && !records.is_empty() {
            self.backend.send_queued_writes();
        }
        let (id, work) = (self.completions.next_id(), sent?);
        output.written_by(work.clone());
        self.completions.push(id, None, work);
        Ok(id)
    }

    fn send_frames(&mut self, frames: GpuFrames<'_>, samples: usize, output: &WgpuTensor) -> Result<Work, SubmitError> {
        match frames {
            GpuFrames::Buffer(buffer, offset) => Ok(self.send_buffer(At { buffer, offset }, samples, output)?),
            GpuFrames::Texture(view) => {
                let view = stored_values(&self.backend, view.texture())?;
                Ok(self.send_texture(&view, output)?)
            }
        }
    }

    fn send_buffer(&self, from: At<'_>, samples: usize, output: &WgpuTensor) -> Result<Work, DeviceError> {
        self.record_frames((Some(from), samples, output), |encoder| {
            if matches!(self.spec.preprocess, Preprocess::Raw) {
                let (to, start) = (output.target(), output.target_offset());
                encoder.copy_buffer_to_buffer(from.buffer, from.offset, to, start, self.frame_bytes(samples));
            } else {
                self.encode_at(encoder, from, samples, output);
            }
        })
    }

    fn send_texture(&mut self, view: &wgpu::TextureView, output: &WgpuTensor) -> Result<Work, DeviceError> {
        let texels = texels(self.spec.layout.sample()).map_err(|error| self.backend.refused(error.to_string()))?;
        self.make_texture_reader(texels)?;
        let device = self.backend.device();
        let tensor = At { buffer: output.target(), offset: output.target_offset() };
        let Some(reader) = &self.slotless.textures else {
            return Err(self.backend.refused("no kernel reads textures".into()));
        };
        let bytes = self.device_bytes.as_ref().or(reader.bytes.as_ref());
        let input = bytes.map(|buffer| At { buffer, offset: 0 });
        self.record_frames((input, 1, output), |encoder| match bytes {
            Some(bytes) if !matches!(self.spec.preprocess, Preprocess::Raw) => {
                let bytes = At { buffer: bytes, offset: 0 };
                reader.kernel.encode(device, encoder, view, bytes);
                self.encode_at(encoder, bytes, 1, output);
            }
            // The bytes are the tensor.
            _ => reader.kernel.encode(device, encoder, view, tensor),
        })
    }

    /// Records the kernels over bytes that lie there.
    fn encode_at(&self, encoder: &mut wgpu::CommandEncoder, from: At<'_>, samples: usize, output: &WgpuTensor) {
        let to = At { buffer: output.target(), offset: output.target_offset() };
        let records = self.slotless.records.as_ref();
        for field in self.copied_fields.iter().filter(|_| !output.is_given()) {
            // The only one behind the first is a pipeline's geometry.
            if let Some(records) = records {
                let tensor = field.of(samples);
                encoder.copy_buffer_to_buffer(records, 0, to.buffer, tensor.offset as u64, tensor.byte_len() as u64);
            }
        }
        let bindings = self.kernels.bind_at(self.backend.device(), (from, records), to, samples);
        self.kernels.encode(encoder, &bindings, samples);
    }

    /// Records and submits on wgpu's queue, with what an application's step records for the batch: its bytes, its samples and its tensor.
    fn record_frames(
        &self,
        (input, samples, output): (Option<At<'_>>, usize, &WgpuTensor),
        record: impl FnOnce(&mut wgpu::CommandEncoder),
    ) -> Result<Work, DeviceError> {
        let desc = wgpu::CommandEncoderDescriptor { label: Some("gpufeed frames") };
        let send = || {
            let mut encoder = self.backend.device().create_command_encoder(&desc);
            record(&mut encoder);
            let step = self.record_step(input, samples, output)?;
            self.backend.send(std::iter::once(encoder.finish()).chain(step), None, || ())
        };
        self.backend.scope(send).flatten()
    }
}
