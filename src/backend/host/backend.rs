//! The host as a device that can be opened.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::faults::FaultState;
use super::{Faults, HostConsumer, HostLane, HostTensor, host_info};
use crate::backend::{AdapterInfo, Backend, Footprint, LaneSpec, Strategy};
use crate::error::{DeviceError, OpenError, Unsupported};
use crate::preprocess::OutputLayout;
use crate::staging::HostMemory;

/// Larger than caches are.
const CEILING_BYTES: usize = 64 << 20;

/// Host memory as a device.
#[derive(Clone, Debug)]
pub struct HostBackend {
    info: Arc<AdapterInfo>,
    faults: Arc<FaultState>,
}

impl Default for HostBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl HostBackend {
    /// A host device without faults.
    #[must_use]
    pub fn new() -> Self {
        Self::with_faults(Faults::default())
    }

    /// A host device that delays, fails or is lost as told.
    #[must_use]
    pub fn with_faults(faults: Faults) -> Self {
        Self { info: Arc::new(host_info()), faults: Arc::new(FaultState::new(faults)) }
    }

    /// Loses the device now: from here on everything on it fails with [`DeviceError::Lost`].
    pub fn lose(&self, reason: &str) {
        self.faults.lose(reason);
    }
}

impl crate::backend::sealed::Sealed for HostBackend {}

impl Backend for HostBackend {
    type Lane = HostLane;
    type Tensor = HostTensor;
    type Consumer = HostConsumer;

    fn info(&self) -> &AdapterInfo {
        &self.info
    }

    fn default_strategy(&self) -> Strategy {
        Strategy::Memcpy
    }

    fn supports(&self, strategy: Strategy) -> Result<(), Unsupported> {
        match strategy {
            Strategy::Memcpy => Ok(()),
            _ => Err(Unsupported { strategy, reason: "host memory has the strategy `memcpy` only".into() }),
        }
    }

    fn footprint(&self, spec: &LaneSpec) -> Result<Footprint, OpenError> {
        self.supports(spec.strategy)?;
        spec.check_step(self.info.api)?;
        spec.preprocess.validate(spec.layout.sample())?;
        let output = OutputLayout::new(&spec.preprocess, &spec.layout)?.bytes();
        Ok(Footprint {
            staging: (spec.layout.slot_bytes() as u64).saturating_mul(spec.slots as u64),
            device: 0,
            outputs: (output as u64).saturating_mul(spec.outputs as u64),
            host: 0,
        })
    }

    fn open_lane(&self, spec: &LaneSpec) -> Result<HostLane, OpenError> {
        self.footprint(spec)?;
        self.faults.check()?;
        HostLane::new(spec, &self.faults)
    }

    fn copy_ceiling(&self, bytes: usize, at_least: Duration) -> Result<f64, DeviceError> {
        let (from, mut to) = (HostMemory::new(bytes)?, vec![0; bytes.max(1)]);
        let (start, mut copied) = (Instant::now(), 0u64);
        while start.elapsed() < at_least || copied == 0 {
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
            copied += bytes as u64;
        }
        Ok(copied as f64 / start.elapsed().as_secs_f64())
    }

    fn kernel_ceiling(&self, at_least: Duration) -> Result<Option<f64>, DeviceError> {
        // The kernel runs on the CPU, and what it reads and writes is what a copy does.
        self.copy_ceiling(CEILING_BYTES, at_least).map(|rate| Some(2.0 * rate))
    }

    fn consumer(&self) -> Result<HostConsumer, DeviceError> {
        self.faults.check().map(|()| HostConsumer::default())
    }
}
