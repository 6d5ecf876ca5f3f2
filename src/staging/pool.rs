//! The slots of a lane, and which stage each one is in.
//!
//! `Free -> Filling -> InFlight -> Free`, or `Broken` for good. A slot's memory is in one place only: in the free slot, in the
//! [`Loan`] of the one that is being filled, or with whoever sends the one in flight and gives it back through
//! [`SlotPool::free`]. Strategies that make memory for each batch have free slots without any.

use std::sync::Arc;

use super::countdown::FillState;
use super::fill::{Cancelled, Fill, Filled};
use super::loan::{Loan, SlotMemory};
use crate::error::DeviceError;

/// A lane's slots.
#[derive(Debug)]
pub(crate) struct SlotPool<M: SlotMemory> {
    slots: Vec<Slot<M>>,
}

#[derive(Debug)]
struct Slot<M: SlotMemory> {
    state: Arc<FillState>,
    stage: Stage<M>,
}

#[derive(Debug)]
enum Stage<M: SlotMemory> {
    /// Without memory where that is made for each batch, or kept elsewhere.
    Free(Option<M>),
    Filling(Loan<M>),
    /// The device reads it, or its memory is on its way there or back.
    InFlight,
    /// It could not be made usable again.
    #[allow(dead_code)] // Of wgpu's lanes only.
    Broken,
}

impl<M: SlotMemory> SlotPool<M> {
    /// One free slot for each item: its memory, or `None` where [`begin`](Self::begin) makes it.
    pub(crate) fn new(memories: impl IntoIterator<Item = Option<M>>) -> Self {
        let slot = |memory| Slot { state: Arc::default(), stage: Stage::Free(memory) };
        Self { slots: memories.into_iter().map(slot).collect() }
    }

    /// The number of slots, in whatever stage.
    #[allow(dead_code)] // Of lanes whose submissions may have no slot to read, which not every feature has.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Lends a free slot's memory to a fill, or what `make` makes for that slot where it has none. `None` if no slot is free.
    ///
    /// # Errors
    /// Those of `make`, and the slot stays free; [`DeviceError::Lost`] if every slot is broken, since none will come back.
    pub(crate) fn begin(
        &mut self,
        make: impl FnOnce(usize) -> Result<M, DeviceError>,
    ) -> Result<Option<Fill>, DeviceError> {
        let Some(number) = self.find_free()? else { return Ok(None) };
        let slot = &mut self.slots[number];
        let memory = match &mut slot.stage {
            Stage::Free(memory) => memory.take(),
            _ => None,
        };
        let memory = memory.map_or_else(|| make(number), Ok)?;
        let (loan, fill) = Loan::lend(number, memory, &slot.state);
        slot.stage = Stage::Filling(loan);
        Ok(Some(fill))
    }

    /// Takes a free slot for a submission that has nothing to fill. `None` if no slot is free.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] if every slot is broken.
    #[allow(dead_code)] // As above.
    pub(crate) fn claim(&mut self) -> Result<Option<usize>, DeviceError> {
        let free = self.find_free()?;
        if let Some(number) = free {
            self.slots[number].stage = Stage::InFlight;
        }
        Ok(free)
    }

    /// Takes the memory of a filled slot, which is in flight until it is [freed](Self::free).
    ///
    /// # Errors
    /// [`DeviceError::Refused`] for a slot that is not being filled.
    pub(crate) fn send(&mut self, filled: &Filled) -> Result<M, DeviceError> {
        let loan = self
            .end_loan(filled.slot())
            .ok_or_else(|| DeviceError::Refused { message: format!("slot {} was not being filled", filled.slot()) })?;
        Ok(loan.filled(filled))
    }

    /// Takes the memory of a cancelled slot, which is then to be [freed](Self::free). `None` for a slot that is not being filled.
    pub(crate) fn cancel(&mut self, cancelled: &Cancelled) -> Option<M> {
        self.end_loan(cancelled.slot()).map(|loan| loan.cancelled(cancelled))
    }

    /// Makes a slot free that was in flight, with its memory unless that is made for each batch or kept elsewhere.
    pub(crate) fn free(&mut self, slot: usize, memory: Option<M>) {
        debug_assert!(matches!(self.slots[slot].stage, Stage::InFlight), "slot {slot} is not in flight");
        self.slots[slot].stage = Stage::Free(memory);
    }

    /// Gives a slot up that was in flight and cannot be made usable again.
    #[allow(dead_code)] // As above.
    pub(crate) fn give_up(&mut self, slot: usize) {
        self.slots[slot].stage = Stage::Broken;
    }

    fn find_free(&self) -> Result<Option<usize>, DeviceError> {
        let free = self.slots.iter().position(|slot| matches!(slot.stage, Stage::Free(_)));
        let is_broken = |slot: &Slot<M>| matches!(slot.stage, Stage::Broken);
        if free.is_none() && !self.slots.is_empty() && self.slots.iter().all(is_broken) {
            return Err(DeviceError::Lost { reason: "no slot is left that can be used".to_owned() });
        }
        Ok(free)
    }

    fn end_loan(&mut self, slot: usize) -> Option<Loan<M>> {
        let stage = &mut self.slots.get_mut(slot)?.stage;
        match std::mem::replace(stage, Stage::InFlight) {
            Stage::Filling(loan) => Some(loan),
            other => {
                *stage = other;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Finish, HostMemory};
    use super::*;
    use crate::layout::{BatchLayout, SampleLayout};

    fn memory() -> HostMemory {
        HostMemory::new(16).expect("16 bytes")
    }

    fn never(_: usize) -> Result<HostMemory, DeviceError> {
        panic!("the slot has memory of its own")
    }

    fn fill(mut fill: Fill, byte: u8) -> Filled {
        let sample = SampleLayout::bytes(&[16]).expect("16 bytes");
        let mut region = fill.take_region(&BatchLayout::new(sample, 1).expect("a batch"), 1);
        region.writer(0, &mut []).write(&[byte; 16]).expect("it fits");
        region.commit();
        let Finish::Filled(filled) = fill.finish() else { panic!("the region is committed") };
        filled
    }

    #[test]
    fn a_slot_comes_back_only_when_it_is_freed() {
        let mut pool = SlotPool::new([Some(memory())]);
        let begun = pool.begin(never).expect("no error").expect("it is free");
        assert!(pool.begin(never).expect("no error").is_none(), "it is being filled");
        let filled = fill(begun, 7);
        let sent = pool.send(&filled).expect("it was being filled");
        assert_eq!(sent[..], [7; 16]);
        assert!(pool.begin(never).expect("no error").is_none(), "it is in flight");
        pool.free(0, Some(sent));
        assert!(pool.begin(never).expect("no error").is_some());
    }

    #[test]
    fn a_slot_without_memory_has_it_made_for_each_batch() {
        let mut pool = SlotPool::new([None, None]);
        let refused = DeviceError::Refused { message: "not now".to_owned() };
        assert_eq!(pool.begin(|_| Err(refused.clone())).expect_err("it cannot be made"), refused);
        for byte in [1, 2] {
            let begun = pool.begin(|_| Ok(memory())).expect("no error").expect("the failure has not cost the slot");
            let number = begun.slot();
            drop(pool.send(&fill(begun, byte)).expect("it was being filled"));
            pool.free(number, None);
        }
    }

    #[test]
    fn a_cancelled_slot_gives_its_memory_back() {
        let mut pool = SlotPool::new([Some(memory())]);
        let begun = pool.begin(never).expect("no error").expect("it is free");
        let cancelled = fill(begun, 3).cancel();
        let memory = pool.cancel(&cancelled).expect("it was being filled");
        pool.free(cancelled.slot(), Some(memory));
        assert!(pool.cancel(&cancelled).is_none(), "a free slot has nothing to cancel");
        assert!(pool.begin(never).expect("no error").is_some());
    }

    #[test]
    fn a_filled_slot_cannot_be_sent_twice() {
        let mut pool = SlotPool::new([Some(memory())]);
        let begun = pool.begin(never).expect("no error").expect("it is free");
        let filled = fill(begun, 3);
        let _sent = pool.send(&filled).expect("it was being filled");
        assert!(matches!(pool.send(&filled), Err(DeviceError::Refused { .. })));
    }

    #[test]
    fn a_claimed_slot_is_in_flight_without_having_been_filled() {
        let mut pool = SlotPool::<HostMemory>::new([None]);
        assert_eq!(pool.claim(), Ok(Some(0)));
        assert_eq!(pool.claim(), Ok(None));
        pool.free(0, None);
        assert_eq!(pool.claim(), Ok(Some(0)));
    }

    #[test]
    fn a_pool_of_broken_slots_is_an_error_since_none_comes_back() {
        let mut pool = SlotPool::<HostMemory>::new([None, None]);
        assert_eq!((pool.claim(), pool.claim(), pool.len()), (Ok(Some(0)), Ok(Some(1)), 2));
        pool.give_up(0);
        assert_eq!(pool.claim(), Ok(None), "the other one may still come back");
        pool.give_up(1);
        assert!(matches!(pool.claim(), Err(DeviceError::Lost { .. })));
        assert_eq!(SlotPool::<HostMemory>::new([]).claim(), Ok(None), "a strategy without slots has lost none");
    }
}
