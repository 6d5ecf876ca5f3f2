//! The host's reference: how fast a number of threads copy batches from memory to memory.

use std::hint::black_box;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::host_memory::available_memory;
use super::stats::Summary;

/// Batches in the destination ring.
const RING: usize = 4;
/// The source holds at least this many batches.
const SOURCE_BATCHES: usize = 4;
/// The source is at least this large, so that no cache holds it.
const BEYOND_CACHES: usize = 512 << 20;
/// Rounds that are not counted: each buffer of the ring is written twice.
const WARM_UP: usize = 2 * RING;
/// Rounds that are counted at least, however short the time.
const MIN_ROUNDS: usize = 4 * RING;

/// Bytes per second at which `threads` threads together copy batches of `bytes` bytes, as the median over rounds of one
/// batch each that go on for `at_least` this long.
///
/// Every thread copies its own part of each batch, from a part of the source that it moves through, into a ring of four
/// batches. The source is larger than the caches, and at least four batches, as far as memory allows: no more than half
/// of what is available is used. All threads start on a batch together.
///
/// `None` where `bytes` is zero, memory holds no such source and ring, or threads cannot be started.
#[must_use]
pub fn parallel_memcpy(bytes: usize, threads: usize, at_least: Duration) -> Option<f64> {
    let wanted = bytes.checked_mul(SOURCE_BATCHES)?.max(BEYOND_CACHES);
    let source = source_bytes(bytes, wanted, available_memory())?;
    copy_rate(bytes, source, threads, at_least)
}

/// The largest source up to `wanted` that fits half of the memory `available` next to the ring. At least one batch.
fn source_bytes(bytes: usize, wanted: usize, available: Option<u64>) -> Option<usize> {
    let ring = bytes.checked_mul(RING)?;
    let budget = available.map_or(usize::MAX, |bytes| usize::try_from(bytes / 2).unwrap_or(usize::MAX));
    let source = budget.checked_sub(ring)?.min(wanted);
    (source >= bytes).then_some(source)
}

fn copy_rate(bytes: usize, source: usize, threads: usize, at_least: Duration) -> Option<f64> {
    if bytes == 0 {
        return None;
    }
    let piece = bytes.div_ceil(threads.clamp(1, bytes));
    let workers = bytes.div_ceil(piece);
    let part = (source / workers).max(piece);
    // Fresh zeroed memory has no pages yet: each worker touches its own first, and so places them near itself.
    let mut source = vec![0; part.checked_mul(workers)?];
    let mut ring: [Vec<u8>; RING] = std::array::from_fn(|_| vec![0; bytes]);
    let mut batches = ring.each_mut().map(|batch| batch.chunks_mut(piece));
    let workers: Vec<Worker<'_>> = source
        .chunks_mut(part)
        .map(|source| Worker { source, ring: batches.each_mut().map(|b| b.next().unwrap_or_default()), at: 0 })
        .collect();
    let median = Summary::of(&run_rounds(workers, at_least)?)?.median;
    (median > 0.0).then(|| bytes as f64 / median)
}

/// What one thread owns: its part of the source, and of every batch in the ring.
struct Worker<'a> {
    source: &'a mut [u8],
    ring: [&'a mut [u8]; RING],
    at: usize,
}

impl Worker<'_> {
    fn touch(&mut self) {
        self.source.fill(1);
        self.ring.iter_mut().for_each(|part| part.fill(2));
    }

    /// Copies this worker's part of one batch, and moves on in the source.
    fn copy(&mut self, round: usize) {
        let [first, ..] = &mut self.ring;
        let len = first.len();
        let from = self.source.get(self.at..self.at + len);
        if let (Some(from), Some(to)) = (from, self.ring.get_mut(round % RING)) {
            to.copy_from_slice(from);
            black_box(to);
        }
        self.at += len;
        if self.at + len > self.source.len() {
            self.at = 0;
        }
    }
}

/// What the threads share: where they meet before each batch, and the round in which they part.
struct Meeting {
    barrier: Barrier,
    last: AtomicUsize,
    /// Set once it is known whether all threads are there.
    go: OnceLock<bool>,
}

/// The seconds that each counted round took; `None` where a thread cannot be started.
fn run_rounds(mut workers: Vec<Worker<'_>>, at_least: Duration) -> Option<Vec<f64>> {
    let meeting =
        Meeting { barrier: Barrier::new(workers.len()), last: AtomicUsize::new(usize::MAX), go: OnceLock::new() };
    let leader = workers.pop()?;
    thread::scope(|scope| {
        let all = workers.into_iter().all(|worker| {
            let builder = thread::Builder::new().name("memcpy".to_owned());
            builder.spawn_scoped(scope, || follow(worker, &meeting)).is_ok()
        });
        let go = *meeting.go.get_or_init(|| all);
        go.then(|| lead(leader, &meeting, at_least))
    })
}

fn follow(mut worker: Worker<'_>, meeting: &Meeting) {
    if !*meeting.go.wait() {
        return;
    }
    worker.touch();
    for round in 0.. {
        meeting.barrier.wait();
        if round >= meeting.last.load(Ordering::Acquire) {
            return;
        }
        worker.copy(round);
    }
}

/// Copies like the others and keeps the time: a round lasts from one meeting to the next, so that its slowest thread
/// counts and no time falls between rounds.
fn lead(mut worker: Worker<'_>, meeting: &Meeting, at_least: Duration) -> Vec<f64> {
    worker.touch();
    let mut rounds = Vec::new();
    let mut begun = Instant::now();
    let mut counted = Duration::ZERO;
    for round in 0.. {
        meeting.barrier.wait();
        let before = mem::replace(&mut begun, Instant::now());
        if round > WARM_UP {
            let took = begun - before;
            counted += took;
            rounds.push(took.as_secs_f64());
        }
        if round >= meeting.last.load(Ordering::Acquire) {
            break;
        }
        if counted >= at_least && rounds.len() >= MIN_ROUNDS {
            // Nobody reads this as the end of the present round, which is an earlier one.
            meeting.last.store(round + 1, Ordering::Release);
        }
        worker.copy(round);
    }
    rounds
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_split_of_a_batch_is_measured_and_ends() {
        for threads in [0, 1, 2, 3, 7, 64] {
            for bytes in [1, 5, 4096, 100_003] {
                let rate = copy_rate(bytes, 4 * bytes, threads, Duration::from_millis(1));
                assert!(rate.is_some_and(|rate| rate > 0.0 && rate.is_finite()), "{bytes} bytes, {threads} threads");
            }
        }
    }

    #[test]
    fn a_worker_writes_its_whole_part_of_every_batch_and_stays_in_its_source() {
        let mut source: Vec<u8> = (1..=11).collect();
        let mut ring = [[0u8; 4]; RING];
        let mut worker = Worker { source: &mut source, ring: ring.each_mut().map(|part| &mut part[..]), at: 0 };
        (0..RING).for_each(|round| worker.copy(round));
        assert_eq!(ring, [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [5, 6, 7, 8]]);
    }

    #[test]
    fn nothing_to_copy_has_no_rate() {
        assert_eq!(parallel_memcpy(0, 2, Duration::ZERO), None);
        assert_eq!(parallel_memcpy(usize::MAX, 2, Duration::ZERO), None);
    }

    #[test]
    fn the_source_shrinks_with_memory_down_to_one_batch() {
        assert_eq!(source_bytes(10, 40, None), Some(40));
        assert_eq!(source_bytes(10, 40, Some(1000)), Some(40));
        assert_eq!(source_bytes(10, 40, Some(130)), Some(25));
        assert_eq!(source_bytes(10, 40, Some(100)), Some(10));
        assert_eq!(source_bytes(10, 40, Some(98)), None);
    }
}
