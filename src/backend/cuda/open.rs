//! Making a lane: all of its memory, streams, events and kernels.

use std::sync::Arc;

use cudarc::driver::DriverError;

use super::backend::{device_buffers, device_bytes};
use super::device::CudaBackend;
use super::driver::{self, DeviceMemory, Event, RegisteredReader, Registration, Stream};
use super::health::is_sticky;
use super::kernel::Kernels;
use super::lane::{Buffer, CudaLane};
use super::locks::LockBudget;
use super::staging::Slots;
use super::timing::Timing;
use crate::backend::completions::Completions;
use crate::backend::{Footprint, LaneSpec, Strategy};
use crate::error::{DeviceError, OpenError};
use crate::memory::StableHostMemory;
use crate::preprocess::{OutputField, OutputLayout, PipelinePlan};
use crate::staging::SlotPool;

impl CudaLane {
    pub(super) fn new(backend: &CudaBackend, spec: &LaneSpec, footprint: Footprint) -> Result<Self, OpenError> {
        let tensors = OutputLayout::new(&spec.preprocess, &spec.layout)?;
        let (context, lost) = (backend.context(), backend.lost());
        let failed = |error| lost.error("making a lane", error);
        let tuning = backend.tuning();
        let upload = Stream::new(context).map_err(failed)?;
        let compute = Stream::with_priority(context, tuning.priority).map_err(failed)?;
        let count = if spec.strategy == Strategy::Registered { 0 } else { spec.slots };
        let mut memory_of_slots = Slots::new(context, lost, spec.strategy, spec.layout.slot_bytes(), count);
        let slots = SlotPool::new(memory_of_slots.make_all()?);
        let direct = reader(backend, spec, || vec![Arc::clone(&upload), Arc::clone(&compute)])?;
        let buffers = make_buffers(backend, spec)?;
        let in_flight = spec.slots + spec.outputs;
        let kernels = Kernels::new(backend.modules(), spec, &tensors, tuning.part_bytes).map_err(failed)?;
        let computes = kernels.computes() || spec.fingerprints;
        let timing = spec.timing.then(|| Timing::new(context, &compute, in_flight, computes));
        Ok(Self {
            slots,
            direct,
            allocations: buffers.len() as u64,
            buffers,
            completions: Completions::with_capacity(in_flight),
            abandoned: Vec::with_capacity(count),
            kernels,
            output_bytes: tensors.bytes(),
            beside: beside(spec, tensors.clone()),
            tensors,
            timing: timing.transpose().map_err(failed)?,
            upload,
            compute,
            memory_of_slots,
            uploaded: Event::new(context).map_err(failed)?,
            // One for the copy and one for the end of each.
            spare: Vec::with_capacity(2 * in_flight),
            next_buffer: 0,
            offsets: Vec::with_capacity(spec.layout.batch_size()),
            records: Vec::with_capacity(spec.layout.batch_size()),
            held: Footprint { outputs: 0, ..footprint },
            spec: spec.clone(),
            backend: backend.clone(),
        })
    }
}

/// What reads the source's own memory, for a strategy that does.
fn reader(
    backend: &CudaBackend,
    spec: &LaneSpec,
    streams: impl FnOnce() -> Vec<Arc<Stream>>,
) -> Result<Option<RegisteredReader>, DeviceError> {
    let (Strategy::Registered, Some(memory)) = (spec.strategy, &spec.memory) else { return Ok(None) };
    Ok(Some(RegisteredReader::new(register(backend, memory)?, streams(), spec.layout.batch_size())))
}

fn make_buffers(backend: &CudaBackend, spec: &LaneSpec) -> Result<Vec<Buffer>, DeviceError> {
    let (context, bytes) = (backend.context(), device_bytes(spec, backend.gather()));
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    let buffer = |_| Ok(Buffer { memory: DeviceMemory::new(context, size)?, read: Event::new(context)? });
    let buffers = (0..device_buffers(spec)).map(buffer).collect::<Result<_, DriverError>>();
    buffers.map_err(|error| backend.lost().allocation("a batch on the device", bytes, error))
}

/// Page-locks a source's memory, or says what stands in the way.
fn register(backend: &CudaBackend, memory: &Arc<dyn StableHostMemory>) -> Result<Registration, DeviceError> {
    let (budget, bytes) = (LockBudget::read(), memory.len() as u64);
    budget.allows(bytes)?;
    Registration::new(backend.context(), memory).map_err(|error| {
        if is_sticky(error) {
            return backend.lost().error("page-locking the source's memory", error);
        }
        let cause = format!(
            "the source's memory was refused ({}); `pinned-ring` needs no more than its slots",
            driver::explain(error)
        );
        budget.error(bytes, &cause)
    })
}

/// The tensors that are copied: the kernel of a pipeline writes its records itself.
fn beside(spec: &LaneSpec, tensors: OutputLayout) -> Vec<OutputField> {
    let geometry = spec.preprocess.plan(spec.layout.sample()).ok().flatten();
    let geometry = geometry.and_then(|_| PipelinePlan::record_field(spec.layout.sample()).ok());
    let copied = tensors.copied_beside(&spec.preprocess).into_iter();
    copied.filter(|field| Some(field.field) != geometry).collect()
}
