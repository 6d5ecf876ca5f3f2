//! Who may still write into one slot: the countdown that its hand-over rests on. `tests/model.rs` checks this very file under
//! every order of its steps, so it takes its atomics from a sibling.

use super::sync::{AtomicBool, AtomicUsize, Ordering};

/// Who may still write into one slot: its [`Fill`](super::Fill) and the [`Region`](super::Region)s cut from it. Used again for every
/// fill of the slot.
#[derive(Debug, Default)]
pub struct FillState {
    open: AtomicUsize,
    dropped: AtomicBool,
}

impl FillState {
    /// Whether somebody may still write into the slot. While this is true its memory must not be freed or reused.
    #[must_use]
    pub fn is_open(&self) -> bool {
        // Acquire: the last writer's stores happen before whatever becomes of the memory.
        self.open.load(Ordering::Acquire) != 0
    }

    /// Makes the fill itself the first writer. False if somebody still writes.
    pub(super) fn claim(&self) -> bool {
        // Acquire: the earlier fill's writers happen before this one's.
        let claimed = self.open.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if claimed {
            self.dropped.store(false, Ordering::Relaxed);
        }
        claimed
    }

    /// Adds a writer. Only the holder of the fill may, which counts as one itself.
    pub(super) fn enter(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends one writer, and cancels the slot if it did not write all. True if only the fill itself is left.
    pub(super) fn leave(&self, complete: bool) -> bool {
        if !complete {
            self.dropped.store(true, Ordering::Relaxed);
        }
        // Release: this writer's stores happen before whoever sees the count.
        self.open.fetch_sub(1, Ordering::Release) == 2
    }

    /// Forgets that a region was not complete, if the fill is the only writer left. False if regions are open.
    pub(super) fn restart(&self) -> bool {
        // Acquire: the regions' stores happen before those that replace them.
        let alone = self.open.load(Ordering::Acquire) == 1;
        if alone {
            self.dropped.store(false, Ordering::Relaxed);
        }
        alone
    }

    /// Ends the fill if it is the only writer left: whether every region was complete. `None` if regions are open.
    pub(super) fn finish(&self) -> Option<bool> {
        // Acquire: what the regions' owners wrote happens before the slot is sent.
        if self.open.load(Ordering::Acquire) != 1 {
            return None;
        }
        let complete = !self.dropped.load(Ordering::Relaxed);
        // Release: it also happens before whoever finds the slot closed. The flag is not looked at after that: it is the next fill's.
        self.open.store(0, Ordering::Release);
        Some(complete)
    }
}
