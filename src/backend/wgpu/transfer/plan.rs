//! Whether a lane's copies go beside wgpu's queue, and what that takes.

use super::super::apis;
use super::super::buffers;
use super::super::device::WgpuBackend;
use super::super::kernel_queue::kernel_queue;
use super::super::tuning::{CopyQueue, SlotReads, Tuning};
#[cfg(test)]
use super::super::vulkan;
use super::super::vulkan::{Families, FamilyQueues, NoSecondQueue};
use crate::backend::{LaneSpec, Strategy};
use crate::error::Unsupported;
use crate::preprocess::Preprocess;

/// The family whose queues take a lane's copies; `None` for wgpu's.
///
/// # Errors
/// [`Unsupported`] where one was asked for that the device does not have.
pub(in super::super) fn family(backend: &WgpuBackend, spec: &LaneSpec) -> Result<Option<FamilyQueues>, Unsupported> {
    family_of(backend, spec.strategy)
}

/// The same of a strategy, whatever else the lane is made for.
///
/// # Errors
/// As [`family`].
pub(in super::super) fn family_of(
    backend: &WgpuBackend,
    strategy: Strategy,
) -> Result<Option<FamilyQueues>, Unsupported> {
    if !matches!(strategy, Strategy::SystemRing | Strategy::Imported) {
        return Ok(None);
    }
    let unsupported = |reason: String| Unsupported { strategy, reason };
    choose(backend.tuning(), strategy, apis::device_families(backend.device())).map_err(unsupported)
}

fn choose(
    tuning: Tuning,
    strategy: Strategy,
    families: Result<Families, NoSecondQueue>,
) -> Result<Option<FamilyQueues>, String> {
    let lacks = |what: &str| format!("the device has no {what}");
    let found = match tuning.copies {
        // Of many regions copy engines move each at a cost of its own, and kernels that gather are on wgpu's queue.
        CopyQueue::Automatic if strategy == Strategy::SystemRing && tuning.slots == SlotReads::Copy => {
            return Ok(families.ok().and_then(|families| families.transfer));
        }
        CopyQueue::Automatic | CopyQueue::Main => return Ok(None),
        CopyQueue::Beside => return Ok(families.ok().and_then(|families| families.transfer.or(families.compute))),
        CopyQueue::Transfer => families.map(|families| families.transfer.ok_or_else(|| lacks("transfer queue"))),
        CopyQueue::Compute => families.map(|families| families.compute.ok_or_else(|| lacks("second compute queue"))),
        #[cfg(test)]
        CopyQueue::WgpusOwn => return Ok(Some(FamilyQueues { family: vulkan::WGPU_FAMILY, queues: 1 })),
    };
    found.map_err(|reason| reason.to_string()).flatten().map(Some)
}

/// Arrival buffers of a lane, and so submissions that can be in flight. Where nothing is filled they count as slots all the same: each
/// is as large as a batch, and a loader has no more in flight.
pub(in super::super) fn arrivals(spec: &LaneSpec) -> usize {
    spec.slots.max(1)
}

/// Whether the bytes arrive in the tensor itself: nothing is computed, and the tensor is known to be idle.
///
/// # Errors
/// [`Unsupported`] where a queue for kernels was asked for that the device does not have.
pub(in super::super) fn lands_in_tensor(backend: &WgpuBackend, spec: &LaneSpec) -> Result<bool, Unsupported> {
    Ok(kernel_queue(backend, spec)?.is_some() && matches!(spec.preprocess, Preprocess::Raw))
}

/// Bytes of device memory between staging and tensors.
///
/// # Errors
/// As [`family`].
pub(in super::super) fn device_bytes(backend: &WgpuBackend, spec: &LaneSpec) -> Result<u64, Unsupported> {
    let lands = lands_in_tensor(backend, spec)?;
    Ok(match family(backend, spec)? {
        Some(_) if lands => 0,
        Some(_) => (spec.layout.slot_bytes() as u64).saturating_mul(arrivals(spec) as u64),
        None => buffers::device_bytes(spec, backend.tuning()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSFER: FamilyQueues = FamilyQueues { family: 1, queues: 2 };
    const COMPUTE: FamilyQueues = FamilyQueues { family: 2, queues: 2 };
    const BOTH: Families = Families { transfer: Some(TRANSFER), compute: Some(COMPUTE), kernels: None };

    fn chosen(copies: CopyQueue, families: Result<Families, NoSecondQueue>) -> Result<Option<FamilyQueues>, String> {
        choose(Tuning { copies, ..Tuning::default() }, Strategy::SystemRing, families)
    }

    #[test]
    fn a_ring_is_copied_by_the_copy_engines_where_nobody_chooses_and_there_are_any() {
        let usual = Tuning::default();
        assert_eq!(choose(usual, Strategy::SystemRing, Ok(BOTH)), Ok(Some(TRANSFER)));
        assert_eq!(choose(usual, Strategy::Imported, Ok(BOTH)), Ok(None), "its samples lie apart");
        let in_place = Tuning { slots: SlotReads::InPlace, ..usual };
        assert_eq!(choose(in_place, Strategy::SystemRing, Ok(BOTH)), Ok(None), "there is no copy");
        let none = Families { transfer: None, ..BOTH };
        assert_eq!(choose(usual, Strategy::SystemRing, Ok(none)), Ok(None));
        assert_eq!(choose(usual, Strategy::SystemRing, Err(NoSecondQueue::OneFamily)), Ok(None));
    }

    #[test]
    fn copies_engines_are_preferred_and_without_any_queue_all_is_as_before() {
        assert_eq!(chosen(CopyQueue::Beside, Ok(BOTH)), Ok(Some(TRANSFER)));
        assert_eq!(chosen(CopyQueue::Beside, Ok(Families { transfer: None, ..BOTH })), Ok(Some(COMPUTE)));
        assert_eq!(chosen(CopyQueue::Beside, Err(NoSecondQueue::NotOpened)), Ok(None));
        assert_eq!(chosen(CopyQueue::Main, Ok(BOTH)), Ok(None));
    }

    #[test]
    fn a_queue_that_was_asked_for_by_name_is_there_or_refused_with_the_reason() {
        let copies = Families { compute: None, ..BOTH };
        assert_eq!(chosen(CopyQueue::Transfer, Ok(copies)), Ok(Some(TRANSFER)));
        let reason = chosen(CopyQueue::Compute, Ok(copies)).expect_err("there is none");
        assert_eq!(reason, "the device has no second compute queue");
        let reason = chosen(CopyQueue::Transfer, Err(NoSecondQueue::OneFamily)).expect_err("there is none");
        assert_eq!(reason, "the driver has one family of queues");
    }
}
