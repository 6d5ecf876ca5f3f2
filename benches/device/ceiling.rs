//! The device's memory bandwidth, as a kernel reaches it: copy commands inside a card are no ceiling for kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::wgpu;

const SHADER: &str = "
@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> copied: array<vec4<u32>>;
@compute @workgroup_size(256)
fn copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = (group.y * groups.x + group.x) * 256u + local;
    if index < arrayLength(&copied) {
        copied[index] = source[index];
    }
}";
/// Larger together than any cache.
const PAIRS: usize = 4;
const ROUND: usize = 64;

/// Bytes read and written a second.
pub fn kernel_bandwidth(backend: &WgpuBackend, at_least: Duration) -> f64 {
    let device = backend.device();
    let bytes = device.limits().max_storage_buffer_binding_size.min(128 << 20) / 4096 * 4096;
    let pipeline = copying_kernel(device);
    let (groups, buffers): (Vec<_>, Vec<_>) = (0..PAIRS).map(|_| pair(device, &pipeline, bytes)).unzip();
    verify(backend, &pipeline, &groups, &buffers[0]);
    let (start, mut rounds) = (Instant::now(), 0);
    while start.elapsed() < at_least {
        round(backend, &pipeline, &groups, bytes);
        rounds += 1;
    }
    (2 * bytes * ROUND as u64 * rounds) as f64 / start.elapsed().as_secs_f64()
}

/// Seconds in which one dispatch of the copying kernel reads and writes so many bytes together, by the device's clock and as a
/// lane's kernels are timed: a part of it is the same for any number of bytes. `None` where the device cannot.
pub fn one_dispatch(backend: &WgpuBackend, moved: usize) -> Option<f64> {
    let (device, queue) = (backend.device(), backend.queue());
    let needed = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
    let bytes = (moved as u64 / 2).next_multiple_of(4096);
    if !device.features().contains(needed) || bytes > device.limits().max_storage_buffer_binding_size {
        return None;
    }
    let pipeline = copying_kernel(device);
    let groups: Vec<_> = (0..PAIRS).map(|_| pair(device, &pipeline, bytes).0).collect();
    let count = 2 * ROUND as u32;
    let queries =
        device.create_query_set(&wgpu::QuerySetDescriptor { label: None, ty: wgpu::QueryType::Timestamp, count });
    let resolved = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: u64::from(count) * 8,
        usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    for (mark, group) in (0..count).step_by(2).zip(groups.iter().cycle()) {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.write_timestamp(&queries, mark);
        dispatch(&mut encoder, &pipeline, std::iter::once(group), bytes);
        encoder.write_timestamp(&queries, mark + 1);
        queue.submit([encoder.finish()]);
    }
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.resolve_query_set(&queries, 0..count, &resolved, 0);
    queue.submit([encoder.finish()]);
    let marks: Vec<u64> =
        read(backend, &resolved.slice(..)).as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
    // The first of each pair meets memory that was never touched.
    let mut ticks: Vec<u64> = marks.as_chunks().0[PAIRS..].iter().map(|[from, to]| to.wrapping_sub(*from)).collect();
    ticks.sort_unstable();
    Some(ticks[ticks.len() / 2] as f64 * f64::from(queue.get_timestamp_period()) * 1e-9)
}

fn copying_kernel(device: &wgpu::Device) -> wgpu::ComputePipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(SHADER.into()),
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("copy"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}

fn pair(device: &wgpu::Device, pipeline: &wgpu::ComputePipeline, size: u64) -> (wgpu::BindGroup, [wgpu::Buffer; 2]) {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let desc = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
    let [source, target] = [device.create_buffer(&desc), device.create_buffer(&desc)];
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: source.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: target.as_entire_binding() },
        ],
    });
    (group, [source, target])
}

/// Whether the last bytes arrive.
fn verify(
    backend: &WgpuBackend,
    pipeline: &wgpu::ComputePipeline,
    groups: &[wgpu::BindGroup],
    [source, target]: &[wgpu::Buffer; 2],
) {
    let (bytes, at) = ([7; 4096], source.size() - 4096);
    backend.queue().write_buffer(source, at, &bytes);
    round(backend, pipeline, groups, source.size());
    assert_eq!(read(backend, &target.slice(at..)), bytes, "the copying kernel copies");
}

fn read(backend: &WgpuBackend, from: &wgpu::BufferSlice<'_>) -> Vec<u8> {
    let (send, read) = std::sync::mpsc::channel();
    wgpu::util::DownloadBuffer::read_buffer(backend.device(), backend.queue(), from, move |result| {
        send.send(result.map(|view| view.to_vec())).expect("it is waited for");
    });
    backend.device().poll(wgpu::PollType::wait_indefinitely()).expect("the device is there");
    read.recv().expect("it is sent").expect("it can be read")
}

/// Records a dispatch for each group.
fn dispatch<'a>(
    encoder: &mut wgpu::CommandEncoder,
    pipeline: &wgpu::ComputePipeline,
    groups: impl Iterator<Item = &'a wgpu::BindGroup>,
    bytes: u64,
) {
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(pipeline);
    let workgroups = u32::try_from(bytes / 16 / 256).expect("few enough");
    let rows = workgroups.div_ceil(65_535);
    for group in groups {
        pass.set_bind_group(0, group, &[]);
        pass.dispatch_workgroups(workgroups.div_ceil(rows), rows, 1);
    }
}

fn round(backend: &WgpuBackend, pipeline: &wgpu::ComputePipeline, groups: &[wgpu::BindGroup], bytes: u64) {
    let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    dispatch(&mut encoder, pipeline, groups.iter().cycle().take(ROUND), bytes);
    let done = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&done);
    encoder.on_submitted_work_done(move || flag.store(true, Ordering::Release));
    backend.queue().submit([encoder.finish()]);
    while !done.load(Ordering::Acquire) {
        backend.device().poll(wgpu::PollType::Poll).expect("the device is there");
        std::thread::sleep(Duration::from_micros(50));
    }
}
