//! A lane on a wgpu device: slots, device memory and kernels for one layout and one strategy.

use std::convert::Infallible;
use std::time::Duration;

use super::beside::Beside;
use super::buffers::{device_buffer, device_bytes};
use super::device::WgpuBackend;
use super::direct::Direct;
use super::external::Slotless;
use super::kernel::Kernels;
use super::mapped::Memory;
use super::staging::{self, Staging};
use super::tensor::WgpuTensor;
use super::timing::Timing;
use super::transfer::{self, Transfers};
use super::tuning::{Gather, SlotReads, Tuning};
use super::work::Work;
use crate::backend::completions::{Completions, DeviceProgress};
use crate::backend::{
    Footprint, GpuSpan, GpuTimes, Input, Lane, LaneSpec, MemoryUse, Rejected, Strategy, SubmissionId, Submitted, Wait,
};
use crate::error::{DeviceError, OpenError};
use crate::preprocess::{OutputField, OutputLayout};
use crate::staging::{Cancelled, Fill, SlotPool};

/// How long one wait for a transfer is at most.
const ARRIVAL_WAIT: Duration = Duration::from_millis(20);

/// Slots, device memory and kernels for one layout and one strategy.
pub struct WgpuLane {
    pub(super) backend: WgpuBackend,
    pub(super) spec: LaneSpec,
    pub(super) kernels: Kernels,
    pub(super) tensors: OutputLayout,
    /// What is copied to the tensors beside the kernels.
    pub(super) copied_fields: Vec<OutputField>,
    pub(super) staging: Box<dyn Staging>,
    /// Where bytes are copied to for the kernels; none where they are read in place or are the tensor themselves.
    pub(super) device_bytes: Option<wgpu::Buffer>,
    /// Of a lane whose copies go beside wgpu's queue.
    pub(super) transfers: Option<Transfers>,
    /// Of a lane whose kernels run beside wgpu's queue. Its `backend` is not the application's then.
    pub(super) beside: Option<Beside>,
    /// Of a strategy without slots: the imports that it reads.
    pub(super) direct: Option<Direct>,
    /// Of a strategy without slots: where submissions are counted.
    pub(super) slots: SlotPool<Memory>,
    pub(super) completions: Completions<usize, Work>,
    pub(super) timing: Option<Timing>,
    /// What frames without a slot take.
    pub(super) slotless: Slotless,
    held: Footprint,
    allocations: u64,
    /// Tensors made so far.
    outputs: usize,
}

/// Frees the slots of work that has ended. One command buffer copies and computes, so both end together.
struct Freed<'a>(&'a mut SlotPool<Memory>);

impl DeviceProgress<usize, Work> for Freed<'_> {
    type Error = Infallible;

    fn has_copied(&mut self, _: &usize, work: &Work) -> Result<bool, Infallible> {
        Ok(work.has_ended())
    }

    fn copied(&mut self, slot: usize, _: &mut Work) {
        // What it is made of is with its strategy.
        self.0.free(slot, None);
    }

    fn has_finished(&mut self, _: SubmissionId, work: &Work) -> Result<bool, Infallible> {
        Ok(work.has_ended())
    }

    fn finished(&mut self, _: SubmissionId, _: Work) {}
}

impl WgpuLane {
    #[expect(clippy::too_many_lines, reason = "one field after the other")]
    pub(super) fn new(backend: &WgpuBackend, spec: &LaneSpec, footprint: Footprint) -> Result<Self, OpenError> {
        let second = backend.beside(spec)?;
        let beside = second.as_ref().map(|_| Beside::new(backend, spec.slots + spec.outputs));
        let backend = second.as_ref().unwrap_or(backend);
        let transfers = Transfers::open(backend, spec)?;
        let tensors = OutputLayout::new(&spec.preprocess, &spec.layout)?;
        // Whatever arrives is read where it arrived.
        let arriving = Tuning { gather: Gather::Copy, slots: SlotReads::Copy, ..backend.tuning() };
        let backend = &if transfers.is_some() { backend.with_tuning(arriving) } else { backend.clone() };
        let direct = match spec.strategy {
            Strategy::Imported => Some(Direct::new(backend, spec)?),
            _ => None,
        };
        let gathers = direct.as_ref().is_some_and(|direct| direct.lists().is_some());
        let kernels = if gathers { Kernels::none() } else { Kernels::new(backend.device(), spec)? };
        let device_bytes = match device_bytes(spec, backend.tuning()) {
            0 => None,
            _ if transfers.is_some() => None,
            bytes => Some(device_buffer(backend, "gpufeed batch on the device", bytes)?),
        };
        let staging = staging::make(backend, spec, device_bytes.as_ref())?;
        let slots = match (&direct, &transfers) {
            (Some(direct), None) => direct.submissions(),
            (Some(_), Some(_)) => transfer::arrivals(spec),
            (None, _) => spec.slots,
        };
        let copies = transfers.is_none() && direct.as_ref().map_or_else(|| staging.copies(), |_| !gathers);
        let (submissions, computes) = (spec.slots + spec.outputs, spec.preprocess.has_kernels());
        let timing = if spec.timing { Timing::new(backend, submissions, copies, computes)? } else { None };
        let arrivals = transfers.as_ref().map_or(0, |transfers| transfers.buffers().count() as u64);
        let allocations = arrivals + direct.as_ref().map_or(spec.slots as u64, Direct::allocations);
        Ok(Self {
            backend: backend.clone(),
            kernels,
            copied_fields: tensors.clone().copied_beside(&spec.preprocess),
            tensors,
            staging,
            slots: SlotPool::new((0..slots).map(|_| None)),
            completions: Completions::with_capacity(spec.slots + spec.outputs),
            outputs: 0,
            held: Footprint { outputs: 0, ..footprint },
            allocations: allocations + u64::from(device_bytes.is_some()),
            transfers,
            beside,
            direct,
            timing,
            slotless: Slotless::default(),
            device_bytes,
            spec: spec.clone(),
        })
    }

    /// Device memory of so many bytes was made beside.
    pub(super) fn note_device_bytes(&mut self, bytes: u64) {
        self.held.device += bytes;
        self.allocations += 1;
    }

    /// A tensor of so many bytes was made: its number.
    pub(super) fn note_output(&mut self, bytes: u64, allocations: u64) -> usize {
        self.held.outputs += bytes;
        self.allocations += allocations;
        self.outputs += 1;
        self.outputs - 1
    }

    /// Takes back what has ended, oldest first: its slot is free, and it is to be reported.
    fn advance(&mut self) {
        let Ok(()) = self.completions.advance(&mut Freed(&mut self.slots));
    }

    fn wait(&mut self, wait: Wait) -> Result<(), DeviceError> {
        // Callbacks also run at the end of each submission. A wait looks by itself.
        if let Some(beside) = &self.beside {
            // Runs what waits for the application's work, so that tensors are known to be idle.
            beside.user().look()?;
        }
        self.advance();
        self.send_arrived()?;
        while self.awaits_arrival(wait) {
            self.await_oldest(ARRIVAL_WAIT)?;
            self.send_arrived()?;
        }
        let awaited = || self.completions.awaited(wait);
        match awaited().next_back() {
            // Another thread may be running the callbacks of an older one.
            Some(last) => self.backend.wait_until(last.ticket(), || awaited().all(Work::has_ended))?,
            None if wait == Wait::Poll && self.completions.outstanding() > 0 => drop(self.backend.look()?),
            None => {}
        }
        self.advance();
        self.beside.as_mut().map_or(Ok(()), |beside| beside.show_arrived(&self.backend))
    }

    /// The device is gone: what was in flight has ended, and its slots are not used again.
    fn give_up(&mut self) {
        if let Some(transfers) = &mut self.transfers {
            transfers.give_up();
        }
        if let Some(beside) = &mut self.beside {
            beside.give_up();
        }
        let slots = &mut self.slots;
        self.completions.abandon(|slot, _| slot.into_iter().for_each(|slot| slots.give_up(slot)));
    }
}

impl crate::backend::sealed::Sealed for WgpuLane {}

impl Lane for WgpuLane {
    type Tensor = WgpuTensor;

    fn output(&mut self) -> Result<WgpuTensor, DeviceError> {
        self.make_output()
    }

    fn begin(&mut self) -> Result<Option<Fill>, DeviceError> {
        // Slots that are free on submission bound nothing; wgpu's own staging would grow with the queue.
        if self.completions.outstanding() >= self.spec.slots + self.spec.outputs {
            return Ok(None);
        }
        self.backend.lost_flag().get().map_or(Ok(()), Err)?;
        if self.direct.is_some() {
            return Ok(None);
        }
        let staging = &mut self.staging;
        let begun = self.slots.begin(|slot| staging.begin(slot));
        begun.map_err(|error| self.backend.check().err().unwrap_or(error))
    }

    fn cancel(&mut self, cancelled: Cancelled) {
        if let Some(memory) = self.slots.cancel(&cancelled) {
            self.staging.cancel(cancelled.slot(), memory);
            self.slots.free(cancelled.slot(), None);
        }
    }

    fn submit(
        &mut self,
        input: Input<'_>,
        samples: usize,
        output: WgpuTensor,
    ) -> Result<Submitted<WgpuTensor>, Rejected<WgpuTensor>> {
        let submitted = match input {
            Input::Staged(filled) if self.transfers.is_some() => self.transfer_slot(&filled, samples, &output),
            Input::Staged(filled) => self.submit_staged(&filled, samples, &output),
            Input::Direct { offsets, records } => self.submit_direct(offsets, records, samples, &output),
        };
        match submitted {
            Ok(id) => {
                if let Some(beside) = &mut self.beside {
                    beside.sent(id, &output);
                }
                Ok(Submitted { id, tensor: output })
            }
            Err(error) => Err(Rejected { error, tensor: output }),
        }
    }

    fn reap(&mut self, wait: Wait, finished: &mut Vec<SubmissionId>) -> Result<(), DeviceError> {
        let result = self.wait(wait);
        if let Err(DeviceError::Lost { .. }) = result {
            self.give_up();
        }
        self.completions.report(finished);
        if let Some(timing) = &mut self.timing {
            timing.collect(&self.backend);
        }
        result
    }

    fn has_arrived(&mut self, id: SubmissionId) -> Result<bool, DeviceError> {
        match (&mut self.beside, &mut self.transfers) {
            (Some(beside), _) => beside.has_arrived(id),
            (None, Some(transfers)) => transfers.has_arrived(id),
            (None, None) => Ok(true),
        }
    }

    fn await_arrival(&mut self, at_most: Duration) {
        let waited = match &self.beside {
            Some(beside) => beside.wait(&self.backend, at_most),
            None => self.await_oldest(at_most),
        };
        if let Err(error) = waited {
            // The next `reap` meets it too.
            log::debug!("waiting for a transfer: {error}");
        }
    }

    fn in_flight(&self) -> usize {
        self.completions.outstanding()
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
