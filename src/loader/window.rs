//! Which batches are being filled, and which may be sent next: pure, without threads or memory.
//!
//! Batches are begun in order and become ready in any order; they are sent in order, or as they get ready.

use std::collections::VecDeque;

/// The batches between `begin` and `submit`.
#[derive(Debug)]
pub(super) struct Window<F> {
    batches: u64,
    next: u64,
    /// Whether a batch may leave before an older one.
    unordered: bool,
    entries: VecDeque<Entry<F>>,
}

#[derive(Debug)]
struct Entry<F> {
    number: u64,
    slot: Option<usize>,
    fill: F,
    ready: bool,
}

impl<F> Window<F> {
    /// An empty window.
    pub(super) fn new(slots: usize, unordered: bool) -> Self {
        Self { batches: 0, next: 0, unordered, entries: VecDeque::with_capacity(slots) }
    }

    /// Starts an epoch of `batches` batches at batch `first`. Nothing may be in the window.
    pub(super) fn restart(&mut self, first: u64, batches: u64) {
        debug_assert!(self.entries.is_empty());
        self.batches = batches;
        self.next = first.min(batches);
    }

    /// The number of the batch to begin next, if any is left.
    pub(super) fn to_begin(&self) -> Option<u64> {
        (self.next < self.batches).then_some(self.next)
    }

    /// The number of batches that leave in all: fewer than the epoch has once it was stopped.
    pub(super) fn end(&self) -> u64 {
        self.batches
    }

    /// No batch after this will be begun.
    pub(super) fn stop(&mut self) {
        self.batches = self.next;
    }

    /// Batch [`to_begin`](Self::to_begin) is being filled in `slot`; without a slot it is ready at once.
    pub(super) fn begun(&mut self, slot: Option<usize>, fill: F) {
        self.entries.push_back(Entry { number: self.next, slot, fill, ready: slot.is_none() });
        self.next += 1;
    }

    /// Batch [`to_begin`](Self::to_begin) passes without being filled.
    pub(super) fn pass(&mut self) {
        debug_assert!(self.entries.is_empty());
        self.next += 1;
    }

    /// The last region of `slot` has ended: its batch is ready.
    pub(super) fn ready(&mut self, slot: usize) -> Option<&mut F> {
        let entry = self.entries.iter_mut().find(|entry| entry.slot == Some(slot))?;
        entry.ready = true;
        Some(&mut entry.fill)
    }

    /// The batch in `slot` is filled once more.
    pub(super) fn unready(&mut self, slot: usize) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.slot == Some(slot)) {
            entry.ready = false;
        }
    }

    /// The number of the oldest batch that has not left.
    pub(super) fn front(&self) -> u64 {
        self.entries.front().map_or(self.next, |entry| entry.number)
    }

    /// Whether a batch can be taken out.
    pub(super) fn is_ready(&self) -> bool {
        self.ready_at().is_some()
    }

    /// Takes the batch out whose turn it is, if it is ready: its number and its fill.
    pub(super) fn take_ready(&mut self) -> Option<(u64, F)> {
        let entry = self.entries.remove(self.ready_at()?)?;
        Some((entry.number, entry.fill))
    }

    /// The place of the batch whose turn it is.
    fn ready_at(&self) -> Option<usize> {
        let candidates = if self.unordered { self.entries.len() } else { 1 };
        self.entries.iter().take(candidates).position(|entry| entry.ready)
    }

    /// Batches that are still being filled.
    pub(super) fn filling(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.ready).count()
    }

    /// Batches in the window.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no batch is in the window.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_leave_in_order_whatever_order_they_get_ready_in() {
        let mut window = Window::new(3, false);
        window.restart(0, 3);
        for slot in [5, 6, 7] {
            window.begun(Some(slot), slot * 10);
        }
        assert_eq!(window.to_begin(), None);
        window.ready(7);
        window.ready(6);
        assert_eq!((window.take_ready(), window.filling()), (None, 1));
        window.ready(5);
        assert_eq!(window.take_ready(), Some((0, 50)));
        assert_eq!(window.take_ready(), Some((1, 60)));
        assert_eq!((window.front(), window.take_ready()), (2, Some((2, 70))));
        assert!(window.is_empty());
    }

    #[test]
    fn unordered_batches_leave_as_they_get_ready() {
        let mut window = Window::new(3, true);
        window.restart(7, 10);
        for slot in [0, 1, 2] {
            window.begun(Some(slot), slot);
        }
        window.ready(2);
        assert_eq!((window.take_ready(), window.front(), window.is_ready()), (Some((9, 2)), 7, false));
        window.ready(1);
        window.ready(0);
        window.unready(0);
        assert_eq!((window.take_ready(), window.take_ready()), (Some((8, 1)), None));
        window.ready(0);
        assert_eq!(window.take_ready(), Some((7, 0)));
    }

    #[test]
    fn a_stopped_window_begins_nothing_and_still_empties() {
        let mut window = Window::new(2, false);
        window.restart(0, 10);
        window.begun(Some(0), ());
        window.stop();
        assert_eq!((window.to_begin(), window.end()), (None, 1));
        assert!(!window.is_empty());
        window.ready(0);
        assert_eq!(window.take_ready(), Some((0, ())));
        assert!(window.is_empty());
        window.restart(0, 1);
        assert_eq!(window.to_begin(), Some(0));
    }
}
