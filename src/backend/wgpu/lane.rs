//! A lane on a wgpu device: slots, device memory and kernels for one layout and one strategy.

use std::collections::VecDeque;
use std::sync::Arc;

use super::buffers::{device_buffer, device_bytes, output_bytes};
use super::device::WgpuBackend;
use super::direct::Direct;
use super::kernel::{Kernels, fingerprint_bytes};
use super::mapped::Memory;
use super::staging::{self, Staging};
use super::tensor::{WgpuTensor, Writing};
use super::timing::Timing;
use super::vulkan::KeepAlive;
use crate::backend::{
    Footprint, GpuSpan, GpuTimes, Input, Lane, LaneSpec, MemoryUse, Rejected, Strategy, SubmissionId, Submitted, Wait,
};
use crate::error::{DeviceError, OpenError};
use crate::preprocess::Preprocess;
use crate::staging::{Cancelled, Fill, FillState, Loan};

/// Slots, device memory and kernels for one layout and one strategy.
pub struct WgpuLane {
    pub(super) backend: WgpuBackend,
    pub(super) spec: LaneSpec,
    pub(super) kernels: Kernels,
    pub(super) staging: Box<dyn Staging>,
    /// Where bytes are copied to for the kernels; none where they are read in place or are the tensor themselves.
    device_bytes: Option<wgpu::Buffer>,
    /// Of a strategy without slots: the imports that it reads.
    pub(super) direct: Option<Direct>,
    pub(super) slots: Vec<Slot>,
    pub(super) in_flight: VecDeque<InFlight>,
    finished: Vec<SubmissionId>,
    pub(super) next_id: SubmissionId,
    done: (flume::Sender<SubmissionId>, flume::Receiver<SubmissionId>),
    pub(super) timing: Option<Timing>,
    held: Footprint,
    allocations: u64,
}

/// A slot, or where a submission without one is counted.
pub(super) struct Slot {
    state: Arc<FillState>,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    Free,
    Filling(Loan<Memory>),
    InFlight,
    /// Its submission failed and it could not be made usable again.
    Broken,
}

pub(super) struct InFlight {
    pub(super) id: SubmissionId,
    pub(super) slot: Option<usize>,
    pub(super) index: wgpu::SubmissionIndex,
}

/// Reports a submission as finished, whether wgpu runs the callback or drops it, and lets go of what it read.
pub(super) struct Done {
    id: SubmissionId,
    to: flume::Sender<SubmissionId>,
    _keep: Option<KeepAlive>,
    writing: Writing,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.writing.end();
        // Without a receiver the lane is gone.
        let _ = self.to.send(self.id);
    }
}

impl WgpuLane {
    pub(super) fn new(backend: &WgpuBackend, spec: &LaneSpec, footprint: Footprint) -> Result<Self, OpenError> {
        let direct = match spec.strategy {
            Strategy::Imported => Some(Direct::new(backend, spec)?),
            _ => None,
        };
        let gathers = direct.as_ref().is_some_and(|direct| direct.lists().is_some());
        let kernels = if gathers { Kernels::none() } else { Kernels::new(backend.device(), spec)? };
        let device_bytes = match device_bytes(spec, backend.tuning()) {
            0 => None,
            bytes => Some(device_buffer(backend, "gpufeed batch on the device", bytes)?),
        };
        let staging = staging::make(backend, spec, device_bytes.as_ref())?;
        let slots = direct.as_ref().map_or(spec.slots, Direct::submissions);
        let copies = direct.as_ref().map_or_else(|| staging.copies(), |_| !gathers);
        let timing = if spec.timing { Timing::new(backend, spec.slots + spec.outputs, copies)? } else { None };
        let allocations = direct.as_ref().map_or(spec.slots as u64, Direct::allocations);
        Ok(Self {
            backend: backend.clone(),
            kernels,
            staging,
            slots: (0..slots).map(|_| Slot { state: Arc::default(), stage: Stage::Free }).collect(),
            in_flight: VecDeque::with_capacity(spec.slots + spec.outputs),
            finished: Vec::with_capacity(spec.slots + spec.outputs),
            next_id: 0,
            done: flume::unbounded(),
            held: Footprint { outputs: 0, ..footprint },
            allocations: allocations + u64::from(device_bytes.is_some()),
            direct,
            timing,
            device_bytes,
            spec: spec.clone(),
        })
    }

    /// Where the strategy copies a batch to.
    pub(super) fn copies_to<'a>(&'a self, output: &'a WgpuTensor) -> &'a wgpu::Buffer {
        match (&self.spec.preprocess, &self.device_bytes) {
            (Preprocess::Normalize(_), Some(buffer)) => buffer,
            _ => output.buffer(),
        }
    }

    /// What a submission's end is reported by.
    pub(super) fn done(&self, id: SubmissionId, keep: Option<KeepAlive>, output: &WgpuTensor) -> Done {
        Done { id, to: self.done.0.clone(), _keep: keep, writing: output.writing().begin() }
    }

    /// Notes the submissions whose callbacks have run. Those of failed submissions are not in flight.
    fn collect(&mut self) {
        while let Ok(id) = self.done.1.try_recv() {
            if let Some(at) = self.in_flight.iter().position(|submission| submission.id == id)
                && let Some(InFlight { slot, .. }) = self.in_flight.remove(at)
            {
                if let Some(slot) = slot {
                    self.slots[slot].stage = Stage::Free;
                }
                self.finished.push(id);
            }
        }
    }

    fn wait(&mut self, wait: Wait) -> Result<(), DeviceError> {
        // Callbacks also run at the end of each submission. A wait looks by itself.
        self.collect();
        if self.in_flight.is_empty() {
            return Ok(());
        }
        let (done, all) = (&self.done.1, self.in_flight.len());
        let count = match wait {
            Wait::Poll => 0,
            Wait::One => usize::from(self.finished.is_empty()),
            Wait::AtMost(most) => all.saturating_sub(most),
            Wait::All => all,
        };
        match count.checked_sub(1).and_then(|last| self.in_flight.get(last)) {
            Some(last) => self.backend.wait_until(Some(&last.index), || done.len() >= count)?,
            None if wait == Wait::Poll => drop(self.backend.look()?),
            None => return Ok(()),
        }
        self.collect();
        Ok(())
    }

    /// The device is gone: what was in flight has ended, and its slots are not used again.
    fn give_up(&mut self) {
        self.finished.extend(self.in_flight.drain(..).map(|submission| submission.id));
    }
}

impl crate::backend::sealed::Sealed for WgpuLane {}

impl Lane for WgpuLane {
    type Tensor = WgpuTensor;

    fn output(&mut self) -> Result<WgpuTensor, DeviceError> {
        let spec = &self.spec;
        let sums = if spec.fingerprints { fingerprint_bytes(spec.layout.batch_size()) } else { 0 };
        let buffer = device_buffer(&self.backend, "gpufeed tensor", output_bytes(spec) - sums)?;
        let fingerprints = match sums {
            0 => None,
            bytes => Some(device_buffer(&self.backend, "gpufeed fingerprints", bytes)?),
        };
        let raw = matches!(spec.preprocess, Preprocess::Raw);
        let sources = match (self.staging.in_place(), &self.device_bytes) {
            // The bytes end up in the tensor, and the kernels find them there.
            _ if raw => std::slice::from_ref(&buffer),
            ([], Some(device_bytes)) => std::slice::from_ref(device_bytes),
            (slots, _) => slots,
        };
        let (device, sums_buffer) = (self.backend.device(), fingerprints.as_ref());
        let lists = self.direct.as_ref().and_then(Direct::lists);
        let (bindings, gather) = self.backend.scope(|| {
            let bind = |source| self.kernels.bind(device, source, &buffer, sums_buffer);
            let gather = lists.map(|lists| lists.kernels.bind_output(device, &buffer, sums_buffer));
            (sources.iter().map(bind).collect(), gather)
        })?;
        self.held.outputs += output_bytes(spec);
        self.allocations += 1 + u64::from(fingerprints.is_some());
        Ok(WgpuTensor::new(self.backend.clone(), buffer, fingerprints, bindings, gather))
    }

    fn begin(&mut self) -> Result<Option<Fill>, DeviceError> {
        // Slots that are free on submission bound nothing; wgpu's own staging would grow with the queue.
        if self.in_flight.len() >= self.spec.slots + self.spec.outputs {
            return Ok(None);
        }
        self.backend.lost_flag().get().map_or(Ok(()), Err)?;
        if self.direct.is_some() {
            return Ok(None);
        }
        let Some(number) = self.slots.iter().position(|slot| matches!(slot.stage, Stage::Free)) else {
            // With every slot broken none will ever come back.
            let broken = self.slots.iter().all(|slot| matches!(slot.stage, Stage::Broken));
            let message = || "no slot is left that can be used".to_owned();
            return if broken { Err(DeviceError::Lost { reason: message() }) } else { Ok(None) };
        };
        let memory = match self.staging.begin(number) {
            Ok(memory) => memory,
            Err(error) => return Err(self.backend.check().err().unwrap_or(error)),
        };
        let slot = &mut self.slots[number];
        let (loan, fill) = Loan::lend(number, memory, &slot.state);
        slot.stage = Stage::Filling(loan);
        Ok(Some(fill))
    }

    fn cancel(&mut self, cancelled: Cancelled) {
        let number = cancelled.slot();
        match std::mem::replace(&mut self.slots[number].stage, Stage::Free) {
            Stage::Filling(loan) => self.staging.cancel(number, loan.cancelled(&cancelled)),
            other => self.slots[number].stage = other,
        }
    }

    fn submit(
        &mut self,
        input: Input<'_>,
        samples: usize,
        output: WgpuTensor,
    ) -> Result<Submitted<WgpuTensor>, Rejected<WgpuTensor>> {
        let submitted = match input {
            Input::Staged(filled) => self.try_submit(&filled, samples, &output),
            Input::Direct(offsets) => self.submit_direct(offsets, samples, &output),
        };
        match submitted {
            Ok(id) => Ok(Submitted { id, tensor: output }),
            Err(error) => Err(Rejected { error, tensor: output }),
        }
    }

    fn reap(&mut self, wait: Wait, finished: &mut Vec<SubmissionId>) -> Result<(), DeviceError> {
        let result = self.wait(wait);
        if let Err(DeviceError::Lost { .. }) = result {
            self.give_up();
        }
        finished.append(&mut self.finished);
        if let Some(timing) = &mut self.timing {
            timing.collect(&self.backend);
        }
        result
    }

    fn in_flight(&self) -> usize {
        self.in_flight.len() + self.finished.len()
    }

    fn gpu_times(&mut self) -> Option<GpuTimes> {
        let timing = self.timing.as_mut()?;
        timing.collect(&self.backend);
        timing.times()
    }

    fn gpu_spans(&mut self, spans: &mut Vec<GpuSpan>) {
        if let Some(timing) = &mut self.timing {
            timing.collect(&self.backend);
            timing.spans(spans);
        }
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse { held: self.held, allocations: self.allocations + self.staging.allocations() }
    }
}

impl Drop for WgpuLane {
    fn drop(&mut self) {
        // Frees what the device has read; after a loss there is nothing to wait for.
        let _ = self.wait(Wait::All);
    }
}
