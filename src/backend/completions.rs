//! The one record of what a device has finished.
//!
//! A lane's submissions stand here in the order in which they were queued, each with what its end gives back. **The device is asked
//! from the oldest on:** a slot is free when its copy has ended, and a submission is finished when all of it has. **Only
//! [`Completions::advance`] changes anything:** a submission whose slot has not come back is never finished, however much ended
//! between two looks, so nothing can be outstanding that [`Completions::outstanding`] does not count.

use std::collections::VecDeque;

use super::{SubmissionId, Wait};

/// What a lane asks its device, and does with what has ended. `S` is the slot that a submission reads, `W` the rest of it.
pub(super) trait DeviceProgress<S, W> {
    /// Why the device could not be asked.
    type Error;

    /// Whether the device has finished reading the slot.
    fn has_copied(&mut self, slot: &S, work: &W) -> Result<bool, Self::Error>;

    /// Takes a slot back that the device has finished reading.
    fn copied(&mut self, slot: S, work: &mut W);

    /// Whether the whole submission has ended. Asked only after its slot came back.
    fn has_finished(&mut self, id: SubmissionId, work: &W) -> Result<bool, Self::Error>;

    /// Takes back what the submission used.
    fn finished(&mut self, id: SubmissionId, work: W);
}

/// The submissions of one lane that the device has not finished, oldest first, and those that are finished and not yet reported.
#[derive(Debug)]
pub(super) struct Completions<S, W> {
    under_way: VecDeque<Entry<S, W>>,
    finished: Vec<SubmissionId>,
    next_id: SubmissionId,
}

#[derive(Debug)]
struct Entry<S, W> {
    id: SubmissionId,
    /// Until the device has finished reading it; submissions without a slot have none.
    slot: Option<S>,
    work: W,
}

impl<S, W> Completions<S, W> {
    /// Room for `submissions` at once; more are taken, and allocate.
    pub(super) fn with_capacity(submissions: usize) -> Self {
        Self { under_way: VecDeque::with_capacity(submissions), finished: Vec::with_capacity(submissions), next_id: 0 }
    }

    /// The next submission's number. One that is then not [pushed](Self::push) is never reported, and nor is another of its number.
    pub(super) fn next_id(&mut self) -> SubmissionId {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Adds what was queued on the device.
    pub(super) fn push(&mut self, id: SubmissionId, slot: Option<S>, work: W) {
        debug_assert!(self.under_way.back().is_none_or(|last| last.id < id), "submissions are pushed in order");
        self.under_way.push_back(Entry { id, slot, work });
    }

    /// Asks the device, and gives back all that has ended.
    ///
    /// # Errors
    /// The device's; what had ended before it is given back.
    pub(super) fn advance<P: DeviceProgress<S, W>>(&mut self, device: &mut P) -> Result<(), P::Error> {
        for entry in &mut self.under_way {
            let Some(slot) = &entry.slot else { continue };
            if !device.has_copied(slot, &entry.work)? {
                // Copies end in the order of their queue.
                break;
            }
            if let Some(slot) = entry.slot.take() {
                device.copied(slot, &mut entry.work);
            }
        }
        while let Some(oldest) = self.under_way.front() {
            // A copy that ended since it was asked for is found by the next look, together with whatever came after it.
            if oldest.slot.is_some() || !device.has_finished(oldest.id, &oldest.work)? {
                break;
            }
            if let Some(Entry { id, work, .. }) = self.under_way.pop_front() {
                device.finished(id, work);
                self.finished.push(id);
            }
        }
        Ok(())
    }

    /// Gives up waiting for a device that is lost: everything counts as finished. `each` takes what the device may still hold.
    pub(super) fn abandon(&mut self, mut each: impl FnMut(Option<S>, W)) {
        for Entry { id, slot, work } in self.under_way.drain(..) {
            each(slot, work);
            self.finished.push(id);
        }
    }

    /// Whether a submission has a slot that has not come back.
    pub(super) fn holds_slot(&self, id: SubmissionId) -> bool {
        self.under_way.iter().any(|entry| entry.id == id && entry.slot.is_some())
    }

    /// Whether anything of a submission has not ended.
    pub(super) fn is_under_way(&self, id: SubmissionId) -> bool {
        self.under_way.iter().any(|entry| entry.id == id)
    }

    /// Submissions of which anything is outstanding: a slot, a tensor, or the report that they are finished.
    pub(super) fn outstanding(&self) -> usize {
        self.under_way.len() + self.finished.len()
    }

    /// The submissions that must end before a wait is over, oldest first; none if it is over.
    pub(super) fn awaited(&self, wait: Wait) -> impl DoubleEndedIterator<Item = &W> {
        let all = self.under_way.len();
        let count = match wait {
            Wait::Poll => 0,
            Wait::One => usize::from(self.finished.is_empty()),
            Wait::AtMost(most) => all.saturating_sub(most),
            Wait::All => all,
        };
        self.under_way.iter().take(count).map(|entry| &entry.work)
    }

    /// Reports what has finished since the last call.
    pub(super) fn report(&mut self, finished: &mut Vec<SubmissionId>) {
        finished.append(&mut self.finished);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A device that ends each copy and each submission after a number of looks at anything.
    #[derive(Default)]
    struct Scripted {
        /// When copy and submission end, by submission.
        ends: Vec<(u32, u32)>,
        looks: u32,
        slots: Vec<usize>,
        finished: Vec<SubmissionId>,
    }

    impl Scripted {
        fn look(&mut self, end: u32) -> bool {
            self.looks += 1;
            self.looks > end
        }
    }

    impl DeviceProgress<usize, usize> for Scripted {
        type Error = Infallible;

        fn has_copied(&mut self, _: &usize, &number: &usize) -> Result<bool, Infallible> {
            let end = self.ends[number].0;
            Ok(self.look(end))
        }

        fn copied(&mut self, slot: usize, _: &mut usize) {
            self.slots.push(slot);
        }

        fn has_finished(&mut self, _: SubmissionId, &number: &usize) -> Result<bool, Infallible> {
            let end = self.ends[number].1;
            Ok(self.look(end))
        }

        fn finished(&mut self, id: SubmissionId, number: usize) {
            assert!(self.slots.contains(&number), "submission {id} is finished and its slot is not back");
            self.finished.push(id);
        }
    }

    #[test]
    fn whenever_copies_and_kernels_end_nothing_outstanding_is_forgotten() {
        const LAST: u32 = 9;
        for first in 0..LAST {
            for second in first..LAST {
                for third in 0..LAST {
                    let ends = vec![(first, second), (third.max(first), second.max(third))];
                    let mut device = Scripted { ends, ..Scripted::default() };
                    let mut completions = Completions::with_capacity(2);
                    for number in 0..2 {
                        let id = completions.next_id();
                        completions.push(id, Some(number), number);
                    }
                    let (mut reported, mut looks) = (Vec::new(), 0);
                    while completions.outstanding() > 0 {
                        let Ok(()) = completions.advance(&mut device);
                        completions.report(&mut reported);
                        looks += 1;
                        assert!(looks < 40, "{first} {second} {third}: it ends");
                    }
                    assert_eq!((&device.slots[..], &device.finished[..]), (&[0, 1][..], &[0, 1][..]));
                    assert_eq!(reported, [0, 1]);
                }
            }
        }
    }

    #[test]
    fn a_number_that_was_not_used_is_not_reported() {
        let mut completions = Completions::with_capacity(2);
        let _failed = completions.next_id();
        let id = completions.next_id();
        completions.push(id, None::<usize>, 0);
        completions.abandon(|_, _| ());
        let mut reported = Vec::new();
        completions.report(&mut reported);
        assert_eq!((reported, completions.outstanding()), (vec![1], 0));
    }

    #[test]
    fn a_wait_counts_from_the_oldest() {
        let mut completions = Completions::with_capacity(4);
        for number in 0..4 {
            let id = completions.next_id();
            completions.push(id, None::<usize>, number);
        }
        let awaited = |wait| completions.awaited(wait).copied().collect::<Vec<_>>();
        assert_eq!(awaited(Wait::Poll), [0; 0]);
        assert_eq!(awaited(Wait::One), [0]);
        assert_eq!(awaited(Wait::AtMost(1)), [0, 1, 2]);
        assert_eq!(awaited(Wait::All), [0, 1, 2, 3]);
    }
}
