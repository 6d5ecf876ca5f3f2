//! Memory lent to a fill, and ordinary host memory to lend.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

use super::Access;
use super::countdown::FillState;
use super::fill::{Cancelled, Fill, Filled};
use crate::memory::HostMemory;

/// Memory that a slot can be made of: host memory, or a mapped device buffer.
///
/// # Safety
/// From the first call of [`base`](Self::base) until the value is dropped, the memory is valid for writes of
/// [`byte_len`](Self::byte_len) bytes from any thread, moving the value included, and nothing but the caller accesses it. If
/// [`is_readable`](Self::is_readable) says so it is initialised and valid for reads too.
pub unsafe trait SlotMemory {
    /// The first byte.
    fn base(&mut self) -> NonNull<u8>;

    /// Bytes of memory.
    fn byte_len(&self) -> usize;

    /// Whether only a device reads it next, so that writing past the CPU's caches is right.
    fn is_streamed(&self) -> bool {
        false
    }

    /// Whether the memory may be read too, at the price of ordinary memory: it is initialised then, and cached.
    fn is_readable(&self) -> bool {
        false
    }
}

/// Memory that is lent to a [`Fill`]. It comes back when the fill has ended; dropped before that, it is leaked, since somebody
/// may still write it.
#[derive(Debug)]
pub struct Loan<M: SlotMemory> {
    memory: ManuallyDrop<M>,
    state: Arc<FillState>,
    slot: usize,
}

impl<M: SlotMemory> Loan<M> {
    /// Lends `memory` as slot number `slot`.
    ///
    /// # Panics
    /// If an earlier fill with the same `state` has not ended.
    pub fn lend(slot: usize, mut memory: M, state: &Arc<FillState>) -> (Self, Fill) {
        assert!(state.claim(), "slot {slot} is still being filled");
        let access = Access { streamed: memory.is_streamed(), readable: memory.is_readable() };
        let (base, len) = (memory.base(), memory.byte_len());
        let state = Arc::clone(state);
        // SAFETY: SlotMemory promises that the memory is valid and ours alone until `memory` is dropped, and `Loan` drops
        // or returns it only when `state` is no longer open. `state` was claimed above.
        let fill = unsafe { Fill::new(slot, base, len, access, Arc::clone(&state)) };
        (Self { memory: ManuallyDrop::new(memory), state, slot }, fill)
    }

    /// Takes the memory back from a filled slot.
    ///
    /// # Panics
    /// If `filled` is of another slot.
    #[must_use]
    pub fn filled(self, filled: &Filled) -> M {
        assert!(Arc::ptr_eq(&filled.state, &self.state), "slot {} is not the one that was filled", self.slot);
        self.take()
    }

    /// Takes the memory back from a cancelled slot.
    ///
    /// # Panics
    /// If `cancelled` is of another slot.
    #[must_use]
    pub fn cancelled(self, cancelled: &Cancelled) -> M {
        assert!(Arc::ptr_eq(&cancelled.state, &self.state), "slot {} is not the one that was cancelled", self.slot);
        self.take()
    }

    fn take(self) -> M {
        // A token of an earlier fill of the same slot proves nothing about this one.
        assert!(!self.state.is_open(), "slot {} is still being filled", self.slot);
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never used or dropped again, so the Arc is read once.
        drop(unsafe { std::ptr::read(&raw const this.state) });
        // SAFETY: `this` is never used or dropped again. The fill has ended: the state was
        // claimed when it was lent and is not open any more, so nobody writes the memory.
        unsafe { ManuallyDrop::take(&mut this.memory) }
    }
}

impl<M: SlotMemory> Drop for Loan<M> {
    fn drop(&mut self) {
        if self.state.is_open() {
            log::error!(
                "slot {} is leaked ({} bytes): a worker is still writing it",
                self.slot,
                self.memory.byte_len()
            );
        } else {
            // SAFETY: the memory is dropped once, here, and nobody writes it any more.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

// SAFETY: the allocation is owned, stays where it is when the value moves, and lives until drop.
unsafe impl SlotMemory for HostMemory {
    fn base(&mut self) -> NonNull<u8> {
        self.address()
    }

    fn byte_len(&self) -> usize {
        self.len()
    }

    fn is_readable(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Finish;
    use super::*;
    use crate::layout::{BatchLayout, SampleLayout};

    /// Batches of two samples of 8 bytes.
    fn pairs() -> BatchLayout {
        BatchLayout::new(SampleLayout::bytes(&[8]).expect("bytes"), 2).expect("a layout")
    }

    #[test]
    fn lent_memory_comes_back_with_what_was_written() {
        let state = Arc::default();
        let (loan, mut fill) = Loan::lend(3, HostMemory::new(16).expect("16 bytes"), &state);
        let mut region = fill.take_region(&pairs(), 2);
        region.writer(1, &mut []).write(&[7; 8]).expect("fits");
        assert!(region.commit());
        let Finish::Filled(filled) = fill.finish() else { panic!("all regions are committed") };
        let memory = loan.filled(&filled);
        assert_eq!(memory[..], [[0; 8], [7; 8]].concat());
        assert_eq!(filled.samples(), 2);
    }

    #[test]
    #[cfg_attr(miri, ignore = "leaks on purpose")]
    fn memory_dropped_while_it_is_written_is_leaked_not_freed() {
        let state = Arc::default();
        let (loan, mut fill) = Loan::lend(0, HostMemory::new(16).expect("16 bytes"), &state);
        let mut region = fill.take_region(&pairs(), 2);
        drop(fill);
        drop(loan);
        region.writer(0, &mut []).write(&[1; 8]).expect("the memory is still there");
        assert!(state.is_open());
    }

    #[test]
    #[should_panic(expected = "still being filled")]
    fn a_slot_is_not_lent_twice() {
        let state = Arc::default();
        let (_loan, _fill) = Loan::lend(0, HostMemory::new(16).expect("16 bytes"), &state);
        let _again = Loan::lend(0, HostMemory::new(16).expect("16 bytes"), &state);
    }
}
