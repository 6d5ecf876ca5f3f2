//! A consumer on wgpu's queue.

use std::collections::HashMap;

use gpufeed::backend::wgpu::{Tuning, WgpuBackend};
use gpufeed::loader::Batch;
use gpufeed::{Strategy, wgpu};

use super::Failure;
use super::args::Args;
use super::consumer::{Consumer, LOOKS, MAX_BATCHES, SCRATCH, WIDE_GROUPS};

const SHADER: &str = include_str!("consume.wgsl");

pub struct WgpuConsumer {
    backend: WgpuBackend,
    pipeline: wgpu::ComputePipeline,
    groups: u32,
    sums: wgpu::Buffer,
    job: wgpu::Buffer,
    scratch: wgpu::Buffer,
    /// What work without a batch looks at.
    blank: wgpu::Buffer,
    bind_groups: HashMap<wgpu::Buffer, wgpu::BindGroup>,
    words: u32,
    iterations: u32,
    queues: Vec<(String, Tuning)>,
}

impl WgpuConsumer {
    #[expect(clippy::too_many_lines, reason = "the descriptors of wgpu take their lines")]
    pub fn open(device: &str, args: &Args) -> Result<Self, Failure> {
        let backend = WgpuBackend::open(device)?;
        // Its memory, and its queues.
        for support in backend.info().strategies.iter().filter(|support| support.strategy == Strategy::SystemRing) {
            println!("system-ring: {}", support.memory.as_deref().or(support.missing.as_deref()).unwrap_or_default());
        }
        let device = backend.device();
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("consume"),
            source: wgpu::ShaderSource::Wgsl(SHADER.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("consume"),
            layout: None,
            module: &module,
            entry_point: Some(if args.wide { "wide" } else { "narrow" }),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let buffer = |size: usize, usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: size as u64,
                usage,
                mapped_at_creation: false,
            })
        };
        // A power of two that can be bound.
        let most = 1usize << device.limits().max_storage_buffer_binding_size.ilog2();
        let scratch = if args.wide { most.min(SCRATCH as usize * 16) } else { 1024 };
        Ok(Self {
            sums: buffer(4 + MAX_BATCHES * 8, storage),
            job: buffer(16, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST),
            scratch: buffer(scratch, storage),
            blank: buffer(LOOKS * 4, storage),
            groups: if args.wide { WIDE_GROUPS } else { 1 },
            bind_groups: HashMap::new(),
            words: 0,
            iterations: 0,
            queues: args.queues()?,
            pipeline,
            backend,
        })
    }

    /// Parameters for tensors of this many words.
    fn write_job(&mut self, words: u32) {
        if self.words != words {
            self.words = words;
            let threads = self.groups * if self.groups > 1 { 256 } else { 32 };
            let mask = (self.scratch.size() / 16) as u32 - 1;
            let job = [self.iterations, words / LOOKS as u32, threads, mask];
            self.backend.queue().write_buffer(&self.job, 0, &job.map(u32::to_le_bytes).concat());
        }
    }

    fn commands(&mut self, tensor: &wgpu::Buffer) -> wgpu::CommandBuffer {
        let device = self.backend.device();
        let group = self.bind_groups.entry(tensor.clone()).or_insert_with(|| {
            let buffers = [tensor, &self.sums, &self.job, &self.scratch];
            let layout = &self.pipeline.get_bind_group_layout(0);
            let entries: Vec<_> = (0..)
                .zip(buffers)
                .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
                .collect();
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &*group, &[]);
        pass.dispatch_workgroups(self.groups, 1, 1);
        drop(pass);
        encoder.finish()
    }
}

impl Consumer for WgpuConsumer {
    type Backend = WgpuBackend;

    fn backend(&self) -> &WgpuBackend {
        &self.backend
    }

    fn variants(&self, strategy: Strategy) -> Vec<(String, WgpuBackend)> {
        if !matches!(strategy, Strategy::SystemRing | Strategy::Imported) {
            return vec![(strategy.to_string(), self.backend.clone())];
        }
        let variant = |(name, tuning): &(String, Tuning)| {
            (format!("{strategy}, copies: {name}"), self.backend.with_tuning(*tuning))
        };
        self.queues.iter().map(variant).collect()
    }

    fn set(&mut self, iterations: u32) -> Result<(), Failure> {
        self.finish()?;
        (self.iterations, self.words) = (iterations, 0);
        self.sums().map(drop)
    }

    fn work(&mut self) -> Result<(), Failure> {
        let blank = self.blank.clone();
        self.write_job(LOOKS as u32);
        let commands = self.commands(&blank);
        self.backend.queue().submit([commands]);
        Ok(())
    }

    fn consume(&mut self, batch: Batch<WgpuBackend>) -> Result<(), Failure> {
        self.write_job((batch.desc().byte_len() / 4) as u32);
        let commands = self.commands(batch.buffer());
        batch.submit([commands]);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.backend.device().poll(wgpu::PollType::wait_indefinitely())?;
        Ok(())
    }

    fn sums(&mut self) -> Result<Vec<[u32; 2]>, Failure> {
        let (device, queue) = (self.backend.device(), self.backend.queue());
        let size = self.sums.size();
        let read = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.sums, 0, &read, 0, size);
        encoder.clear_buffer(&self.sums, 0, None);
        queue.submit([encoder.finish()]);
        read.map_async(wgpu::MapMode::Read, .., |_| {});
        device.poll(wgpu::PollType::wait_indefinitely())?;
        let bytes = read.slice(..).get_mapped_range()?;
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let count = words[0] as usize;
        Ok(words[1..].as_chunks().0.iter().take(count).copied().collect())
    }

    fn forget(&mut self) {
        self.bind_groups.clear();
    }
}
