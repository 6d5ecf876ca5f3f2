//! What the schedule says, one sentence at a time.

use super::*;

const STAGED: Shape = Shape::Staged { slots: 2, unordered: false };

fn plan(id: u64, end: u64) -> EpochPlan {
    EpochPlan { id, first: 0, end }
}

fn batch(epoch: u64, number: u64) -> BatchId {
    BatchId { epoch, number }
}

fn submit(epoch: u64, number: u64, slot: usize) -> Option<Action> {
    Some(Action::Submit { batch: batch(epoch, number), slot: Some(slot) })
}

/// A schedule whose first batches are being filled, one a slot.
fn filling(shape: Shape, slots: usize, end: u64) -> Schedule {
    let mut schedule = Schedule::new(shape);
    let mut action = schedule.on(Event::Start(plan(1, end)));
    for slot in 0..slots {
        assert_eq!(action, Some(Action::Begin(batch(1, slot as u64))));
        action = schedule.on(Event::Begun { slot });
    }
    assert_eq!(action, None);
    schedule
}

#[test]
fn batches_begin_until_every_slot_is_taken() {
    let schedule = filling(STAGED, 2, 10);
    assert_eq!((schedule.filling(), schedule.lack()), (2, Lack::Fill));
}

#[test]
fn batches_leave_in_order_whatever_order_they_get_ready_in() {
    let mut schedule = filling(STAGED, 2, 2);
    assert_eq!(schedule.on(Event::SlotEnded { slot: 1 }), None);
    assert_eq!(schedule.on(Event::SlotEnded { slot: 0 }), submit(1, 0, 0));
    assert_eq!(schedule.on(Event::Submitted), submit(1, 1, 1));
    assert_eq!(schedule.on(Event::Submitted), None);
    assert_eq!((schedule.in_flight(), schedule.lack()), (2, Lack::Drain));
}

#[test]
fn unordered_batches_leave_as_they_get_ready() {
    let mut schedule = filling(Shape::Staged { slots: 2, unordered: true }, 2, 2);
    assert_eq!(schedule.on(Event::SlotEnded { slot: 1 }), submit(1, 1, 1));
    assert_eq!((schedule.on(Event::Submitted), schedule.front()), (None, 0));
}

#[test]
fn a_batch_that_lacks_an_output_is_submitted_when_one_comes_back() {
    let mut schedule = filling(STAGED, 2, 2);
    assert_eq!(schedule.on(Event::SlotEnded { slot: 0 }), submit(1, 0, 0));
    assert_eq!(schedule.on(Event::NoOutput), None);
    assert_eq!(schedule.lack(), Lack::Output);
    assert_eq!(schedule.on(Event::SlotEnded { slot: 1 }), None, "no output is asked for before one is back");
    assert_eq!(schedule.on(Event::OutputReturned), submit(1, 0, 0));
}

#[test]
fn a_slot_is_asked_for_again_once_the_device_was() {
    let mut schedule = Schedule::new(STAGED);
    assert_eq!(schedule.on(Event::Start(plan(1, 9))), Some(Action::Begin(batch(1, 0))));
    assert_eq!(schedule.on(Event::NoSlot), None);
    assert!(schedule.lacks_slot());
    assert_eq!(schedule.on(Event::Polled { in_flight: 0 }), Some(Action::Begin(batch(1, 0))));
}

#[test]
fn what_is_given_up_is_cancelled_and_discarded_when_it_ends() {
    let mut schedule = filling(STAGED, 2, 9);
    schedule.on(Event::SlotEnded { slot: 1 });
    assert_eq!(schedule.on(Event::Stop), Some(Action::Cancel { slot: 0 }));
    assert_eq!(schedule.on(Event::Done), Some(Action::Discard { slot: 1 }));
    assert_eq!(schedule.on(Event::Done), None);
    assert!(!schedule.is_settled());
    assert_eq!(schedule.on(Event::SlotEnded { slot: 0 }), Some(Action::Discard { slot: 0 }));
    assert_eq!(schedule.on(Event::Done), None);
    assert!(schedule.is_settled());
}

#[test]
fn a_new_epoch_begins_in_the_slots_that_are_free_of_the_old_one() {
    let mut schedule = filling(STAGED, 2, 9);
    schedule.on(Event::SlotEnded { slot: 1 });
    assert_eq!(schedule.on(Event::Start(plan(2, 9))), Some(Action::Cancel { slot: 0 }));
    assert_eq!(schedule.on(Event::Done), Some(Action::Discard { slot: 1 }));
    assert_eq!(schedule.on(Event::Done), Some(Action::Begin(batch(2, 0))));
    assert_eq!(schedule.on(Event::Begun { slot: 1 }), None, "the other slot has not ended");
}

#[test]
fn an_epoch_that_follows_begins_when_the_last_batch_has_begun() {
    let mut schedule = Schedule::new(Shape::Staged { slots: 3, unordered: true });
    schedule.on(Event::Start(plan(1, 2)));
    assert_eq!(schedule.on(Event::Begun { slot: 0 }), Some(Action::Begin(batch(1, 1))));
    assert_eq!(schedule.on(Event::Begun { slot: 1 }), None);
    assert_eq!(schedule.on(Event::Follow(plan(2, 5))), Some(Action::Begin(batch(2, 0))));
    assert_eq!(schedule.on(Event::Begun { slot: 2 }), None);
    assert_eq!(schedule.on(Event::SlotEnded { slot: 2 }), None, "the earlier epoch leaves first");
    assert_eq!(schedule.on(Event::SlotEnded { slot: 1 }), submit(1, 1, 1));
}

#[test]
fn winding_down_delivers_what_has_begun_and_no_more() {
    let mut schedule = filling(STAGED, 2, 9);
    assert_eq!(schedule.on(Event::WindDown), None);
    assert_eq!(schedule.end(), Some((1, 2)));
    assert_eq!(schedule.on(Event::SlotEnded { slot: 0 }), submit(1, 0, 0));
    assert_eq!(schedule.on(Event::Submitted), None);
}

#[test]
fn a_loss_is_reported_once_to_each_epoch() {
    let mut schedule = filling(STAGED, 2, 9);
    assert_eq!(schedule.on(Event::Lost), Some(Action::Cancel { slot: 0 }));
    assert_eq!(schedule.on(Event::Done), Some(Action::Cancel { slot: 1 }));
    assert_eq!(schedule.on(Event::Done), Some(Action::ReportLoss { batch: 0 }));
    assert_eq!(schedule.on(Event::Done), None);
    assert_eq!(schedule.on(Event::Lost), None);
    assert_eq!(schedule.on(Event::Start(plan(2, 9))), Some(Action::ReportLoss { batch: 0 }));
    assert_eq!(schedule.on(Event::Done), None);
    assert_eq!(schedule.on(Event::Stop), None);
}

#[test]
fn a_loss_while_a_batch_is_submitted_names_that_batch() {
    let mut schedule = filling(STAGED, 2, 9);
    schedule.on(Event::SlotEnded { slot: 0 });
    schedule.on(Event::Submitted);
    schedule.on(Event::Begun { slot: 0 });
    assert_eq!(schedule.on(Event::SlotEnded { slot: 1 }), submit(1, 1, 1));
    assert_eq!(schedule.on(Event::Lost), Some(Action::Cancel { slot: 0 }), "slot 1 went with the submission");
    assert_eq!(schedule.on(Event::Done), Some(Action::ReportLoss { batch: 1 }));
}

#[test]
fn the_device_reads_no_more_batches_ahead_than_it_may() {
    let mut schedule = Schedule::new(Shape::Direct { depth: 2 });
    let direct = |number| Some(Action::Submit { batch: batch(1, number), slot: None });
    assert_eq!(schedule.on(Event::Start(plan(1, 9))), direct(0));
    assert_eq!(schedule.on(Event::Submitted), direct(1));
    assert_eq!(schedule.on(Event::Submitted), None);
    assert_eq!((schedule.lack(), schedule.lacks_slot()), (Lack::Device, true));
    assert_eq!(schedule.on(Event::Polled { in_flight: 1 }), direct(2));
}
