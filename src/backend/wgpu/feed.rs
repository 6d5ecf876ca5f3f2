//! The backend contract on a wgpu device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::device::WgpuBackend;
use super::kernel::check_limits;
use super::lane::{WgpuLane, device_bytes, output_bytes};
use super::tensor::WgpuTensor;
use crate::backend::{AdapterInfo, Backend, Footprint, LaneSpec, Strategy};
use crate::error::{DeviceError, OpenError, Unsupported};

impl Backend for WgpuBackend {
    type Lane = WgpuLane;
    type Tensor = WgpuTensor;

    fn info(&self) -> &AdapterInfo {
        self.info()
    }

    fn default_strategy(&self) -> Strategy {
        Strategy::MappedRing
    }

    fn supports(&self, strategy: Strategy) -> Result<(), Unsupported> {
        let known = self.info().strategies.iter().find(|support| support.strategy == strategy);
        match known.map(|support| support.missing.clone()) {
            Some(None) => Ok(()),
            Some(Some(reason)) => Err(Unsupported { strategy, reason }),
            None => Err(Unsupported { strategy, reason: "it is not one of the wgpu backend's".to_owned() }),
        }
    }

    fn footprint(&self, spec: &LaneSpec) -> Result<Footprint, OpenError> {
        self.supports(spec.strategy)?;
        check_limits(&self.device().limits(), spec)?;
        Ok(Footprint {
            staging: (spec.layout.slot_bytes() as u64).saturating_mul(spec.slots as u64),
            device: device_bytes(spec),
            outputs: output_bytes(spec).saturating_mul(spec.outputs as u64),
        })
    }

    fn open_lane(&self, spec: &LaneSpec) -> Result<WgpuLane, OpenError> {
        let footprint = self.footprint(spec)?;
        self.check()?;
        WgpuLane::new(self, spec, footprint)
    }

    fn copy_ceiling(&self, bytes: usize, at_least: Duration) -> Result<f64, DeviceError> {
        let size = (bytes as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT).max(wgpu::COPY_BUFFER_ALIGNMENT);
        let buffer = |usage, mapped_at_creation| {
            let desc = wgpu::BufferDescriptor { label: Some("gpufeed ceiling"), size, usage, mapped_at_creation };
            self.allocate("a buffer to measure copies with", size, || self.device().create_buffer(&desc))
        };
        let from = buffer(wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC, true)?;
        from.unmap();
        let to = buffer(wgpu::BufferUsages::COPY_DST, false)?;
        // The first round pays for what is done lazily.
        self.copy_round(&from, &to, size, 1)?;
        let (start, mut copied) = (Instant::now(), 0);
        while start.elapsed() < at_least || copied == 0 {
            self.copy_round(&from, &to, size, Self::COPIES_A_ROUND)?;
            copied += size * Self::COPIES_A_ROUND;
        }
        Ok(copied as f64 / start.elapsed().as_secs_f64())
    }
}

impl WgpuBackend {
    /// Enough for the round's own cost not to count.
    const COPIES_A_ROUND: u64 = 8;

    /// Copies `from` to `to` so many times and waits.
    fn copy_round(&self, from: &wgpu::Buffer, to: &wgpu::Buffer, size: u64, times: u64) -> Result<(), DeviceError> {
        let done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&done);
        let index = self.scope(|| {
            let mut encoder = self.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            (0..times).for_each(|_| encoder.copy_buffer_to_buffer(from, 0, to, 0, size));
            encoder.on_submitted_work_done(move || flag.store(true, Ordering::Release));
            self.queue().submit([encoder.finish()])
        })?;
        self.wait_until(Some(&index), || done.load(Ordering::Acquire))
    }
}
