//! Every order of events for small sizes, against a model of the workers, the device and the user.
//!
//! From each state every move is tried: a slot ends, a copy or a submission finishes, the user takes, holds or returns a batch, starts,
//! follows, winds down or stops an epoch, and an action fails or loses the device. States that were seen are not tried again.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::*;

/// A slot, as the device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slot {
    Free,
    Filling { batch: BatchId, cancelled: bool },
    Ended { batch: BatchId, cancelled: bool },
    Copying,
}

/// An epoch that the user has asked for and whose batches are still to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Wanted {
    id: u64,
    end: u64,
    /// A bit for each batch that was delivered.
    delivered: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    schedule: Schedule,
    ordered: bool,
    slots: Vec<Slot>,
    in_flight: usize,
    free: usize,
    /// Deliveries that the user has not taken: whether they carry an output.
    delivered: VecDeque<bool>,
    held: usize,
    /// Whether the schedule waits for an output.
    hungry: bool,
    wanted: VecDeque<Wanted>,
    lost: bool,
    /// Whether the epoch's user is to be told, or was.
    loss_due: bool,
    next_id: u64,
    /// What is left of the user's commands, and of failures.
    commands: u8,
    faults: u8,
}

/// How large a world is.
#[derive(Clone, Copy, Debug)]
struct Size {
    outputs: usize,
    batches: u64,
    /// How often the user starts, follows, winds down or stops an epoch.
    commands: u8,
}

impl World {
    fn new(shape: Shape, size: Size) -> Self {
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
    fn perform(self, action: Action) -> Vec<(Self, Event)> {
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

    fn lose(&mut self) {
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

    fn forget_complete(&mut self) {
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

    /// Every event that may come next, with the world in which it has.
    fn moves(&self, size: Size) -> Vec<(Self, Option<Event>)> {
        let mut moves = Vec::new();
        self.workers_and_device(&mut moves);
        self.user(&mut moves);
        self.commands(size, &mut moves);
        moves
    }

    fn workers_and_device(&self, moves: &mut Vec<(Self, Option<Event>)>) {
        let copying = self.slots.iter().filter(|slot| **slot == Slot::Copying).count();
        for (slot, state) in self.slots.iter().enumerate() {
            let mut world = self.clone();
            match *state {
                Slot::Filling { batch, cancelled } => {
                    world.slots[slot] = Slot::Ended { batch, cancelled };
                    moves.push((world, Some(Event::SlotEnded { slot })));
                }
                // The slot is free before its kernel has run, or with it.
                Slot::Copying => {
                    world.slots[slot] = Slot::Free;
                    moves.push((world.clone(), Some(Event::Polled { in_flight: self.in_flight })));
                    world.in_flight -= 1;
                    moves.push((world, Some(Event::Polled { in_flight: self.in_flight - 1 })));
                }
                Slot::Free | Slot::Ended { .. } => {}
            }
        }
        if self.in_flight > copying {
            let in_flight = self.in_flight - 1;
            moves.push((Self { in_flight, ..self.clone() }, Some(Event::Polled { in_flight })));
        }
        if self.in_flight > 0 && self.faults > 0 {
            let mut world = Self { faults: self.faults - 1, ..self.clone() };
            world.lose();
            moves.push((world, Some(Event::Lost)));
        }
    }

    fn user(&self, moves: &mut Vec<(Self, Option<Event>)>) {
        let mut taken = self.clone();
        if let Some(output) = taken.delivered.pop_front() {
            taken.held += usize::from(output);
            moves.push((taken, None));
        }
        if self.held > 0 {
            let event = self.hungry.then_some(Event::OutputReturned);
            moves.push((Self { held: self.held - 1, free: self.free + 1, hungry: false, ..self.clone() }, event));
        }
    }

    fn commands(&self, size: Size, moves: &mut Vec<(Self, Option<Event>)>) {
        if self.commands == 0 {
            return;
        }
        let world = || Self { commands: self.commands - 1, ..self.clone() };
        let (id, end) = (self.next_id, size.batches);
        let wanted = Wanted { id, end, delivered: 0 };
        let plan = EpochPlan { id, first: 0, end };
        let mut started = Self { next_id: id + 1, loss_due: self.lost, ..world() };
        started.wanted = if self.lost { VecDeque::new() } else { [wanted].into() };
        moves.push((started, Some(Event::Start(plan))));
        if self.next_id == 0 {
            return;
        }
        let mut stopped = Self { loss_due: false, ..world() };
        stopped.wanted.clear();
        moves.push((stopped, Some(Event::Stop)));
        // One epoch ahead, as the iterator asks for it.
        if self.wanted.len() == 1 && !self.lost {
            let mut followed = Self { next_id: id + 1, ..world() };
            followed.wanted.push_back(wanted);
            followed.forget_complete();
            moves.push((followed, Some(Event::Follow(plan))));
        }
        moves.push((world(), Some(Event::WindDown)));
    }

    /// What the user learns when an epoch is wound down.
    fn wound_down(&mut self) {
        let Some((id, end)) = self.schedule.end() else { return };
        self.wanted.retain(|wanted| wanted.id <= id);
        self.wanted.iter_mut().filter(|wanted| wanted.id == id).for_each(|wanted| wanted.end = end);
        self.forget_complete();
    }

    fn check(&self, size: Size) {
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

/// Has the schedule take an event in, and performs what it says, in every way.
fn drive(mut world: World, event: Event, settled: &mut Vec<World>) {
    match world.schedule.on(event) {
        None => settled.push(world),
        Some(action) => {
            for (world, event) in world.perform(action) {
                drive(world, event, settled);
            }
        }
    }
}

/// Tries everything; how many states there are.
fn explore(shape: Shape, size: Size) -> usize {
    let first = World::new(shape, size);
    // Hashes alone: a state that has another's is left out, which is less likely than a fault of this test.
    let hash = |world: &World| BuildHasherDefault::<DefaultHasher>::default().hash_one(world);
    let mut seen = HashSet::from([hash(&first)]);
    let mut open = vec![first];
    while let Some(world) = open.pop() {
        world.check(size);
        for (moved, event) in world.moves(size) {
            let mut settled = Vec::new();
            match event {
                Some(event) => drive(moved, event, &mut settled),
                None => settled.push(moved),
            }
            if event == Some(Event::WindDown) {
                settled.iter_mut().for_each(World::wound_down);
            }
            open.extend(settled.into_iter().filter(|world| seen.insert(hash(world))));
        }
    }
    seen.len()
}

#[test]
fn in_every_order_of_events_slots_are_filled_once_and_every_batch_is_delivered() {
    let sizes = [(1, 1, 3, 3), (1, 2, 2, 3), (2, 1, 3, 2), (2, 2, 2, 2), (2, 2, 3, 1), (3, 2, 2, 2), (3, 3, 3, 1)];
    for (slots, outputs, batches, commands) in sizes {
        for unordered in [false, true] {
            let states = explore(Shape::Staged { slots, unordered }, Size { outputs, batches, commands });
            eprintln!("{slots} {outputs} {batches} {commands} {unordered} {states}");
            assert!(states > 1000, "{states} states are not all");
        }
    }
}

#[test]
fn in_every_order_of_events_the_device_reads_every_batch_once() {
    for (depth, outputs, batches) in [(1, 1, 4), (1, 3, 4), (2, 1, 4), (2, 3, 3), (3, 2, 3), (3, 3, 3)] {
        let states = explore(Shape::Direct { depth }, Size { outputs, batches, commands: 3 });
        eprintln!("{depth} {outputs} {batches} {states}");
        assert!(states > 100, "{states} states are not all");
    }
}
