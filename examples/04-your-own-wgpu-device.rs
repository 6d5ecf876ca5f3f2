//! Your program owns the `wgpu` device; gpufeed puts batches into buffers on it, and your own compute pass uses them.
//!
//! ```sh
//! cargo run --release --example 04-your-own-wgpu-device
//! ```

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;
use std::sync::Arc;

use gpufeed::backend::wgpu::{WgpuBackend, requirements};
use gpufeed::{Loader, LoaderOptions, Normalize, SampleLayout, source::random_images, wgpu};

/// Sums a tensor, one workgroup for all of it.
const SUM: &str = "
@group(0) @binding(0) var<storage, read> tensor: array<f32>;
@group(0) @binding(1) var<storage, read_write> total: f32;
var<workgroup> partial: array<f32, 256>;
@compute @workgroup_size(256) fn main(@builtin(local_invocation_index) me: u32) {
    var sum = 0.0;
    for (var i = me; i < arrayLength(&tensor); i += 256u) { sum += tensor[i]; }
    partial[me] = sum;
    workgroupBarrier();
    if me == 0u { for (var i = 1u; i < 256u; i += 1u) { sum += partial[i]; } total = sum; }
}";

#[expect(clippy::too_many_lines, reason = "an example is read from top to bottom")]
fn main() -> Result<(), Box<dyn Error>> {
    // Your device, with what gpufeed needs on top of what you need.
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
    let Ok(adapter) = adapter else {
        println!("no GPU driver here");
        return Ok(());
    };
    let needs = requirements(&adapter, None)?;
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        required_features: needs.features,
        required_limits: needs.limits,
        ..wgpu::DeviceDescriptor::default()
    }))?;
    let pipeline = sum_pipeline(&device);
    let total = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("total"),
        size: 4,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });

    let backend = WgpuBackend::from_device(device.clone(), queue.clone())?;
    let images = Arc::new(random_images(SampleLayout::image(32, 32, 3)?, 250, 1)?);
    let options = LoaderOptions { batch_size: 32, preprocess: Normalize::unit(3).into(), ..LoaderOptions::default() };
    let mut loader = Loader::new(&backend, images, options)?;
    for batch in loader.epoch(0) {
        let batch = batch?;
        // A plain buffer on your device, and of it the bytes of this batch: the last one may be short, and behind it are older samples.
        // It is being written; the queue's order is all the waiting there is.
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: batch.binding() },
                wgpu::BindGroupEntry { binding: 1, resource: total.as_entire_binding() },
            ],
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bindings, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        queue.submit([encoder.finish()]); // Submit first, then drop the batch: its tensor is written again after this.
        println!("batch {} {:?} summed on {}", batch.number(), batch.shape(), backend.info().name);
    }
    Ok(())
}

fn sum_pipeline(device: &wgpu::Device) -> wgpu::ComputePipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("sum"),
        source: wgpu::ShaderSource::Wgsl(SUM.into()),
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("sum"),
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}
