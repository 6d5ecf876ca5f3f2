//! What a copying kernel takes over the bytes that a lane's kernel moves.

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::wgpu;

const SHADER: &str = include_str!("../../shaders/copy.wgsl");
/// Larger together than any cache.
const PAIRS: usize = 4;
const ROUND: usize = 64;

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
    let groups: Vec<_> = (0..PAIRS).map(|_| pair(device, &pipeline, bytes)).collect();
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

fn pair(device: &wgpu::Device, pipeline: &wgpu::ComputePipeline, size: u64) -> wgpu::BindGroup {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let desc = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
    let [source, target] = [device.create_buffer(&desc), device.create_buffer(&desc)];
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: source.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: target.as_entire_binding() },
        ],
    })
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
