//! An inference app's loop: it owns its `wgpu` device and its model's input. Each frame is written straight into staging memory, and
//! its normalised tensor straight into the model's input; then the app runs its own compute pass and reads the answer.
//!
//! ```sh
//! cargo run --release --example 05-push-frames
//! ```

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;

use gpufeed::backend::wgpu::{WgpuBackend, requirements};
use gpufeed::wgpu::BufferUsages;
use gpufeed::{Feeder, FeederOptions, Normalize, SampleLayout, wgpu};

const SIDE: usize = 64;

/// The app's "model": the mean of its input.
const MODEL: &str = "
@group(0) @binding(0) var<storage, read> tensor: array<f32>;
@group(0) @binding(1) var<storage, read_write> answer: f32;
@compute @workgroup_size(1) fn main() {
    var sum = 0.0;
    for (var i = 0u; i < arrayLength(&tensor); i += 1u) { sum += tensor[i]; }
    answer = sum / f32(arrayLength(&tensor));
}";

fn main() -> Result<(), Box<dyn Error>> {
    let Some((device, queue)) = open()? else {
        println!("no GPU driver here");
        return Ok(());
    };
    let buffer = |size, usage| {
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    };
    let input = buffer(4 * 3 * (SIDE * SIDE) as u64, BufferUsages::STORAGE);
    let answer = buffer(4, BufferUsages::STORAGE | BufferUsages::COPY_SRC);
    let readable = buffer(4, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let (model, bindings) = compile(&device, &input, &answer);

    let backend = WgpuBackend::from_device(device.clone(), queue.clone())?;
    let options = FeederOptions { preprocess: Normalize::unit(3).into(), ..FeederOptions::default() };
    let mut feeder = Feeder::new(&backend, SampleLayout::image(SIDE, SIDE, 3)?, options)?;
    for (number, brightness) in [0u8, 64, 128, 255].into_iter().enumerate() {
        // A camera, a decoder or a socket writes where the device reads. `feed` takes frames that lie in memory already, `feed_buffer`
        // and `feed_texture` those on the GPU; without `_into` the tensor is the feeder's, and comes as a batch.
        let write = |frame: &mut gpufeed::FrameWriter<'_>| {
            frame.set_tag(number as u64);
            (0..SIDE).try_for_each(|_row| frame.write(&[brightness; SIDE * 3]))
        };
        let fed = feeder.feed_with_into(1, write, &input, 0)?;
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&model);
        pass.set_bind_group(0, &bindings, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        encoder.copy_buffer_to_buffer(&answer, 0, &readable, 0, 4);
        encoder.map_buffer_on_submit(&readable, wgpu::MapMode::Read, .., |mapped| mapped.expect("it can be read"));
        queue.submit([encoder.finish()]); // Behind the frame's own work, so that nobody waits.
        device.poll(wgpu::PollType::wait_indefinitely())?;
        let view = readable.slice(..).get_mapped_range()?;
        let says = f32::from_ne_bytes(view[..].try_into()?);
        println!("frame {}, brightness {brightness}: the model says {says:.3}", fed.tags()[0]);
        drop(view);
        readable.unmap();
    }
    Ok(())
}

/// The app's own device, with what gpufeed needs of it.
fn open() -> Result<Option<(wgpu::Device, wgpu::Queue)>, Box<dyn Error>> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
    let Ok(adapter) = adapter else { return Ok(None) };
    let needs = requirements(&adapter, None)?;
    let opened = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        required_features: needs.features,
        required_limits: needs.limits,
        ..wgpu::DeviceDescriptor::default()
    }))?;
    Ok(Some(opened))
}

fn compile(
    device: &wgpu::Device,
    input: &wgpu::Buffer,
    answer: &wgpu::Buffer,
) -> (wgpu::ComputePipeline, wgpu::BindGroup) {
    let source = wgpu::ShaderSource::Wgsl(MODEL.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("model"), source });
    let model = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("model"),
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &model.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: input.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: answer.as_entire_binding() },
        ],
    });
    (model, bindings)
}
