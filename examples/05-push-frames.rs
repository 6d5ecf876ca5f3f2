//! An inference app's loop: it owns its `wgpu` device, pushes frames as they come, runs its own compute pass on the normalised
//! tensor and reads the answer.
//!
//! ```sh
//! cargo run --release --example 05-push-frames
//! ```

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;

use gpufeed::backend::wgpu::{WgpuBackend, requirements};
use gpufeed::{Feeder, FeederOptions, Normalize, SampleLayout, wgpu};

const SIDE: usize = 64;

/// The app's "model": the mean of the tensor.
const MODEL: &str = "
@group(0) @binding(0) var<storage, read> tensor: array<f32>;
@group(0) @binding(1) var<storage, read_write> answer: f32;
@compute @workgroup_size(1) fn main() {
    var sum = 0.0;
    for (var i = 0u; i < arrayLength(&tensor); i += 1u) { sum += tensor[i]; }
    answer = sum / f32(arrayLength(&tensor));
}";

fn main() -> Result<(), Box<dyn Error>> {
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
    let model = compile(&device);
    let buffer = |usage| wgpu::BufferDescriptor { label: None, size: 4, usage, mapped_at_creation: false };
    let answer = device.create_buffer(&buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC));
    let readable = device.create_buffer(&buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST));

    let backend = WgpuBackend::from_device(device.clone(), queue)?;
    let options = FeederOptions { preprocess: Normalize::unit(3).into(), ..FeederOptions::default() };
    let mut feeder = Feeder::new(&backend, SampleLayout::image(SIDE, SIDE, 3)?, options)?;
    for brightness in [0u8, 64, 128, 255] {
        let frame = vec![brightness; SIDE * SIDE * 3]; // From a camera, a decoder, a request.
        let batch = feeder.feed(&[&frame])?;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        run(&device, &model, &mut encoder, batch.binding(), &answer);
        encoder.copy_buffer_to_buffer(&answer, 0, &readable, 0, 4);
        encoder.map_buffer_on_submit(&readable, wgpu::MapMode::Read, .., |mapped| mapped.expect("it can be read"));
        batch.submit([encoder.finish()]); // The tensor goes back to the feeder behind this work.
        device.poll(wgpu::PollType::wait_indefinitely())?;
        let view = readable.slice(..).get_mapped_range()?;
        println!("brightness {brightness}: the model says {:.3}", f32::from_ne_bytes(view[..].try_into()?));
        drop(view);
        readable.unmap();
    }
    Ok(())
}

fn run(
    device: &wgpu::Device,
    model: &wgpu::ComputePipeline,
    encoder: &mut wgpu::CommandEncoder,
    tensor: wgpu::BindingResource<'_>,
    answer: &wgpu::Buffer,
) {
    let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &model.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: tensor },
            wgpu::BindGroupEntry { binding: 1, resource: answer.as_entire_binding() },
        ],
    });
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(model);
    pass.set_bind_group(0, &bindings, &[]);
    pass.dispatch_workgroups(1, 1, 1);
}

fn compile(device: &wgpu::Device) -> wgpu::ComputePipeline {
    let source = wgpu::ShaderSource::Wgsl(MODEL.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("model"), source });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("model"),
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}
