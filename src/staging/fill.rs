//! One slot's memory on its way from free to ready.

#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::countdown::FillState;
use super::writer::SampleWriter;
use super::{Access, fence};
use crate::layout::BatchLayout;

/// A slot being filled. It counts as a writer itself until it is finished or dropped.
#[derive(Debug)]
pub struct Fill {
    slot: usize,
    base: NonNull<u8>,
    len: usize,
    access: Access,
    /// Samples that are in regions.
    samples: usize,
    /// How the slot is laid out, once a region was taken.
    layout: Option<BatchLayout>,
    state: Option<Arc<FillState>>,
}

// SAFETY: a Fill is a pointer to memory that only its regions may write, and `Fill::new`'s caller promised that the
// memory may be written from any thread.
unsafe impl Send for Fill {}

impl Fill {
    /// A fill of `len` bytes at `base`.
    ///
    /// # Safety
    /// The memory is valid for writes of `len` bytes from any thread, is what `access` says, and nothing else accesses it, from now
    /// until `state` is no longer open. `state` was claimed for this fill.
    pub(super) unsafe fn new(
        slot: usize,
        base: NonNull<u8>,
        len: usize,
        access: Access,
        state: Arc<FillState>,
    ) -> Self {
        Self { slot, base, len, access, samples: 0, layout: None, state: Some(state) }
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

    /// Cuts the next `samples` samples out of the slot, with all of their fields on the device.
    ///
    /// # Panics
    /// If fewer are left of the batch, if the batch does not fit the slot, or if an earlier region was of another layout.
    pub fn take_region(&mut self, layout: &BatchLayout, samples: usize) -> Region {
        let (bytes, left) = (layout.slot_bytes(), layout.batch_size() - self.samples);
        assert!(bytes <= self.len, "a batch of {bytes} bytes does not fit a slot of {}", self.len);
        assert!(samples <= left, "a region of {samples} samples does not fit the {left} left of the batch");
        let own = self.layout.get_or_insert_with(|| layout.clone());
        // Regions of different layouts could overlap.
        assert!(own.is(layout), "a slot has one layout");
        let run = self.samples..self.samples + samples;
        self.samples = run.end;
        let state = self.state.clone();
        if let Some(state) = &state {
            state.enter();
        }
        Region { base: self.base, layout: own.clone(), run, access: self.access, state }
    }

    /// Forgets what was filled but the first `kept` samples, so that the rest can be cut again. False if a region is still being
    /// written.
    pub fn restart(&mut self, kept: usize) -> bool {
        let restarted = self.state.as_ref().is_some_and(|state| state.restart());
        if restarted {
            self.samples = self.samples.min(kept);
        }
        restarted
    }

    /// Ends the fill if all its regions have ended.
    #[must_use]
    pub fn finish(mut self) -> Finish {
        let Some(state) = self.state.take() else { return Finish::Open(self) };
        match state.finish() {
            Some(true) => {
                let bytes = self.layout.as_ref().map_or(0, |layout| layout.payload(self.samples));
                Finish::Filled(Filled { slot: self.slot, samples: self.samples, bytes, state })
            }
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
    samples: usize,
    bytes: usize,
    pub(super) state: Arc<FillState>,
}

impl Filled {
    /// The slot's number within its lane.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Samples that its regions covered, from the first.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Bytes of those samples' first field.
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

/// One worker's part of a slot: a run of the batch's samples. Write-only.
#[derive(Debug)]
pub struct Region {
    /// Of the slot.
    base: NonNull<u8>,
    layout: BatchLayout,
    run: Range<usize>,
    access: Access,
    state: Option<Arc<FillState>>,
}

// SAFETY: the region is the only access to its samples' bytes (runs are disjoint, and the fields of different samples too), and
// `Fill::new`'s caller promised that they may be written from any thread.
unsafe impl Send for Region {}

impl Region {
    /// Its samples, by their positions in the batch.
    #[must_use]
    pub fn samples(&self) -> Range<usize> {
        self.run.clone()
    }

    /// The writer of the sample at this position in the batch. Its fields on the host go to `host`, which holds those of the whole batch
    /// as the layout says; where there are none, and no ragged ones, it may be empty.
    ///
    /// # Panics
    /// If the sample is not one of the region's.
    pub fn writer<'r>(&'r mut self, position: usize, host: &'r mut [u8]) -> SampleWriter<'r> {
        assert!(self.run.contains(&position), "sample {position} is not one of {:?}", self.run);
        // SAFETY: the slot holds the whole batch, as `take_region` checked, and this sample's bytes are this region's alone, which is
        // borrowed mutably for the writer's lifetime.
        unsafe { SampleWriter::new(&self.layout, self.base, self.access, host, position) }
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
        fence::stores();
        state.leave(complete)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.end(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Element, Field, SampleLayout};

    fn fill(memory: &mut [u8]) -> Fill {
        let base = NonNull::new(memory.as_mut_ptr()).expect("not null");
        let state = Arc::<FillState>::default();
        assert!(state.claim());
        // SAFETY: each test keeps the vector alive and untouched until its regions have ended.
        unsafe { Fill::new(7, base, memory.len(), Access::HOST, state) }
    }

    /// Samples of four bytes.
    fn words(batch_size: usize) -> BatchLayout {
        BatchLayout::new(SampleLayout::bytes(&[4]).expect("bytes"), batch_size).expect("a layout")
    }

    fn write(region: &mut Region, position: usize, byte: u8) {
        region.writer(position, &mut []).write(&[byte; 4]).expect("it fits");
    }

    #[test]
    fn a_slot_is_filled_when_its_last_region_is_committed() {
        let (mut memory, layout) = (vec![0; 16], words(4));
        let mut slot = fill(&mut memory);
        let (mut a, b) = (slot.take_region(&layout, 2), slot.take_region(&layout, 2));
        write(&mut a, 0, 1);
        write(&mut a, 1, 2);
        assert!(!a.commit());
        let Finish::Open(slot) = slot.finish() else { panic!("b is still open") };
        assert!(std::thread::spawn(move || b.commit()).join().expect("no panic"));
        assert!(matches!(slot.finish(), Finish::Filled(filled) if (filled.slot(), filled.samples()) == (7, 4)));
        assert_eq!(memory[..9], [1, 1, 1, 1, 2, 2, 2, 2, 0]);
    }

    #[test]
    fn a_region_holds_its_samples_of_every_field() {
        let mask = Field::array("mask", Element::U16, &[]).expect("a field");
        let sample = SampleLayout::bytes(&[3]).and_then(|sample| sample.with_label(Element::I64));
        let sample = sample.and_then(|sample| sample.with(mask)).expect("a sample");
        let layout = BatchLayout::new(sample, 2).expect("a layout");
        let (mut memory, mut host) = (vec![0; layout.slot_bytes()], vec![0; layout.host_bytes()]);
        let mut slot = fill(&mut memory);
        let regions = [slot.take_region(&layout, 1), slot.take_region(&layout, 1)];
        for (position, mut region) in regions.into_iter().enumerate().rev() {
            assert_eq!(region.samples(), position..position + 1);
            let mut writer = region.writer(position, &mut host);
            writer.write(&[position as u8 + 1; 3]).expect("it fits");
            writer.label(position as i64 - 1).expect("an i64");
            writer.field("mask").expect("there").value(0x0505 * (position as u16 + 1)).expect("a u16");
            assert_eq!(writer.finish(), Ok(()));
            region.commit();
        }
        assert!(matches!(slot.finish(), Finish::Filled(filled) if filled.samples() == 2));
        assert_eq!((&memory[..6], &memory[256..260]), (&[1, 1, 1, 2, 2, 2][..], &[5, 5, 10, 10][..]));
        assert_eq!(host, [(-1i64).to_ne_bytes(), 0i64.to_ne_bytes()].concat());
    }

    #[test]
    fn a_dropped_region_cancels_the_slot() {
        let (mut memory, layout) = (vec![0; 16], words(4));
        let mut slot = fill(&mut memory);
        let (a, b) = (slot.take_region(&layout, 2), slot.take_region(&layout, 2));
        drop(a);
        assert!(b.commit());
        assert!(matches!(slot.finish(), Finish::Cancelled(_)));
    }

    #[test]
    fn a_slot_can_be_filled_again_once_nobody_writes_it() {
        let (mut memory, layout) = (vec![0; 16], words(4));
        let mut slot = fill(&mut memory);
        let (a, b) = (slot.take_region(&layout, 2), slot.take_region(&layout, 2));
        b.abandon();
        assert!(!slot.restart(0), "a is still being written");
        a.commit();
        assert!(slot.restart(1));
        let mut again = slot.take_region(&layout, 3);
        (1..4).for_each(|position| write(&mut again, position, 3));
        again.commit();
        assert!(matches!(slot.finish(), Finish::Filled(filled) if filled.samples() == 4));
        assert_eq!(memory, [0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
    }

    #[test]
    #[should_panic(expected = "does not fit the 2 left")]
    fn regions_cannot_overlap_or_end_beyond_the_batch() {
        let (mut memory, layout) = (vec![0; 16], words(4));
        let mut slot = fill(&mut memory);
        let _a = slot.take_region(&layout, 2);
        let _b = slot.take_region(&layout, 3);
    }

    #[test]
    #[should_panic(expected = "does not fit a slot of 16")]
    fn a_batch_is_no_larger_than_its_slot() {
        let mut memory = vec![0; 16];
        let _a = fill(&mut memory).take_region(&words(5), 1);
    }

    #[test]
    #[should_panic(expected = "a slot has one layout")]
    fn regions_of_one_slot_have_one_layout() {
        let mut memory = vec![0; 16];
        let mut slot = fill(&mut memory);
        let _a = slot.take_region(&words(4), 1);
        let _b = slot.take_region(&words(4), 1);
    }

    #[test]
    #[should_panic(expected = "is not one of 0..2")]
    fn a_region_writes_its_own_samples_only() {
        let (mut memory, layout) = (vec![0; 16], words(4));
        let mut slot = fill(&mut memory);
        let mut a = slot.take_region(&layout, 2);
        write(&mut a, 2, 1);
    }
}
