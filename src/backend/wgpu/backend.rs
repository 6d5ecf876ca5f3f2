//! The backend contract on a wgpu device.

use std::time::{Duration, Instant};

use super::bandwidth;
use super::buffers::output_bytes;
use super::clock;
use super::consumer::WgpuConsumer;
use super::default_strategy::{default_strategy, for_pushes};
use super::device::WgpuBackend;
use super::direct::{Partition, gather_of, record_bytes};
use super::kernel::check_limits;
use super::lane::WgpuLane;
use super::native::{KeepAlive, Place};
use super::tensor::WgpuTensor;
use super::transfer;
use super::tuning::{CopyQueue, Gather, KernelQueue, Tuning};
use crate::backend::{AdapterInfo, Backend, Footprint, LaneSpec, Strategy, check_direct};
use crate::error::{DeviceError, OpenError, Unsupported};

impl crate::backend::sealed::Sealed for WgpuBackend {}

impl Backend for WgpuBackend {
    type Lane = WgpuLane;
    type Tensor = WgpuTensor;
    type Consumer = WgpuConsumer;

    fn info(&self) -> &AdapterInfo {
        self.info()
    }

    fn default_strategy(&self) -> Strategy {
        default_strategy(self.api(), self.info().device_type, |strategy| self.supports(strategy).is_ok())
    }

    fn default_push_strategy(&self) -> Strategy {
        for_pushes(self.default_strategy())
    }

    fn supports(&self, strategy: Strategy) -> Result<(), Unsupported> {
        let known = self.info().strategies.iter().find(|support| support.strategy == strategy);
        match known.map(|support| support.missing.clone()) {
            Some(None) => Ok(()),
            Some(Some(reason)) => Err(Unsupported { strategy, reason }),
            None => Err(Unsupported { strategy, reason: "it is not one of the wgpu backend's".to_owned() }),
        }
    }

    /// wgpu has one queue; what copies on another is an API's below it.
    fn copies_beside(&self, strategy: Strategy) -> bool {
        self.supports(strategy).is_ok() && transfer::family_of(self, strategy).is_ok_and(|family| family.is_some())
    }

    fn footprint(&self, spec: &LaneSpec) -> Result<Footprint, OpenError> {
        self.supports(spec.strategy)?;
        let backend = &self.for_step(spec)?;
        check_direct(spec)?;
        check_limits(&self.device().limits(), spec)?;
        let device = transfer::device_bytes(backend, spec)?;
        let (staging, device) = match spec.strategy {
            Strategy::Imported => {
                // The lists of samples are all that it writes, where a kernel gathers; or the geometries of a pipeline.
                let lists = Partition::new(self, spec)?.list_bytes(spec);
                let kernel = gather_of(spec, self.tuning()) == Gather::Kernel;
                let gathers = kernel && transfer::family(self, spec)?.is_none();
                (0, if gathers { lists } else { device.saturating_add(record_bytes(spec)) })
            }
            _ => ((spec.layout.slot_bytes() as u64).saturating_mul(spec.slots as u64), device),
        };
        Ok(Footprint { staging, device, outputs: output_bytes(spec).saturating_mul(spec.outputs as u64), host: 0 })
    }

    fn for_single_batches(&self) -> Self {
        self.with_tuning(Tuning { copies: CopyQueue::Main, kernels: KernelQueue::Main, ..self.tuning() })
    }

    fn open_lane(&self, spec: &LaneSpec) -> Result<WgpuLane, OpenError> {
        let footprint = self.footprint(spec)?;
        self.check()?;
        // On a device that is lost meanwhile, whatever else is wrong follows from that.
        WgpuLane::new(&self.for_step(spec)?, spec, footprint)
            .map_err(|error| self.check().err().map_or(error, OpenError::from))
    }

    fn copy_ceiling(&self, bytes: usize, at_least: Duration) -> Result<f64, DeviceError> {
        let size = (bytes as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT).max(wgpu::COPY_BUFFER_ALIGNMENT);
        let (from, keep) = self.ceiling_source(size)?;
        let to = self.ceiling_buffer(size, wgpu::BufferUsages::COPY_DST, false)?;
        // The first round pays for what is done lazily.
        self.copy_round(&from, keep.as_ref(), &to, 1)?;
        let (start, mut copied) = (Instant::now(), 0);
        while start.elapsed() < at_least || copied == 0 {
            self.copy_round(&from, keep.as_ref(), &to, Self::COPIES_A_ROUND)?;
            copied += size * Self::COPIES_A_ROUND;
        }
        let seconds = start.elapsed().as_secs_f64();
        clock::rate(copied, seconds).ok_or_else(|| DeviceError::Refused {
            message: format!("it says that {copied} bytes were copied in {seconds:e} seconds, which is no measurement"),
        })
    }

    fn kernel_ceiling(&self, at_least: Duration) -> Result<Option<f64>, DeviceError> {
        bandwidth::kernel_ceiling(self, at_least)
    }

    fn consumer(&self) -> Result<WgpuConsumer, DeviceError> {
        self.check()?;
        WgpuConsumer::new(self)
    }
}

impl WgpuBackend {
    /// Enough for the round's own cost not to count.
    const COPIES_A_ROUND: u64 = 8;

    /// Page-locked memory of the host, where it can be had: wgpu's own staging may be video memory, and a copy from there does not
    /// cross the bus.
    fn ceiling_source(&self, size: u64) -> Result<(wgpu::Buffer, Option<KeepAlive>), DeviceError> {
        if self.supports(Strategy::SystemRing).is_ok() {
            let place = Place::System(self.tuning().host_cache);
            let usage = wgpu::BufferUsages::COPY_SRC;
            let (buffer, memory) = self.native()?.host_buffer(self, "gpufeed ceiling", size, usage, place)?;
            return Ok((buffer, Some(memory.keep())));
        }
        let buffer = self.ceiling_buffer(size, wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC, true)?;
        buffer.unmap();
        Ok((buffer, None))
    }

    fn ceiling_buffer(&self, size: u64, usage: wgpu::BufferUsages, mapped: bool) -> Result<wgpu::Buffer, DeviceError> {
        let desc = wgpu::BufferDescriptor { label: Some("gpufeed ceiling"), size, usage, mapped_at_creation: mapped };
        self.allocate("a buffer to measure copies with", size, || self.device().create_buffer(&desc))
    }

    /// Copies `from` to `to` so many times and waits.
    fn copy_round(
        &self,
        from: &wgpu::Buffer,
        keep: Option<&KeepAlive>,
        to: &wgpu::Buffer,
        times: u64,
    ) -> Result<(), DeviceError> {
        let work = self.scope(|| {
            let mut encoder = self.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            (0..times).for_each(|_| encoder.copy_buffer_to_buffer(from, 0, to, 0, to.size()));
            self.send([encoder.finish()], keep.cloned(), || ())
        })??;
        self.wait_for(&work)
    }
}
