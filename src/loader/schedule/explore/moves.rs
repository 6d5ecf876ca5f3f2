//! Everything that may happen next in a world.

use std::collections::VecDeque;

use super::super::{EpochPlan, Event};
use super::world::{Size, Slot, Wanted, World};

impl World {
    /// Every event that may come next, with the world in which it has.
    pub(super) fn moves(&self, size: Size) -> Vec<(Self, Option<Event>)> {
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
    pub(super) fn wound_down(&mut self) {
        let Some((id, end)) = self.schedule.end() else { return };
        self.wanted.retain(|wanted| wanted.id <= id);
        self.wanted.iter_mut().filter(|wanted| wanted.id == id).for_each(|wanted| wanted.end = end);
        self.forget_complete();
    }
}
