//! An opened device for tests.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A device whose errors panic.
pub(super) struct Gpu {
    pub name: String,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
}

impl Gpu {
    /// Every adapter of these backends that runs compute shaders, with the adapter's limits after `lower`. `WGPU_BACKEND` narrows them.
    pub fn all(backends: wgpu::Backends, lower: impl Fn(&mut wgpu::Limits)) -> Vec<Self> {
        let backends = backends & wgpu::Backends::from_env().unwrap_or(backends);
        let descriptor = wgpu::InstanceDescriptor {
            backends,
            flags: wgpu::InstanceFlags::from_env_or_default(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        };
        let adapters = pollster::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(backends));
        adapters.iter().filter_map(|adapter| Self::open(adapter, &lower)).collect()
    }

    fn open(adapter: &wgpu::Adapter, lower: impl Fn(&mut wgpu::Limits)) -> Option<Self> {
        let info = adapter.get_info();
        let name = format!("{} ({:?})", info.name, info.backend);
        if !adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS) {
            eprintln!("skipped: {name} runs no compute shaders");
            return None;
        }
        let mut required_limits = adapter.limits();
        lower(&mut required_limits);
        let descriptor = wgpu::DeviceDescriptor { required_limits, ..wgpu::DeviceDescriptor::default() };
        match pollster::block_on(adapter.request_device(&descriptor)) {
            Ok((device, queue)) => Some(Self { name, device, queue }),
            Err(error) => {
                eprintln!("skipped: {name}: {error}");
                None
            }
        }
    }

    /// A buffer with this content.
    pub fn buffer(&self, bytes: &[u8]) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let size = bytes.len() as u64;
        let buffer =
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        self.queue.write_buffer(&buffer, 0, bytes);
        buffer
    }

    /// A buffer's content, once the device is done. Polls, since waiting is broken on some GL drivers.
    pub fn read(&self, buffer: &wgpu::Buffer) -> Vec<u8> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let size = buffer.size();
        let copy =
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &copy, 0, size);
        self.queue.submit([encoder.finish()]);
        let mapped = Arc::new(OnceLock::new());
        let result = Arc::clone(&mapped);
        copy.map_async(wgpu::MapMode::Read, .., move |mapping| {
            let _ = result.set(mapping);
        });
        let start = Instant::now();
        while mapped.get().is_none() {
            self.device.poll(wgpu::PollType::Poll).expect("the device answers");
            assert!(start.elapsed() < Duration::from_secs(300), "the device does not finish");
            std::thread::sleep(Duration::from_micros(100));
        }
        mapped.get().expect("set above").as_ref().expect("the buffer maps");
        copy.get_mapped_range(..).expect("mapped above").to_vec()
    }
}
