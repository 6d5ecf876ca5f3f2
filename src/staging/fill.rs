//! One slot's memory on its way from free to ready.

#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::countdown::FillState;
use super::writer::SampleWriter;

/// A slot being filled. It counts as a writer itself until it is finished or dropped.
#[derive(Debug)]
pub struct Fill {
    slot: usize,
    base: NonNull<u8>,
    len: usize,
    streamed: bool,
    cut: usize,
    state: Option<Arc<FillState>>,
}

// SAFETY: a Fill is a pointer to memory that only its regions may write, and `Fill::new`'s caller promised that the
// memory may be written from any thread.
unsafe impl Send for Fill {}

impl Fill {
    /// A fill of `len` bytes at `base`.
    ///
    /// # Safety
    /// The memory is valid for writes of `len` bytes from any thread and nothing else accesses it, from now until `state`
    /// is no longer open. `state` was claimed for this fill.
    pub(super) unsafe fn new(
        slot: usize,
        base: NonNull<u8>,
        len: usize,
        streamed: bool,
        state: Arc<FillState>,
    ) -> Self {
        Self { slot, base, len, streamed, cut: 0, state: Some(state) }
    }

    /// The slot's number within its lane.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Bytes of memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no memory at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Cuts the next `bytes` bytes out of the slot: regions follow each other without a gap.
    ///
    /// # Panics
    /// If fewer bytes are left.
    pub fn take_region(&mut self, bytes: usize) -> Region {
        let left = self.len - self.cut;
        assert!(bytes <= left, "a region of {bytes} bytes does not fit the {left} left of {}", self.len);
        // SAFETY: self.cut <= self.len, so the result is within or one past the slot's memory.
        let base = unsafe { self.base.add(self.cut) };
        self.cut += bytes;
        let state = self.state.clone();
        if let Some(state) = &state {
            state.enter();
        }
        Region { base, len: bytes, streamed: self.streamed, state }
    }

    /// Forgets what was filled but the first `kept` bytes, so that the rest can be cut again. False if a region is still being
    /// written.
    pub fn restart(&mut self, kept: usize) -> bool {
        let restarted = self.state.as_ref().is_some_and(|state| state.restart());
        if restarted {
            self.cut = self.cut.min(kept);
        }
        restarted
    }

    /// Ends the fill if all its regions have ended.
    #[must_use]
    pub fn finish(mut self) -> Finish {
        let Some(state) = self.state.take() else { return Finish::Open(self) };
        match state.finish() {
            Some(true) => Finish::Filled(Filled { slot: self.slot, bytes: self.cut, state }),
            Some(false) => Finish::Cancelled(Cancelled { slot: self.slot, state }),
            None => {
                self.state = Some(state);
                Finish::Open(self)
            }
        }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            state.leave(true);
        }
    }
}

/// What became of a [`Fill`].
#[derive(Debug)]
pub enum Finish {
    /// Regions are still being written.
    Open(Fill),
    /// Every region was committed.
    Filled(Filled),
    /// A region was dropped uncommitted: the slot must go back unsent.
    Cancelled(Cancelled),
}

/// A slot whose regions are all committed: the only thing that can be submitted.
#[derive(Debug)]
pub struct Filled {
    slot: usize,
    bytes: usize,
    pub(super) state: Arc<FillState>,
}

impl Filled {
    /// The slot's number within its lane.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Bytes that its regions covered, from the start.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives up sending it.
    #[must_use]
    pub fn cancel(self) -> Cancelled {
        Cancelled { slot: self.slot, state: self.state }
    }
}

/// A slot that nobody writes any more and that must not be sent.
#[derive(Debug)]
pub struct Cancelled {
    slot: usize,
    pub(super) state: Arc<FillState>,
}

impl Cancelled {
    /// The slot's number within its lane.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot
    }
}

/// One worker's part of a slot. Write-only.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    streamed: bool,
    state: Option<Arc<FillState>>,
}

// SAFETY: the region is the only access to its bytes (cuts are disjoint), and `Fill::new`'s caller promised that they
// may be written from any thread.
unsafe impl Send for Region {}

impl Region {
    /// Bytes in this region.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the region has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A writer over a part of the region, for one sample.
    ///
    /// # Panics
    /// If `bytes` ends beyond the region.
    pub fn writer(&mut self, bytes: Range<usize>) -> SampleWriter<'_> {
        assert!(bytes.start <= bytes.end && bytes.end <= self.len, "{bytes:?} is beyond {} bytes", self.len);
        // SAFETY: bytes.start <= self.len, so the result is within or one past the region.
        let base = unsafe { self.base.add(bytes.start) };
        // SAFETY: the range is within the region, which is borrowed mutably for the writer's lifetime.
        unsafe { SampleWriter::new(base, bytes.end - bytes.start, self.streamed) }
    }

    /// Ends the region: its bytes are complete. True if it was the slot's last open region.
    pub fn commit(mut self) -> bool {
        self.end(true)
    }

    /// Ends the region unfinished, which cancels the slot. True if it was the slot's last open region.
    pub fn abandon(mut self) -> bool {
        self.end(false)
    }

    fn end(&mut self, complete: bool) -> bool {
        let Some(state) = self.state.take() else { return false };
        store_fence();
        state.leave(complete)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// Makes this thread's stores visible to the device: write-combined stores are not ordered by atomics on x86.
fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of every x86-64 processor.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(memory: &mut [u8]) -> Fill {
        let base = NonNull::new(memory.as_mut_ptr()).expect("not null");
        let state = Arc::<FillState>::default();
        assert!(state.claim());
        // SAFETY: each test keeps the vector alive and untouched until its regions have ended.
        unsafe { Fill::new(7, base, memory.len(), false, state) }
    }

    #[test]
    fn a_slot_is_filled_when_its_last_region_is_committed() {
        let mut memory = vec![0; 16];
        let mut slot = fill(&mut memory);
        let (mut a, b) = (slot.take_region(8), slot.take_region(8));
        a.writer(0..8).write(&[1; 8]).expect("it fits");
        assert!(!a.commit());
        let Finish::Open(slot) = slot.finish() else { panic!("b is still open") };
        assert!(std::thread::spawn(move || b.commit()).join().expect("no panic"));
        assert!(matches!(slot.finish(), Finish::Filled(filled) if filled.slot() == 7));
        assert_eq!(memory[..9], [1, 1, 1, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_dropped_region_cancels_the_slot() {
        let mut memory = vec![0; 16];
        let mut slot = fill(&mut memory);
        let (a, b) = (slot.take_region(8), slot.take_region(8));
        drop(a);
        assert!(b.commit());
        assert!(matches!(slot.finish(), Finish::Cancelled(_)));
    }

    #[test]
    fn a_slot_can_be_filled_again_once_nobody_writes_it() {
        let mut memory = vec![0; 16];
        let mut slot = fill(&mut memory);
        let (a, b) = (slot.take_region(8), slot.take_region(8));
        b.abandon();
        assert!(!slot.restart(0), "a is still being written");
        a.commit();
        assert!(slot.restart(4));
        let mut again = slot.take_region(12);
        again.writer(0..12).write(&[3; 12]).expect("it fits");
        again.commit();
        assert!(matches!(slot.finish(), Finish::Filled(filled) if filled.bytes() == 16));
        assert_eq!(memory, [0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn regions_cannot_overlap_or_end_beyond_the_slot() {
        let mut memory = vec![0; 16];
        let mut slot = fill(&mut memory);
        let _a = slot.take_region(8);
        let _b = slot.take_region(9);
    }
}
