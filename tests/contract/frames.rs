//! Frames that a closure writes, what comes with frames, and several streams of them in one batch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use gpufeed::{
    BatcherOptions, Element, FeedError, Feeder, FeederOptions, Field, FieldProblem, FillError, Frame, FrameBatcher,
    FrameWriter, Overflow, PushError, SampleLayout, Strategy,
};

use crate::device::TestDevice;

const BYTES: usize = 105;

fn feeder<B: TestDevice>(backend: &B, layout: SampleLayout, strategy: Strategy, batch_size: usize) -> Feeder<B> {
    let options =
        FeederOptions { batch_size, slots: 1, outputs: 2, strategy: Some(strategy), ..FeederOptions::default() };
    Feeder::new(backend, layout, options).expect("the feeder opens")
}

fn images<B: TestDevice>(backend: &B, strategy: Strategy, batch_size: usize) -> Feeder<B> {
    feeder(backend, SampleLayout::image(5, 7, 3).expect("valid"), strategy, batch_size)
}

fn frame(number: usize) -> Vec<u8> {
    (0..BYTES).map(|at| (at * 3 + number * 7) as u8).collect()
}

pub fn a_closure_writes_frames_in_place<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mut feeder = images(backend, strategy, 3);
    let mut fed = 0;
    for count in [1, 3, 2, 3] {
        let write = |out: &mut FrameWriter<'_>| {
            let number = fed + out.position();
            out.set_tag(1000 + number as u64);
            // In two parts, the second by rows with a pitch.
            let bytes = frame(number);
            out.write(&bytes[..42])?;
            let padded: Vec<u8> = bytes[42..].chunks(21).flat_map(|row| [row, &[255; 11]].concat()).collect();
            out.write_rows(&padded, 21, 32)
        };
        let batch = feeder.feed_with(count, write).expect("it is sent");
        let numbers = fed..fed + count;
        assert_eq!(batch.read().expect("readable"), numbers.clone().flat_map(frame).collect::<Vec<u8>>());
        assert!(batch.tags().iter().copied().eq(numbers.map(|number| 1000 + number as u64)));
        fed += count;
    }
}

pub fn a_closure_that_fails_or_panics_costs_its_frames_only<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mut feeder = images(backend, strategy, 2);
    // More often than there are slots and outputs.
    for round in 0..4 {
        let fails = |out: &mut FrameWriter<'_>| match out.position() {
            0 => out.write(&frame(0)).map_err(|error| error.to_string()),
            _ => Err(format!("no picture in round {round}")),
        };
        let error = feeder.feed_with(2, fails).map(drop).expect_err("the closure failed");
        assert_eq!(error, FillError::Frame { frame: 1, error: format!("no picture in round {round}") });
        let short = |out: &mut FrameWriter<'_>| out.write(&frame(0)[..BYTES - 1 + usize::from(out.position() == 0)]);
        let Err(FillError::Feed(error)) = feeder.feed_with(2, short) else { panic!("a byte is missing") };
        let problem = FieldProblem::Short { got: BYTES - 1, expected: BYTES };
        assert_eq!(error, FeedError::Field { frame: 1, field: "image".to_owned(), problem });
        let panics =
            AssertUnwindSafe(|| feeder.feed_with(1, |_| -> Result<(), ()> { panic!("of the closure") }).is_ok());
        assert_eq!(*catch_unwind(panics).expect_err("it goes on").downcast::<&str>().expect("text"), "of the closure");
        let batch = feeder.feed(&[frame(round)]).expect("slot and output are free again");
        assert_eq!((batch.read().expect("readable"), batch.indices()), (frame(round), &[round as u64][..]));
    }
    assert_eq!(
        feeder.feed_with(3, |_| Ok::<(), ()>(())).map(drop),
        Err(FillError::Feed(FeedError::Count { got: 3, most: 2 }))
    );
}

pub fn labels_fields_and_tags_come_with_the_batch<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mask = Field::array("mask", Element::U16, &[3]).expect("a field");
    let layout = SampleLayout::image(5, 7, 3).and_then(|layout| layout.with_label(Element::I32));
    let layout = layout.and_then(|layout| layout.with(mask)).and_then(|l| l.with_host("box", Element::F32, &[4]));
    let mut feeder = feeder(backend, layout.expect("a sample"), strategy, 2);
    let (pixels, boxes, masks) = ([frame(0), frame(1)], [[0.5f32; 4], [1.5; 4]], [[7u16; 3], [9; 3]]);
    let whole = |number: usize| {
        let frame = Frame::new(&pixels[number]).with_label(-3 - number as i32).with_field("box", &boxes[number]);
        frame.with_field("mask", &masks[number]).with_tag(u64::MAX - number as u64)
    };
    for _ in 0..3 {
        let batch = feeder.feed(&[whole(0), whole(1)]).expect("it is sent");
        assert_eq!(batch.read().expect("readable"), pixels.concat());
        assert_eq!(batch.read_field("mask").expect("readable"), Some([[7, 0].repeat(3), [9, 0].repeat(3)].concat()));
        assert_eq!(batch.labels().as_deref(), Some(&[-3, -4][..]));
        assert_eq!(batch.host_field("box"), Some(&[0.5f32, 0.5, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5][..]));
        assert_eq!(batch.tags(), [u64::MAX, u64::MAX - 1]);
    }
    let missing = feeder.feed(&[whole(0), Frame::new(&pixels[1]).with_label(1i32)]).map(drop).expect_err("no box");
    let problem = FieldProblem::Short { got: 0, expected: 16 };
    assert_eq!(missing, FeedError::Field { frame: 1, field: "box".to_owned(), problem });
}

pub fn a_slot_that_was_waited_for_is_for_the_next_frames<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mut feeder = images(backend, strategy, 1);
    for number in 0..5 {
        pollster::block_on(feeder.ready()).expect("the device is there");
        feeder.ready_timeout(Duration::ZERO).expect("it is kept");
        let batch = feeder.feed(&[frame(number)]).expect("it is sent");
        assert_eq!(batch.read().expect("readable"), frame(number));
    }
    feeder.ready_timeout(Duration::from_secs(60)).expect("the device finishes");
    drop(feeder); // With the slot.
}

pub fn streams_share_batches_in_the_order_of_arrival<B: TestDevice>(backend: &B, strategy: Strategy) {
    const FRAMES: u64 = 40;
    let options = BatcherOptions { max_wait: Duration::from_millis(2), queue: 3, overflow: Overflow::Block };
    let mut batcher = FrameBatcher::new(images(backend, strategy, 4), options).expect("valid");
    let streams: Vec<_> = (0..3).map(|_| batcher.stream()).collect();
    let threads = streams.into_iter().map(|mut stream| {
        std::thread::spawn(move || {
            for tag in 0..FRAMES {
                let bytes: Arc<[u8]> = frame(stream.number() * 100 + tag as usize).into();
                assert!(stream.push(bytes, tag).expect("it is accepted").is_none(), "nothing is dropped");
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    let (mut next, mut frames, mut awaited) = ([0; 3], 0, false);
    loop {
        // In turns, blocking and awaited.
        awaited = !awaited;
        let batch = if awaited { pollster::block_on(batcher.next_async()) } else { batcher.next() };
        let Some(batch) = batch else { break };
        let batch = batch.expect("it is sent");
        assert!((1..=4).contains(&batch.len()));
        let bytes = batch.read().expect("readable");
        for (origin, bytes) in batch.origins().iter().zip(bytes.chunks(BYTES)) {
            assert_eq!(
                (origin.tag, bytes),
                (next[origin.stream], &frame(origin.stream * 100 + origin.tag as usize)[..])
            );
            next[origin.stream] += 1;
        }
        assert!(batch.origins().is_sorted_by_key(|origin| origin.arrived));
        assert!(batch.tags().iter().eq(batch.origins().iter().map(|origin| &origin.tag)));
        frames += batch.len() as u64;
    }
    assert_eq!((next, frames), ([FRAMES; 3], 3 * FRAMES));
    let stats = batcher.stats();
    assert_eq!((stats.taken(), stats.dropped()), (3 * FRAMES, 0));
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

pub fn frames_whose_batch_was_not_sent_are_those_of_the_next_try<B: TestDevice>(backend: &B, strategy: Strategy) {
    let options = BatcherOptions { max_wait: Duration::ZERO, ..BatcherOptions::default() };
    let mut batcher = FrameBatcher::new(images(backend, strategy, 2), options).expect("valid");
    let mut stream = batcher.stream();
    assert!(matches!(batcher.next_timeout(Duration::from_millis(1)), Some(Err(FeedError::TimedOut(_)))));
    let mut held = Vec::new();
    for tag in 0..2 {
        stream.push(frame(tag as usize), tag).expect("it is accepted");
        held.push(batcher.next().expect("a frame waits").expect("an output is free"));
    }
    (2..4).for_each(|tag| drop(stream.push(frame(tag as usize), tag).expect("it is accepted")));
    for _ in 0..3 {
        let refused = batcher.next().expect("frames wait").map(drop).expect_err("both outputs are held");
        assert_eq!(refused, FeedError::AllTensorsLeased { outputs: 2 });
    }
    held.clear();
    let batch = batcher.next().expect("they wait still").expect("an output is free");
    assert_eq!((batch.tags(), batch.read().expect("readable")), (&[2, 3][..], [frame(2), frame(3)].concat()));
    let wrong = stream.push(vec![0; 3], 9).expect_err("it is no frame of this feeder");
    assert!(matches!(&wrong, PushError::Frame { error: FeedError::Length { got: 3, .. }, .. }), "{wrong}");
    stream.push(frame(4), 4).expect("it is accepted");
    let left: Vec<_> = batcher.close().into_iter().map(|left| (left.stream, left.tag, left.frame)).collect();
    assert_eq!(left, [(0, 4, frame(4))]);
    assert!(matches!(stream.push(frame(5), 5), Err(PushError::Closed(bytes)) if bytes == frame(5)));
}
