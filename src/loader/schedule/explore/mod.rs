//! Every order of events for small sizes, against a model of the workers, the device and the user.
//!
//! From each state every move is tried: a slot ends, a copy or a submission finishes, the user takes, holds or returns a batch, starts,
//! follows, winds down or stops an epoch, and an action fails or loses the device. States that were seen are not tried again.

mod moves;
mod world;

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::{Event, Shape};
use world::{Size, World};

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
    let sizes = [(1, 1, 4, 3), (1, 3, 3, 2), (2, 1, 4, 2), (2, 2, 3, 2), (2, 2, 2, 3), (3, 2, 3, 2), (3, 3, 4, 1)];
    for (slots, outputs, batches, commands) in sizes {
        for unordered in [false, true] {
            let states = explore(Shape::Staged { slots, unordered }, Size { outputs, batches, commands });
            assert!(states > 1000, "{states} states are not all");
        }
    }
}

#[test]
fn in_every_order_of_events_the_device_reads_every_batch_once() {
    for (depth, outputs, batches) in [(1, 1, 4), (1, 3, 4), (2, 1, 4), (2, 3, 3), (3, 2, 3), (3, 3, 3)] {
        let states = explore(Shape::Direct { depth }, Size { outputs, batches, commands: 3 });
        assert!(states > 100, "{states} states are not all");
    }
}
