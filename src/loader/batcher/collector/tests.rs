//! Batches under chosen and under random orders of events, at times that nobody waits for.

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

fn collector(batch_size: usize, queue: usize, overflow: Overflow) -> Collector<u64> {
    Collector::new(BatcherOptions { max_wait: 10 * MILLISECOND, queue, overflow }, batch_size)
}

fn frames(taken: &[Queued<u64>]) -> Vec<u64> {
    taken.iter().map(|queued| queued.frame).collect()
}

#[test]
fn a_full_batch_is_taken_at_once_and_a_part_of_one_when_its_first_frame_has_waited() {
    let (mut all, start, mut taken) = (collector(3, 8, Overflow::Block), Instant::now(), Vec::new());
    let (a, b) = (all.open(), all.open());
    assert_eq!(all.next(start), Next::Wait);
    assert_eq!(all.push(a, 1, 10, start), Ok(None));
    assert_eq!(all.push(b, 2, 20, start + 4 * MILLISECOND), Ok(None));
    let due = start + 10 * MILLISECOND;
    assert_eq!(all.next(start + 9 * MILLISECOND), Next::Until(due), "the first frame's time counts");
    assert_eq!(all.next(due), Next::Batch(2));
    assert_eq!(all.push(a, 3, 30, due), Ok(None));
    assert_eq!(all.push(a, 4, 40, due), Ok(None));
    assert_eq!(all.next(start), Next::Batch(3), "whatever the time");
    all.take(3, &mut taken);
    let origins: Vec<_> = taken.iter().map(|queued| (queued.stream, queued.tag)).collect();
    assert_eq!((frames(&taken), origins), (vec![10, 20, 30], vec![(a, 1), (b, 2), (a, 3)]));
    assert_eq!(all.next(due), Next::Until(due + 10 * MILLISECOND), "what is left has its own time");
}

#[test]
fn a_full_queue_does_what_was_chosen_and_concerns_its_own_stream_only() {
    let now = Instant::now();
    for overflow in [Overflow::Block, Overflow::DropOldest, Overflow::DropNewest] {
        let mut all = collector(8, 2, overflow);
        let (a, b) = (all.open(), all.open());
        for frame in [1, 2] {
            assert_eq!(all.push(a, 0, frame, now), Ok(None));
        }
        assert_eq!(all.push(b, 0, 9, now), Ok(None), "the other has room");
        let pushed = all.push(a, 0, 3, now).map(|dropped| dropped.map(|queued| queued.frame));
        let mut taken = Vec::new();
        all.take(8, &mut taken);
        let (came_back, left) = match overflow {
            Overflow::Block => (Err(Refused::Full(3)), vec![1, 2, 9]),
            Overflow::DropOldest => (Ok(Some(1)), vec![2, 9, 3]),
            Overflow::DropNewest => (Ok(Some(3)), vec![1, 2, 9]),
        };
        assert_eq!((pushed, frames(&taken)), (came_back, left), "{overflow:?}");
        assert_eq!(all.push(a, 0, 4, now), Ok(None), "there is room again");
    }
}

#[test]
fn what_waits_when_all_streams_have_ended_is_a_batch_and_then_it_is_over() {
    let (mut all, now, mut taken) = (collector(2, 8, Overflow::Block), Instant::now(), Vec::new());
    assert_eq!(all.next(now), Next::End, "nobody can push");
    let (a, b) = (all.open(), all.open());
    (1..4).for_each(|frame| assert_eq!(all.push(a, 0, frame, now), Ok(None)));
    all.end(a);
    all.take(2, &mut taken);
    assert!(matches!(all.next(now), Next::Until(_)), "the other may push still");
    all.end(b);
    assert_eq!(all.next(now), Next::Batch(1));
    all.take(1, &mut taken);
    assert_eq!((frames(&taken), all.next(now)), (vec![1, 2, 3], Next::End));
    all.close();
    assert_eq!(all.push(a, 0, 4, now), Err(Refused::Closed(4)));
}

/// Pushes and takes at random, and keeps account of every frame.
fn explore(seed: u64, overflow: Overflow) {
    let mut random = seed;
    let mut draw = |below: u64| {
        // Knuth's MMIX constants.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (batch_size, queue) = (1 + draw(4) as usize, 1 + draw(3) as usize);
    let mut all = collector(batch_size, queue, overflow);
    let mut now = Instant::now();
    let streams: Vec<usize> = (0..1 + draw(3)).map(|_| all.open()).collect();
    let (mut accepted, mut taken, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    for frame in 0..60 {
        now += MILLISECOND * draw(5) as u32;
        let stream = streams[draw(streams.len() as u64) as usize];
        match all.push(stream, frame, frame, now) {
            Ok(out) => {
                accepted.push(frame);
                dropped.extend(out.map(|queued| queued.frame));
            }
            Err(refused) => assert_eq!((refused, overflow), (Refused::Full(frame), Overflow::Block), "seed {seed}"),
        }
        while draw(2) == 0
            && let Next::Batch(frames) = all.next(now)
        {
            assert!((1..=batch_size).contains(&frames));
            all.take(frames, &mut taken);
        }
        assert!(streams.iter().all(|stream| all.streams[*stream].waiting <= queue));
        assert!(all.queue.len() <= queue * streams.len(), "what waits is bounded");
    }
    streams.iter().for_each(|stream| all.end(*stream));
    finish(all, now, taken, &dropped, &accepted);
}

/// Takes what waits, and finds every frame that was accepted once.
fn finish(mut all: Collector<u64>, now: Instant, mut taken: Vec<Queued<u64>>, dropped: &[u64], accepted: &[u64]) {
    while let Next::Batch(frames) = all.next(now) {
        all.take(frames, &mut taken);
    }
    assert_eq!(all.next(now), Next::End);
    let delivered = frames(&taken);
    assert!(delivered.is_sorted(), "in the order of arrival");
    let mut seen = [&delivered, dropped].concat();
    seen.sort_unstable();
    assert_eq!(seen, accepted, "every frame once, taken or given back");
    let stats = all.stats();
    let sum = |of: fn(&StreamStats) -> u64| stats.streams.iter().map(of).sum::<u64>();
    assert_eq!(sum(|one| one.pushed), sum(|one| one.taken) + sum(|one| one.dropped));
}

#[test]
fn under_any_order_of_events_no_frame_is_lost_or_comes_twice() {
    for seed in 0..2000 {
        for overflow in [Overflow::Block, Overflow::DropOldest, Overflow::DropNewest] {
            explore(seed, overflow);
        }
    }
}
