//! What a loader's threads are doing, for whoever asks why nothing moves. Relaxed counters: written on the way, read by the watchdog.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::{PumpState, Stall};

/// Shared by all threads of a loader.
#[derive(Debug)]
pub(in crate::loader) struct Activity {
    /// The epoch that the user waits in.
    generation: AtomicU64,
    waiting: AtomicBool,
    /// Everything but samples that moved.
    moves: AtomicU64,
    pump: AtomicU8,
    filling: AtomicUsize,
    in_flight: AtomicUsize,
    workers: Box<[WorkerActivity]>,
}

/// What one worker does. On a cache line of its own, since each is written for every sample.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(in crate::loader) struct WorkerActivity {
    /// The sample being read, and one; zero for none.
    reading: AtomicU64,
    samples: AtomicU64,
}

impl WorkerActivity {
    pub(in crate::loader) fn reads(&self, index: u64) {
        self.reading.store(index.wrapping_add(1), Ordering::Relaxed);
    }

    pub(in crate::loader) fn has_read(&self) {
        self.reading.store(0, Ordering::Relaxed);
        self.samples.store(self.samples.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Marks the user as waiting until it is dropped, as a future may be at any moment.
pub(in crate::loader) struct Waiting<'a>(&'a Activity);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}

impl Activity {
    pub(in crate::loader) fn new(workers: usize) -> Self {
        Self {
            generation: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
            moves: AtomicU64::new(0),
            pump: AtomicU8::new(PumpState::Idle as u8),
            filling: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            workers: (0..workers).map(|_| WorkerActivity::default()).collect(),
        }
    }

    pub(in crate::loader) fn worker(&self, number: usize) -> &WorkerActivity {
        &self.workers[number]
    }

    pub(in crate::loader) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    pub(in crate::loader) fn epoch(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// The user begins to wait: the watchdog's clock runs while it does.
    pub(in crate::loader) fn wait(&self) -> Waiting<'_> {
        self.await_batch();
        Waiting(self)
    }

    /// As [`wait`](Self::wait), until [`end_wait`](Self::end_wait).
    pub(in crate::loader) fn await_batch(&self) {
        self.waiting.store(true, Ordering::Relaxed);
    }

    /// The user does not wait any more.
    pub(in crate::loader) fn end_wait(&self) {
        self.waiting.store(false, Ordering::Relaxed);
    }

    pub(in crate::loader) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(in crate::loader) fn moved(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// What the pump is about to do.
    pub(in crate::loader) fn pump(&self, state: PumpState, filling: usize, in_flight: usize) {
        self.pump.store(state as u8, Ordering::Relaxed);
        self.filling.store(filling, Ordering::Relaxed);
        self.in_flight.store(in_flight, Ordering::Relaxed);
    }

    /// Changes whenever anything moves.
    pub(in crate::loader) fn moves(&self) -> u64 {
        let samples = self.workers.iter().map(|worker| worker.samples.load(Ordering::Relaxed));
        samples.fold(self.moves.load(Ordering::Relaxed), u64::wrapping_add)
    }

    /// Who does what now.
    pub(in crate::loader) fn stall(&self, after: Duration) -> Stall {
        let reading = self
            .workers
            .iter()
            .enumerate()
            .filter_map(|(number, worker)| Some((number, worker.reading.load(Ordering::Relaxed).checked_sub(1)?)));
        let pump = match self.pump.load(Ordering::Relaxed) {
            state if state == PumpState::AwaitsDevice as u8 => PumpState::AwaitsDevice,
            state if state == PumpState::InDriver as u8 => PumpState::InDriver,
            _ => PumpState::Idle,
        };
        Stall {
            after,
            reading: reading.collect(),
            workers: self.workers.len(),
            pump,
            filling: self.filling.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed),
        }
    }
}
