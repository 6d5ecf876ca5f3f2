//! A consumer on wgpu's queue: a dispatch behind each batch.

use std::collections::HashMap;

use super::device::WgpuBackend;
use super::tensor::{WgpuTensor, read_back};
use crate::backend::Consumer;
use crate::backend::consumer::{LOOKS, MAX_SUMS, Seen};
use crate::error::DeviceError;
use crate::preprocess::TensorDesc;

pub(super) const SHADER: &str = include_str!("../../../shaders/consume.wgsl");
/// Two counts and the sums.
const SEEN_BYTES: u64 = (2 + MAX_SUMS as u64) * 4;
/// As the shader has it: iterations, stride, and of how many batches sums are kept.
const JOB_BYTES: u64 = 16;

/// Fixed work on wgpu's queue, where an application's is.
#[derive(Debug)]
pub struct WgpuConsumer {
    backend: WgpuBackend,
    pipeline: wgpu::ComputePipeline,
    seen: wgpu::Buffer,
    job: wgpu::Buffer,
    /// What work without a batch looks at.
    blank: wgpu::Buffer,
    /// By the buffer that they bind.
    groups: HashMap<wgpu::Buffer, wgpu::BindGroup>,
    iterations: u32,
    /// What the job on the device says.
    written: Option<(u32, u32)>,
}

impl WgpuConsumer {
    pub(super) fn new(backend: &WgpuBackend) -> Result<Self, DeviceError> {
        let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let buffer = |label, size, usage| {
            let desc = wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
            backend.allocate("a buffer of a measured consumer", size, || backend.device().create_buffer(&desc))
        };
        Ok(Self {
            pipeline: pipeline(backend)?,
            seen: buffer("gpufeed consumer, seen", SEEN_BYTES, storage)?,
            job: buffer("gpufeed consumer", JOB_BYTES, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST)?,
            blank: buffer("gpufeed consumer, blank", LOOKS as u64 * 4, storage)?,
            groups: HashMap::new(),
            iterations: 0,
            written: None,
            backend: backend.clone(),
        })
    }

    /// Queues the work over a buffer's first words.
    fn dispatch(&mut self, tensor: &wgpu::Buffer, bytes: u64) -> Result<(), DeviceError> {
        let backend = self.backend.clone();
        let bytes = bytes.min(backend.device().limits().max_storage_buffer_binding_size);
        let stride = u32::try_from(bytes / 4 / LOOKS as u64).unwrap_or(u32::MAX);
        backend.scope(|| {
            self.write_job(stride);
            let group = self.group(tensor).clone();
            let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
            drop(pass);
            backend.submit([encoder.finish()]).map(drop)
        })?
    }

    fn write_job(&mut self, stride: u32) {
        if self.written.replace((self.iterations, stride)) != Some((self.iterations, stride)) {
            let job = [self.iterations, stride, MAX_SUMS as u32, 0].map(u32::to_le_bytes).concat();
            self.backend.queue().write_buffer(&self.job, 0, &job);
        }
    }

    fn group(&mut self, tensor: &wgpu::Buffer) -> &wgpu::BindGroup {
        let Self { backend, pipeline, seen, job, groups, .. } = self;
        groups.entry(tensor.clone()).or_insert_with(|| {
            // What is larger than a binding can be is not looked at.
            let most = backend.device().limits().max_storage_buffer_binding_size / 4 * 4;
            let part = wgpu::BufferBinding {
                buffer: tensor,
                offset: 0,
                size: wgpu::BufferSize::new(tensor.size().min(most) / 4 * 4),
            };
            let entry = |binding, resource| wgpu::BindGroupEntry { binding, resource };
            let entries = [
                entry(0, wgpu::BindingResource::Buffer(part)),
                entry(1, seen.as_entire_binding()),
                entry(2, job.as_entire_binding()),
            ];
            let layout = &pipeline.get_bind_group_layout(0);
            let label = Some("gpufeed consumer");
            backend.device().create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries: &entries })
        })
    }
}

fn pipeline(backend: &WgpuBackend) -> Result<wgpu::ComputePipeline, DeviceError> {
    let device = backend.device();
    backend.scope(|| {
        let source = wgpu::ShaderSource::Wgsl(SHADER.into());
        let label = Some("gpufeed consumer");
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label, source });
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: None,
            module: &module,
            entry_point: Some("consume"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
    })
}

impl crate::backend::sealed::Sealed for WgpuConsumer {}

impl Consumer for WgpuConsumer {
    type Tensor = WgpuTensor;

    fn set_iterations(&mut self, iterations: u32) -> Result<(), DeviceError> {
        self.seen()?;
        self.iterations = iterations;
        Ok(())
    }

    fn work(&mut self) -> Result<(), DeviceError> {
        let blank = self.blank.clone();
        self.dispatch(&blank, blank.size())
    }

    fn consume(&mut self, tensor: &WgpuTensor, desc: &TensorDesc) -> Result<(), DeviceError> {
        self.dispatch(tensor.buffer(), desc.byte_len() as u64)
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        self.backend.wait_for_all()
    }

    fn seen(&mut self) -> Result<Seen, DeviceError> {
        self.groups.clear();
        let bytes = read_back(&self.backend, &self.seen, 0, SEEN_BYTES as usize)?;
        let backend = self.backend.clone();
        backend.scope(|| {
            let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(&self.seen, 0, None);
            backend.submit([encoder.finish()]).map(drop)
        })??;
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        Ok(Seen::of_words(&words))
    }
}
