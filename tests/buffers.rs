//! Batches as an application's own `wgpu` buffers: submitted with, kept for good.

#![cfg(feature = "wgpu")]

#[path = "support/skip.rs"]
mod skip;

use std::sync::Arc;

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::{Batch, Loader, LoaderOptions, MemorySource, OpenError, SampleLayout, wgpu};

/// Sums the bytes of a tensor.
const SUM: &str = "
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: u32;
@compute @workgroup_size(1) fn main() {
    var sum = 0u;
    for (var i = 0u; i < arrayLength(&words); i += 1u) {
        let word = words[i];
        sum += (word & 0xFFu) + ((word >> 8u) & 0xFFu) + ((word >> 16u) & 0xFFu) + (word >> 24u);
    }
    total = sum;
}";

fn loader(test: &str, outputs: usize) -> Option<Loader<WgpuBackend>> {
    open(test, "vulkan:0", 32, 2, outputs)
}

/// Samples of 16 bytes that all are the sample's index.
fn open(test: &str, device: &str, samples: usize, batch_size: usize, outputs: usize) -> Option<Loader<WgpuBackend>> {
    let backend = match WgpuBackend::open(device) {
        Err(OpenError::NoDevice { .. }) => {
            skip::skip(test, &format!("no {device} here"));
            return None;
        }
        // Some drivers' GL fails in a process that has used their Vulkan.
        Err(error) if device.starts_with("gl") => {
            skip::skip(test, &error.to_string());
            return None;
        }
        opened => opened.expect("the device is there and opens"),
    };
    let bytes: Vec<u8> = (0..samples * 16).map(|i| (i / 16) as u8).collect();
    let source = MemorySource::new(bytes, SampleLayout::bytes(&[16]).expect("valid")).expect("whole samples");
    let options = LoaderOptions { batch_size, outputs, ..LoaderOptions::default() };
    Some(Loader::new(&backend, Arc::new(source), options).expect("the loader opens"))
}

/// Sums each batch's bytes on the device, one after the other into one buffer, and reads the sums back.
struct Sums {
    device: wgpu::Device,
    pipeline: wgpu::ComputePipeline,
    totals: wgpu::Buffer,
}

impl Sums {
    /// Devices align the offsets of bindings to at most this.
    const STRIDE: u64 = 256;

    fn new(device: &wgpu::Device, batches: u64) -> Self {
        let source = wgpu::ShaderSource::Wgsl(SUM.into());
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let totals = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: batches * Self::STRIDE,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        Self { device: device.clone(), pipeline, totals }
    }

    fn add(&self, batch: Batch<WgpuBackend>) {
        let total = wgpu::BufferBinding {
            buffer: &self.totals,
            offset: batch.number() * Self::STRIDE,
            size: wgpu::BufferSize::new(4),
        };
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: batch.binding() },
                wgpu::BindGroupEntry { binding: 1, resource: wgpu::BindingResource::Buffer(total) },
            ],
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        batch.submit([encoder.finish()]);
    }

    fn read(&self, queue: &wgpu::Queue) -> Vec<u32> {
        let bytes = read(&self.device, queue, &self.totals, self.totals.size());
        let first = |record: &[u8]| u32::from_le_bytes(record[..4].try_into().expect("four bytes"));
        bytes.chunks_exact(Self::STRIDE as usize).map(first).collect()
    }
}

#[test]
fn the_binding_of_a_short_batch_holds_no_older_samples() {
    for device in ["vulkan:0", "gl:0"] {
        // One output: the short batch comes into a tensor that held a full one.
        let Some(mut loader) = open("the_binding_of_a_short_batch", device, 21, 8, 1) else { continue };
        let sums = Sums::new(loader.backend().device(), 3);
        let queue = loader.backend().queue().clone();
        loader.epoch(0).for_each(|batch| sums.add(batch.expect("no error")));
        drop(loader); // On GL nobody else may talk to the device while a pump does.
        let right = [0..8, 8..16, 16..21].map(|samples: std::ops::Range<u32>| samples.sum::<u32>() * 16);
        assert_eq!(sums.read(&queue), right, "{device}");
    }
}

#[test]
fn the_output_index_of_a_batch_is_its_buffers_for_as_long_as_it_stays_in_the_pool() {
    let Some(mut loader) = open("the_output_index_of_a_batch", "vulkan:0", 64, 2, 3) else { return };
    let mut buffers: Vec<Option<wgpu::Buffer>> = vec![None; 3];
    for epoch in 0..2 {
        for batch in loader.epoch(epoch) {
            let batch = batch.expect("no error");
            let known = buffers[batch.output_index()].get_or_insert_with(|| batch.buffer().clone());
            assert_eq!(known, batch.buffer());
        }
    }
    assert!(buffers.iter().all(Option::is_some), "every number is used");
    let taken = loader.epoch(2).next().expect("there are batches").expect("no error").into_buffer();
    for batch in loader.epoch(3) {
        let batch = batch.expect("no error");
        assert_ne!(*batch.buffer(), taken);
        match buffers.get(batch.output_index()) {
            Some(known) => assert_eq!(known.as_ref(), Some(batch.buffer())),
            None => assert_eq!(batch.output_index(), 3, "what took its place"),
        }
    }
}

/// Reads a buffer back without gpufeed.
fn read(device: &wgpu::Device, queue: &wgpu::Queue, buffer: &wgpu::Buffer, bytes: u64) -> Vec<u8> {
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, bytes);
    encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., |result| result.expect("mapped"));
    queue.submit([encoder.finish()]);
    device.poll(wgpu::PollType::wait_indefinitely()).expect("the device is there");
    staging.slice(..).get_mapped_range().expect("mapped").to_vec()
}

#[test]
fn work_submitted_with_a_batch_sees_that_batch_and_no_later_one() {
    // One output: the loader writes the next batch into the same buffer as soon as it has it back.
    let Some(mut loader) = loader("work_submitted_with_a_batch", 1) else { return };
    let (device, queue) = (loader.backend().device().clone(), loader.backend().queue().clone());
    let copies = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 32 * 16,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    for batch in loader.epoch(0) {
        let batch = batch.expect("no error");
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(batch.buffer(), 0, &copies, batch.number() * 32, 32);
        batch.submit([encoder.finish()]);
    }
    let right: Vec<u8> = (0..32 * 16).map(|i| (i / 16) as u8).collect();
    assert_eq!(read(&device, &queue, &copies, 32 * 16), right);
}

#[test]
fn a_buffer_that_is_kept_stays_as_it_is_and_the_loader_goes_on() {
    let Some(mut loader) = loader("a_buffer_that_is_kept", 2) else { return };
    let (device, queue) = (loader.backend().device().clone(), loader.backend().queue().clone());
    let mut kept = Vec::new();
    for batch in loader.epoch(0) {
        kept.push(batch.expect("another output took its place").into_buffer());
    }
    assert_eq!(kept.len(), 16);
    for (number, buffer) in (0u8..).zip(&kept) {
        let right = [[number * 2; 16], [number * 2 + 1; 16]].concat();
        assert_eq!(read(&device, &queue, buffer, 32), right);
    }
}

#[test]
fn a_tensor_is_copied_into_a_buffer_of_the_callers_or_refused() {
    let Some(mut loader) = loader("a_tensor_is_copied_into_a_buffer", 2) else { return };
    let (device, queue) = (loader.backend().device().clone(), loader.backend().queue().clone());
    let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let desc = wgpu::BufferDescriptor { label: None, size: 32 * 16, usage, mapped_at_creation: false };
    let target = device.create_buffer(&desc);
    for batch in loader.epoch(0) {
        let batch = batch.expect("no error");
        let place = batch.number() * 32;
        batch.fill_into(&target, place).expect("it fits");
    }
    let right: Vec<u8> = (0..32 * 16).map(|i| (i / 16) as u8).collect();
    assert_eq!(read(&device, &queue, &target, 32 * 16), right);
    let batch = loader.epoch(1).next().expect("there are batches").expect("no error");
    let error = batch.fill_into(&target, 32 * 16 - 4).expect_err("it does not fit");
    assert!(matches!(error, gpufeed::DeviceError::Refused { .. }), "{error}");
    // The batch is still there, and can be copied to where it fits.
    batch.fill_into(&target, 32 * 15).expect("it fits");
    drop(batch);
    assert_eq!(read(&device, &queue, &target, 32 * 16)[32 * 15..], right[..32]);
}
