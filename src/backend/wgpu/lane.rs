//! A lane on a wgpu device: slots, device memory and kernels for one layout and one strategy.

use std::collections::VecDeque;
use std::sync::Arc;

use super::device::WgpuBackend;
use super::kernel::{Kernels, fingerprint_bytes};
use super::mapped::Memory;
use super::staging::{self, Staging};
use super::tensor::WgpuTensor;
use crate::backend::{Feed, Footprint, Lane, LaneSpec, MemoryUse, Rejected, SubmissionId, Submitted, Wait};
use crate::error::{DeviceError, OpenError};
use crate::preprocess::Preprocess;
use crate::staging::{Cancelled, Fill, FillState, Filled, Lent};

/// Slots, device memory and kernels for one layout and one strategy.
pub struct WgpuLane {
    backend: WgpuBackend,
    spec: LaneSpec,
    kernels: Kernels,
    staging: Box<dyn Staging>,
    /// Where bytes are copied to for the kernels; none where they are read in place or are the tensor themselves.
    device_bytes: Option<wgpu::Buffer>,
    slots: Vec<Slot>,
    in_flight: VecDeque<InFlight>,
    finished: Vec<SubmissionId>,
    next_id: SubmissionId,
    done: (flume::Sender<SubmissionId>, flume::Receiver<SubmissionId>),
    held: Footprint,
    allocations: u64,
}

struct Slot {
    state: Arc<FillState>,
    stage: Stage,
}

enum Stage {
    Free,
    Filling(Lent<Memory>),
    InFlight,
    /// Its submission failed and it could not be made usable again.
    Broken,
}

struct InFlight {
    id: SubmissionId,
    slot: Option<usize>,
    index: wgpu::SubmissionIndex,
}

/// Reports a submission as finished, whether wgpu runs the callback or drops it.
struct Done(SubmissionId, flume::Sender<SubmissionId>);

impl Drop for Done {
    fn drop(&mut self) {
        // Without a receiver the lane is gone.
        let _ = self.1.send(self.0);
    }
}

impl WgpuLane {
    pub(super) fn new(backend: &WgpuBackend, spec: &LaneSpec, footprint: Footprint) -> Result<Self, OpenError> {
        let kernels = Kernels::new(backend.device(), spec)?;
        let device_bytes = match device_bytes(spec) {
            0 => None,
            bytes => Some(device_buffer(backend, "gpufeed batch on the device", bytes)?),
        };
        let staging = staging::make(backend, spec, device_bytes.as_ref())?;
        Ok(Self {
            backend: backend.clone(),
            kernels,
            staging,
            slots: (0..spec.slots).map(|_| Slot { state: Arc::default(), stage: Stage::Free }).collect(),
            in_flight: VecDeque::with_capacity(spec.slots + spec.outputs),
            finished: Vec::with_capacity(spec.slots + spec.outputs),
            next_id: 0,
            done: flume::unbounded(),
            held: Footprint { outputs: 0, ..footprint },
            allocations: spec.slots as u64 + u64::from(device_bytes.is_some()),
            device_bytes,
            spec: spec.clone(),
        })
    }

    /// Where the strategy copies a batch to.
    fn copies_to<'a>(&'a self, output: &'a WgpuTensor) -> &'a wgpu::Buffer {
        match (&self.spec.preprocess, &self.device_bytes) {
            (Preprocess::Normalize(_), Some(buffer)) => buffer,
            _ => output.buffer(),
        }
    }

    /// Takes the memory of a filled slot, if it holds all that is to be sent.
    fn take(&mut self, filled: &Filled, samples: usize) -> Result<Memory, DeviceError> {
        let slot = filled.slot();
        let stage = std::mem::replace(&mut self.slots[slot].stage, Stage::Free);
        let Stage::Filling(lent) = stage else {
            self.slots[slot].stage = stage;
            return Err(DeviceError::Refused { message: format!("slot {slot} was not being filled") });
        };
        let memory = lent.filled(filled);
        let needed = self.spec.layout.payload(samples);
        if samples == 0 || samples > self.spec.layout.batch_size() || filled.bytes() < needed {
            self.staging.cancel(slot, memory);
            let message = format!("{} bytes are filled and {samples} samples need {needed}", filled.bytes());
            return Err(DeviceError::Refused { message });
        }
        Ok(memory)
    }

    fn try_submit(
        &mut self,
        filled: &Filled,
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<SubmissionId, DeviceError> {
        let slot = filled.slot();
        let memory = self.take(filled, samples)?;
        let (id, backend) = (self.next_id, self.backend.clone());
        match backend.scope(|| self.record(id, slot, memory, samples, output)) {
            Ok(index) => {
                self.next_id += 1;
                *output.submission() = Some(index.clone());
                let frees = self.staging.frees_on_submit();
                self.slots[slot].stage = if frees { Stage::Free } else { Stage::InFlight };
                self.in_flight.push_back(InFlight { id, slot: (!frees).then_some(slot), index });
                Ok(id)
            }
            Err(error) => {
                // A number that was used must not be reported for the next submission.
                self.next_id += 1;
                self.slots[slot].stage = self.recover(slot, &error);
                Err(error)
            }
        }
    }

    /// Records copy and kernels and submits them.
    fn record(
        &mut self,
        id: SubmissionId,
        slot: usize,
        memory: Memory,
        samples: usize,
        output: &WgpuTensor,
    ) -> wgpu::SubmissionIndex {
        let desc = wgpu::CommandEncoderDescriptor { label: Some("gpufeed batch") };
        let mut encoder = self.backend.device().create_command_encoder(&desc);
        let to = self.copies_to(output).clone();
        let bytes = self.spec.layout.copy_bytes(samples) as u64;
        self.staging.record(slot, memory, &mut encoder, &to, bytes);
        if let Some(bindings) = output.bindings(slot) {
            self.kernels.encode(&mut encoder, bindings, samples);
        }
        let done = Done(id, self.done.0.clone());
        encoder.on_submitted_work_done(move || drop(done));
        self.backend.queue().submit([encoder.finish()])
    }

    fn recover(&mut self, slot: usize, error: &DeviceError) -> Stage {
        if matches!(error, DeviceError::Lost { .. }) {
            return Stage::Broken;
        }
        match self.staging.recover(slot) {
            Ok(()) => Stage::Free,
            Err(error) => {
                log::error!("slot {slot} is lost: its submission failed, and it cannot be used again: {error}");
                Stage::Broken
            }
        }
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
        if self.in_flight.is_empty() {
            return Ok(());
        }
        self.backend.poll()?;
        self.collect();
        let done = &self.done.1;
        match (wait, self.in_flight.front()) {
            (Wait::One, Some(oldest)) if self.finished.is_empty() => {
                self.backend.wait_until(Some(&oldest.index), || !done.is_empty())?;
            }
            (Wait::All, Some(_)) => {
                let all = self.in_flight.len();
                self.backend.wait_until(None, || done.len() >= all)?;
            }
            _ => return Ok(()),
        }
        self.collect();
        Ok(())
    }

    /// The device is gone: what was in flight has ended, and its slots are not used again.
    fn give_up(&mut self) {
        self.finished.extend(self.in_flight.drain(..).map(|submission| submission.id));
    }
}

/// Bytes of the buffer between staging and kernel.
pub(super) fn device_bytes(spec: &LaneSpec) -> u64 {
    use crate::backend::Strategy;
    let normalizes = matches!(spec.preprocess, Preprocess::Normalize(_));
    match spec.strategy {
        Strategy::DirectMap => 0,
        // Its destination is settled before the tensor is.
        Strategy::WriteBufferWith => spec.layout.slot_bytes() as u64,
        _ if normalizes => spec.layout.slot_bytes() as u64,
        _ => 0,
    }
}

/// Bytes of one output: the tensor, and the fingerprints.
pub(super) fn output_bytes(spec: &LaneSpec) -> u64 {
    let tensor = spec.preprocess.tensor(&spec.layout, spec.layout.batch_size()).buffer_bytes();
    let sums = if spec.fingerprints { fingerprint_bytes(spec.layout.batch_size()) } else { 0 };
    tensor.map_or(u64::MAX, |bytes| (bytes as u64).saturating_add(sums))
}

fn device_buffer(backend: &WgpuBackend, label: &str, size: u64) -> Result<wgpu::Buffer, DeviceError> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let desc = wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
    backend.allocate(label, size, || backend.device().create_buffer(&desc))
}

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
        let bindings = self.backend.scope(|| {
            let bind = |source| self.kernels.bind(self.backend.device(), source, &buffer, fingerprints.as_ref());
            sources.iter().map(bind).collect()
        })?;
        self.held.outputs += output_bytes(spec);
        self.allocations += 1 + u64::from(fingerprints.is_some());
        Ok(WgpuTensor::new(self.backend.clone(), buffer, fingerprints, bindings))
    }

    fn begin(&mut self) -> Result<Option<Fill>, DeviceError> {
        let Some(number) = self.slots.iter().position(|slot| matches!(slot.stage, Stage::Free)) else {
            // With every slot broken none will ever come back.
            let broken = self.slots.iter().all(|slot| matches!(slot.stage, Stage::Broken));
            let message = || "no slot is left that can be used".to_owned();
            return if broken { Err(DeviceError::Lost { reason: message() }) } else { Ok(None) };
        };
        self.backend.lost_flag().get().map_or(Ok(()), Err)?;
        let memory = match self.staging.begin(number) {
            Ok(memory) => memory,
            Err(error) => return Err(self.backend.check().err().unwrap_or(error)),
        };
        let slot = &mut self.slots[number];
        let (lent, fill) = Lent::lend(number, memory, &slot.state);
        slot.stage = Stage::Filling(lent);
        Ok(Some(fill))
    }

    fn cancel(&mut self, cancelled: Cancelled) {
        let number = cancelled.slot();
        if let Stage::Filling(lent) = std::mem::replace(&mut self.slots[number].stage, Stage::Free) {
            self.staging.cancel(number, lent.cancelled(&cancelled));
        }
    }

    fn submit(
        &mut self,
        feed: Feed<'_>,
        samples: usize,
        output: WgpuTensor,
    ) -> Result<Submitted<WgpuTensor>, Rejected<WgpuTensor>> {
        let submitted = match feed {
            Feed::Staged(filled) => self.try_submit(&filled, samples, &output),
            Feed::Direct(_) => {
                let message = format!("strategy `{}` is fed through slots", self.spec.strategy);
                Err(DeviceError::Refused { message })
            }
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
        result
    }

    fn in_flight(&self) -> usize {
        self.in_flight.len() + self.finished.len()
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
