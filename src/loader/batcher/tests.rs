//! Both ends of a batcher, with threads and awaited. What is due and what is dropped is the collector's, and tested there.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread::spawn;

use super::*;
use crate::backend::host::HostBackend;
use crate::layout::SampleLayout;
use crate::loader::FeederOptions;

fn batcher(batch_size: usize, queue: usize, max_wait: Duration) -> FrameBatcher<HostBackend, Vec<u8>> {
    let options = FeederOptions { batch_size, ..FeederOptions::default() };
    let layout = SampleLayout::bytes(&[2]).expect("a layout");
    let feeder = Feeder::new(&HostBackend::new(), layout, options).expect("a feeder");
    FrameBatcher::new(feeder, BatcherOptions { max_wait, queue, overflow: Overflow::Block }).expect("valid")
}

const HOUR: Duration = Duration::from_secs(3600);

fn tags(batch: Option<Result<FrameBatch<HostBackend>, FeedError>>) -> Vec<u64> {
    batch.expect("there are frames").expect("it is sent").tags().to_vec()
}

#[test]
fn whoever_waits_for_room_goes_on_when_there_is_some_and_gets_the_frame_back_when_there_never_will_be() {
    let mut batcher = batcher(2, 1, HOUR);
    let mut streams = [batcher.stream(), batcher.stream()];
    streams.iter_mut().for_each(|stream| drop(stream.push(vec![0; 2], 0).expect("there is room")));
    assert!(matches!(streams[0].try_push(vec![1; 2], 1), Err(PushError::Full(frame)) if frame == [1; 2]));
    let [mut blocking, mut awaiting] = streams;
    let blocked = spawn(move || {
        let second = blocking.push(vec![1; 2], 1).map(drop);
        (second, blocking.push(vec![2; 2], 2).map(drop))
    });
    let awaited = spawn(move || {
        let second = pollster::block_on(awaiting.push_async(vec![1; 2], 1)).map(drop);
        (second, pollster::block_on(awaiting.push_async(vec![2; 2], 2)).map(drop))
    });
    assert_eq!(tags(batcher.next()), [0, 0]);
    assert_eq!(tags(batcher.next()), [1, 1], "both went on");
    while batcher.shared.state().collector.stats().streams.iter().any(|stream| stream.pushed < 3) {
        std::thread::yield_now();
    }
    let third = batcher.close();
    assert_eq!(third.iter().map(|frame| frame.tag).collect::<Vec<_>>(), [2, 2]);
    for thread in [blocked, awaited] {
        let (second, third) = thread.join().expect("no panic");
        assert!(second.is_ok() && third.is_ok());
    }
}

#[test]
fn a_batcher_that_ends_lets_go_of_whoever_waits() {
    let mut batcher = batcher(8, 1, HOUR);
    let mut stream = batcher.stream();
    stream.push(vec![0; 2], 0).expect("there is room");
    let blocked = spawn(move || stream.push(vec![1; 2], 1));
    drop(batcher);
    let refused = blocked.join().expect("no panic").expect_err("nobody takes it");
    assert_eq!(
        (refused.to_string().as_str(), refused.into_frame()),
        ("the batcher takes no frames any more", vec![1; 2])
    );
}

#[test]
fn an_awaited_batch_comes_when_it_is_due_though_nothing_else_happens() {
    let mut batcher = batcher(8, 8, Duration::from_millis(2));
    let mut stream = batcher.stream();
    for tag in 0..3 {
        stream.push(vec![0; 2], tag).expect("there is room");
        assert_eq!(tags(pollster::block_on(batcher.next_async())), [tag]);
    }
    drop(stream);
    assert!(pollster::block_on(batcher.next_async()).is_none());
}

#[test]
fn dropping_what_is_awaited_loses_nothing() {
    let mut batcher = batcher(2, 8, HOUR);
    let mut stream = batcher.stream();
    stream.push(vec![0; 2], 0).expect("there is room");
    let poll = |batcher: &mut FrameBatcher<HostBackend, Vec<u8>>| {
        let mut next = pin!(batcher.next_async());
        matches!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
    };
    assert!(poll(&mut batcher), "its company is missing");
    stream.push(vec![1; 2], 1).expect("there is room");
    assert_eq!(tags(batcher.next()), [0, 1]);
}

#[test]
fn a_frame_that_changed_since_it_was_pushed_is_left_out_and_named() {
    struct Fickle(std::cell::Cell<bool>);
    impl AsFrame for Fickle {
        fn as_frame(&self) -> Frame<'_> {
            Frame::new(if self.0.replace(true) { &[1] } else { &[1, 1] })
        }
    }
    let feeder = Feeder::new(
        &HostBackend::new(),
        SampleLayout::bytes(&[2]).expect("a layout"),
        FeederOptions { batch_size: 2, ..FeederOptions::default() },
    );
    let mut batcher = FrameBatcher::new(feeder.expect("a feeder"), BatcherOptions::default()).expect("valid");
    let mut stream = batcher.stream();
    stream.push(Fickle(false.into()), 1).expect("it is a frame");
    drop(stream);
    let error = batcher.next().expect("a frame waits").map(drop).expect_err("it is none any more");
    assert_eq!(error, FeedError::Length { frame: 0, got: 1, expected: 2 });
    assert!(batcher.next().is_none(), "it does not stand in the way");
}
