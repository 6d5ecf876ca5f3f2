//! The device's memory bandwidth, as a kernel reaches it: copy commands inside a card are no ceiling for kernels.

use std::time::{Duration, Instant};

use super::clock;
use super::device::WgpuBackend;
use super::tensor::read_back;
use crate::error::DeviceError;

const SHADER: &str = include_str!("../../../shaders/copy.wgsl");
/// Larger together than any cache.
const PAIRS: usize = 4;
/// Bytes of one buffer; a device that computes on the CPU has smaller caches and less patience.
const BYTES: u64 = 128 << 20;
const SOFTWARE_BYTES: u64 = 16 << 20;
/// Dispatches of a round, at most.
const MAX_A_ROUND: usize = 64;
/// Bytes of a workgroup: 256 vectors of 16.
pub(super) const GROUP_BYTES: u64 = 256 * 16;
const MAX_GROUPS: u32 = 65_535;

/// A pipeline that copies, and buffers that it takes in turn.
pub(super) struct Copying<'a> {
    backend: &'a WgpuBackend,
    pipeline: wgpu::ComputePipeline,
    pairs: Vec<Pair>,
    bytes: u64,
}

/// Where from, where to.
struct Pair {
    source: wgpu::Buffer,
    copied: wgpu::Buffer,
    group: wgpu::BindGroup,
}

/// Bytes that a copying kernel reads and writes a second; `None` where the device binds no buffer that could be measured with.
///
/// # Errors
/// The device's error.
pub(super) fn kernel_ceiling(backend: &WgpuBackend, at_least: Duration) -> Result<Option<f64>, DeviceError> {
    let most = if backend.info().is_software() { SOFTWARE_BYTES } else { BYTES };
    let limits = backend.device().limits();
    let bytes =
        limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(most) / GROUP_BYTES * GROUP_BYTES;
    if bytes == 0 {
        return Ok(None);
    }
    let copying = Copying::new(backend, bytes)?;
    copying.verify()?;
    // How many make a round. What is done lazily was paid for.
    let first = Instant::now();
    copying.round(PAIRS)?;
    let one = first.elapsed().div_f64(PAIRS as f64);
    let rounds = at_least.as_secs_f64() / 4.0 / one.as_secs_f64().max(1e-9);
    #[allow(clippy::cast_sign_loss)] // Times are not negative.
    let turns = (rounds as usize).clamp(1, MAX_A_ROUND);
    let (start, mut copied) = (Instant::now(), 0);
    while start.elapsed() < at_least || copied == 0 {
        copying.round(turns)?;
        copied += bytes * turns as u64;
    }
    let seconds = start.elapsed().as_secs_f64();
    clock::rate(2 * copied, seconds).map(Some).ok_or_else(|| DeviceError::Refused {
        message: format!("it says that {copied} bytes were copied in {seconds:e} seconds, which is no measurement"),
    })
}

impl<'a> Copying<'a> {
    /// For `bytes` bytes, a multiple of [`GROUP_BYTES`].
    pub(super) fn new(backend: &'a WgpuBackend, bytes: u64) -> Result<Self, DeviceError> {
        let device = backend.device();
        let pipeline = backend.scope(|| {
            let source = wgpu::ShaderSource::Wgsl(SHADER.into());
            let module =
                device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("gpufeed copy"), source });
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some("gpufeed copy"),
                layout: None,
                module: &module,
                entry_point: Some("copy"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            })
        })?;
        let pairs = (0..PAIRS).map(|_| pair(backend, &pipeline, bytes)).collect::<Result<_, _>>()?;
        Ok(Self { backend, pipeline, pairs, bytes })
    }

    /// Whether the last bytes arrive: a kernel that does not copy is fast.
    fn verify(&self) -> Result<(), DeviceError> {
        let bytes = [0xA7; GROUP_BYTES as usize];
        let (Pair { source, copied, .. }, at) = (&self.pairs[0], self.bytes - GROUP_BYTES);
        self.backend.scope(|| self.backend.queue().write_buffer(source, at, &bytes))?;
        self.round(PAIRS)?;
        if read_back(self.backend, copied, at, bytes.len())? == bytes {
            return Ok(());
        }
        Err(DeviceError::Refused { message: "its copying kernel does not copy".to_owned() })
    }

    /// Records that many copies.
    pub(super) fn encode(&self, encoder: &mut wgpu::CommandEncoder, turns: usize) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        let groups = u32::try_from(self.bytes / GROUP_BYTES).unwrap_or(u32::MAX);
        let rows = groups.div_ceil(MAX_GROUPS);
        for pair in self.pairs.iter().cycle().take(turns) {
            pass.set_bind_group(0, &pair.group, &[]);
            pass.dispatch_workgroups(groups.div_ceil(rows), rows, 1);
        }
    }

    /// Copies so many times and waits.
    fn round(&self, turns: usize) -> Result<(), DeviceError> {
        let work = self.backend.scope(|| {
            let mut encoder = self.backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            self.encode(&mut encoder, turns);
            self.backend.send([encoder.finish()], None, || ())
        })??;
        self.backend.wait_for(&work)
    }
}

fn pair(backend: &WgpuBackend, pipeline: &wgpu::ComputePipeline, size: u64) -> Result<Pair, DeviceError> {
    let device = backend.device();
    let desc = wgpu::BufferDescriptor {
        label: Some("gpufeed ceiling"),
        size,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    };
    let buffer = || backend.allocate("a buffer to measure kernels with", size, || device.create_buffer(&desc));
    let (source, copied) = (buffer()?, buffer()?);
    let group = backend.scope(|| {
        let entry =
            |binding, buffer| wgpu::BindGroupEntry { binding, resource: wgpu::Buffer::as_entire_binding(buffer) };
        let entries = [entry(0, &source), entry(1, &copied)];
        let layout = &pipeline.get_bind_group_layout(0);
        device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some("gpufeed copy"), layout, entries: &entries })
    })?;
    Ok(Pair { source, copied, group })
}
