//! The models. Each is written once and checked over the countdown beside it.

#![allow(unsafe_code)] // Loom's cells are shared between its threads.
#![allow(dead_code)] // Not every model is run over every countdown.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::sync::mpsc;
use loom::thread::{self, JoinHandle};

use super::countdown::FillState;

/// Checks a model under every order of its steps with at most so many preemptions.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A region's bytes. Loom fails a model in which an access is not ordered behind another thread's write.
#[derive(Default)]
struct Memory(UnsafeCell<()>);

// SAFETY: nothing is read or written; loom is only told that it would be.
unsafe impl Sync for Memory {}

impl Memory {
    fn write(&self) {
        self.0.with_mut(|_| ());
    }

    fn read(&self) {
        self.0.with(|_| ());
    }
}

/// A slot of three regions, and what travels with it by relaxed stores as a batch's indices and labels do.
#[derive(Default)]
struct Slot {
    state: FillState,
    parts: [Memory; 3],
    indices: [AtomicU64; 3],
    labels: [AtomicU64; 3],
}

impl Slot {
    /// A slot with one fill begun, of so many regions.
    fn begun(regions: usize) -> Arc<Self> {
        let slot = Arc::new(Self::default());
        slot.begin(regions);
        slot
    }

    fn begin(&self, regions: usize) {
        assert!(self.state.claim(), "nobody writes");
        (0..regions).for_each(|_| self.state.enter());
    }

    /// Waits until all regions have ended: whether all were complete.
    fn finish(&self) -> bool {
        loop {
            match self.state.finish() {
                Some(complete) => return complete,
                None => thread::yield_now(),
            }
        }
    }

    fn read(&self, regions: usize) {
        self.parts[..regions].iter().for_each(Memory::read);
    }
}

/// A worker that writes one region and ends it: whether it was the last.
fn worker(slot: &Arc<Slot>, part: usize, complete: bool) -> JoinHandle<bool> {
    let slot = Arc::clone(slot);
    thread::spawn(move || {
        slot.parts[part].write();
        slot.state.leave(complete)
    })
}

fn lasts(workers: impl IntoIterator<Item = JoinHandle<bool>>) -> usize {
    workers.into_iter().filter_map(|worker| worker.join().ok()).filter(|&last| last).count()
}

/// The pump looks again and again, and the count alone orders what it then reads.
pub fn finish_sees_every_region(preemptions: usize) {
    check(preemptions, || {
        let slot = Slot::begun(2);
        let workers = [worker(&slot, 0, true), worker(&slot, 1, true)];
        assert!(slot.finish());
        slot.read(2);
        assert_eq!(lasts(workers), 1);
    });
}

/// Whoever reports the slot's end, it is reported once; with an abandoned region it is not filled.
pub fn one_of_three_is_the_last(preemptions: usize) {
    check(preemptions, || {
        let slot = Slot::begun(3);
        let workers = [worker(&slot, 0, true), worker(&slot, 1, false), worker(&slot, 2, true)];
        let early = slot.state.finish();
        assert_ne!(early, Some(true));
        assert_eq!(lasts(workers), 1);
        assert_eq!(early.or_else(|| slot.state.finish()), Some(false));
        assert_eq!(slot.state.finish(), None, "it ends once");
    });
}

/// A fill that is dropped while a worker still writes: the slot's next one writes after it.
pub fn a_second_fill_follows_the_first(preemptions: usize) {
    check(preemptions, || {
        let slot = Slot::begun(1);
        let stuck = worker(&slot, 0, false);
        slot.state.leave(true);
        while !slot.state.claim() {
            thread::yield_now();
        }
        slot.parts[0].write();
        assert_eq!(slot.state.finish(), Some(true), "the first fill's end does not show in the second");
        assert!(stuck.join().is_ok());
    });
}

/// A fill that is begun again, as where samples were left out: the same memory is written by other workers.
pub fn a_restarted_fill_follows_its_first_regions(preemptions: usize) {
    check(preemptions, || {
        let slot = Slot::begun(1);
        let first = worker(&slot, 0, false);
        while !slot.state.restart() {
            thread::yield_now();
        }
        slot.state.enter();
        let second = worker(&slot, 0, true);
        assert!(slot.finish(), "what was abandoned before does not show");
        slot.read(1);
        assert!(first.join().is_ok() && second.join().is_ok());
    });
}

/// The pump finishes the slot, and a third thread that finds it closed frees its memory.
pub fn the_owner_frees_after_the_last_writer(preemptions: usize) {
    check(preemptions, || {
        let slot = Slot::begun(1);
        let owner = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                if !slot.state.is_open() {
                    slot.parts[0].write();
                }
            })
        };
        let writer = worker(&slot, 0, true);
        assert!(writer.join().is_ok() && slot.finish());
        assert!(owner.join().is_ok());
    });
}

/// Another thread claims the slot the moment it is closed, which clears the mark of the cancelled fill.
pub fn a_cancelled_fill_never_passes_for_filled(preemptions: usize) {
    check(preemptions, || {
        let slot = Slot::begun(1);
        let next = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                while !slot.state.claim() {
                    thread::yield_now();
                }
                slot.state.finish()
            })
        };
        slot.parts[0].write();
        slot.state.leave(false);
        assert!(!slot.finish());
        assert_eq!(next.join().ok(), Some(Some(true)));
    });
}

/// The loader's own way: regions go to the workers by a channel, the last to end says so by another, and the pump finishes once.
/// The first fill is cancelled, the second is not.
pub fn two_fills_by_channels(preemptions: usize) {
    check(preemptions, || {
        let slot = Arc::new(Slot::default());
        let (ended, inbox) = mpsc::channel();
        let workers = [0, 1].map(|part| {
            let (jobs, queue) = mpsc::channel::<u64>();
            let (slot, ended) = (Arc::clone(&slot), ended.clone());
            let work = move || {
                for _ in 0..2 {
                    let round = queue.recv().expect("two rounds");
                    assert_eq!(slot.indices[part].load(Relaxed), round);
                    slot.parts[part].write();
                    slot.labels[part].store(round + 10, Relaxed);
                    let complete = round == 2 || part == 0;
                    if slot.state.leave(complete) {
                        ended.send(round).expect("the pump is there");
                    }
                }
            };
            (jobs, thread::spawn(work))
        });
        for round in [1, 2] {
            slot.begin(2);
            slot.indices[..2].iter().for_each(|index| index.store(round, Relaxed));
            workers.iter().for_each(|(jobs, _)| jobs.send(round).expect("the worker is there"));
            assert_eq!(inbox.recv().ok(), Some(round));
            assert_eq!(slot.state.finish(), Some(round == 2));
            slot.read(2);
            assert!(slot.labels[..2].iter().all(|label| label.load(Relaxed) == round + 10));
        }
        assert!(workers.into_iter().all(|(_, worker)| worker.join().is_ok()));
    });
}
