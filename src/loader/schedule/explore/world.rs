//! The model of the workers, the device and the user: what becomes of it when an action is performed.

use std::collections::VecDeque;

use super::super::{Action, BatchId, EpochState, Event, Lack, Schedule, Shape};

/// A slot, as the device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Free,
    Filling { batch: BatchId, cancelled: bool },
    Ended { batch: BatchId, cancelled: bool },
    Copying,
}

/// An epoch that the user has asked for and whose batches are still to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) id: u64,
    pub(super) end: u64,
    /// A bit for each batch that was delivered.
    pub(super) delivered: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) schedule: Schedule,
    pub(super) ordered: bool,
    pub(super) slots: Vec<Slot>,
    pub(super) in_flight: usize,
    pub(super) free: usize,
    /// Deliveries that the user has not taken: whether they carry an output.
    pub(super) delivered: VecDeque<bool>,
    pub(super) held: usize,
    /// Whether the schedule waits for an output.
    pub(super) hungry: bool,
    pub(super) wanted: VecDeque<Wanted>,
    pub(super) lost: bool,
    /// Whether the epoch's user is to be told, or was.
    pub(super) loss_due: bool,
    pub(super) next_id: u64,
    /// What is left of the user's commands, and of failures.
    pub(super) commands: u8,
    pub(super) faults: u8,
}

/// How large a world is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) outputs: usize,
    pub(super) batches: u64,
    /// How often the user starts, follows, winds down or stops an epoch.
    pub(super) commands: u8,
}

impl World {
    pub(super) fn new(shape: Shape, size: Size) -> Self {
        let (slots, ordered) = match shape {
            Shape::Staged { slots, unordered } => (slots, !unordered),
            Shape::Direct { .. } => (0, true),
        };
        Self {
            schedule: Schedule::new(shape),
            ordered,
            slots: vec![Slot::Free; slots],
            in_flight: 0,
            free: size.outputs,
            delivered: VecDeque::new(),
            held: 0,
            hungry: false,
            wanted: VecDeque::new(),
            lost: false,
            loss_due: false,
            next_id: 0,
            commands: size.commands,
            faults: 1,
        }
    }

    /// Performs an action in every way in which it can go.
    pub(super) fn perform(self, action: Action) -> Vec<(Self, Event)> {
        match action {
            Action::Begin(batch) => self.begin(batch),
            Action::Submit { batch, slot } => self.submit(batch, slot),
            Action::Fail(batch) => self.with_output(|world| vec![world.deliver(batch, Event::Unsent)]),
            Action::Cancel { slot } => vec![self.with_slot(slot, |slot| match slot {
                Slot::Filling { batch, cancelled: false } => Slot::Filling { batch, cancelled: true },
                other => panic!("{other:?} is cancelled"),
            })],
            Action::Discard { slot } => vec![self.with_slot(slot, |slot| match slot {
                Slot::Ended { .. } => Slot::Free,
                other => panic!("{other:?} is discarded"),
            })],
            Action::ReportLoss { .. } => {
                assert!(self.lost && self.loss_due, "a loss is reported once an epoch");
                let mut world = self;
                world.loss_due = false;
                world.delivered.push_back(false);
                vec![(world, Event::Done)]
            }
        }
    }

    fn with_slot(mut self, slot: usize, change: impl FnOnce(Slot) -> Slot) -> (Self, Event) {
        self.slots[slot] = change(self.slots[slot]);
        (self, Event::Done)
    }

    fn begin(self, batch: BatchId) -> Vec<(Self, Event)> {
        assert!(!self.lost && self.is_wanted(batch), "{batch:?} is begun");
        let begun_before = self.slots.iter().any(|slot| {
            matches!(slot, Slot::Filling { batch: other, .. } | Slot::Ended { batch: other, .. } if *other == batch)
        });
        assert!(!begun_before, "{batch:?} is begun twice");
        let Some(slot) = self.slots.iter().position(|slot| *slot == Slot::Free) else {
            return vec![(self, Event::NoSlot)];
        };
        let mut outcomes = self.failures(&[Event::BeginFailed, Event::Lost]);
        let mut begun = self;
        begun.slots[slot] = Slot::Filling { batch, cancelled: false };
        outcomes.push((begun, Event::Begun { slot }));
        outcomes
    }

    fn submit(self, batch: BatchId, slot: Option<usize>) -> Vec<(Self, Event)> {
        if let Some(slot) = slot {
            assert_eq!(self.slots[slot], Slot::Ended { batch, cancelled: false }, "slot {slot} is submitted");
        }
        assert!(!self.lost, "{batch:?} is submitted to a lost device");
        self.with_output(|mut world| {
            if let Some(slot) = slot {
                world.slots[slot] = Slot::Free;
            }
            let failures = world.failures(&[Event::Unsent, Event::EpochFailed, Event::Lost]);
            let failed = failures.into_iter().map(|(world, event)| match event {
                // The output is pooled again.
                Event::Lost => (world, event),
                _ => world.deliver(batch, event),
            });
            let mut outcomes: Vec<_> = failed.collect();
            if let Some(slot) = slot {
                world.slots[slot] = Slot::Copying;
            }
            world.in_flight += 1;
            outcomes.push(world.deliver(batch, Event::Submitted));
            outcomes
        })
    }

    /// What may go wrong, if anything still may.
    fn failures(&self, events: &[Event]) -> Vec<(Self, Event)> {
        let events = if self.faults > 0 { events } else { &[] };
        let failed = events.iter().map(|&event| {
            let mut world = Self { faults: self.faults - 1, ..self.clone() };
            if event == Event::Lost {
                world.lose();
            }
            (world, event)
        });
        failed.collect()
    }

    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.loss_due = !self.wanted.is_empty();
        self.wanted.clear();
    }

    fn with_output(mut self, with: impl FnOnce(Self) -> Vec<(Self, Event)>) -> Vec<(Self, Event)> {
        if self.free > 0 {
            return with(self);
        }
        self.hungry = true;
        vec![(self, Event::NoOutput)]
    }

    fn is_wanted(&self, batch: BatchId) -> bool {
        let mut epochs = self.wanted.iter().filter(|wanted| wanted.id == batch.epoch);
        epochs.any(|wanted| batch.number < wanted.end && wanted.delivered & 1 << batch.number == 0)
    }

    /// Something takes a batch's place: once, in order, and never before an earlier epoch's.
    fn deliver(mut self, batch: BatchId, event: Event) -> (Self, Event) {
        assert!(self.is_wanted(batch), "{batch:?} is delivered, and wanted are {:?}", self.wanted);
        let wanted = self.wanted.front_mut().expect("it is wanted");
        assert_eq!(wanted.id, batch.epoch, "an earlier epoch comes first");
        let before = (1u8 << batch.number) - 1;
        assert!(!self.ordered || wanted.delivered == before, "{batch:?} after {:#b}", wanted.delivered);
        wanted.delivered |= 1 << batch.number;
        (self.free, self.hungry) = (self.free - 1, false);
        self.delivered.push_back(true);
        self.forget_complete();
        if event == Event::EpochFailed {
            self.wanted.clear();
        }
        (self, event)
    }

    pub(super) fn forget_complete(&mut self) {
        while let Some(wanted) = self.wanted.front()
            && u64::from(wanted.delivered.count_ones()) >= wanted.end
        {
            // The user may still ask for one that follows.
            if self.wanted.len() == 1 {
                break;
            }
            self.wanted.pop_front();
        }
    }

    pub(super) fn check(&self, size: Size) {
        let with_output = self.delivered.iter().filter(|output| **output).count();
        assert_eq!(self.free + with_output + self.held, size.outputs, "outputs are conserved");
        assert_eq!(self.schedule.in_flight(), self.in_flight);
        let filling = self.slots.iter().filter(|slot| matches!(slot, Slot::Filling { .. })).count();
        assert_eq!(self.schedule.filling(), filling, "slots that nobody wants are discarded at once");
        assert_eq!(matches!(self.schedule.epoch, EpochState::Lost { .. }), self.lost);
        assert!(!self.loss_due, "a loss is reported at once");
        let quiet = filling == 0 && self.in_flight == 0 && self.delivered.is_empty() && self.held == 0;
        if quiet {
            let left: Vec<_> =
                self.wanted.iter().filter(|wanted| u64::from(wanted.delivered.count_ones()) < wanted.end).collect();
            assert!(left.is_empty(), "stuck: nothing is under way, and {left:?} are still to come");
            assert!(self.slots.iter().all(|slot| *slot == Slot::Free), "a slot was forgotten");
            assert!(self.schedule.is_settled() && self.schedule.lack() == Lack::Epoch);
        }
    }
}
