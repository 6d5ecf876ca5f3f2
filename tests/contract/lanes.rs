//! The contract of a lane, without a loader.

use std::time::Duration;

use gpufeed::backend::{Input, Lane, LaneSpec, SubmissionId, Submitted, Tensor, Wait};
use gpufeed::preprocess::TensorDesc;
use gpufeed::staging::{Fill, Filled, Finish, Region};
use gpufeed::{BatchLayout, DeviceError, Preprocess, SampleLayout, Strategy};

use crate::device::TestDevice;

const SAMPLE: usize = 1581;
pub const BATCH: usize = 4;

pub fn spec(strategy: Strategy, slots: usize) -> LaneSpec {
    let sample = SampleLayout::image(31, 17, 3).expect("a valid layout");
    let layout = BatchLayout::new(sample, BATCH).expect("a valid batch");
    LaneSpec { slots, outputs: 8, ..LaneSpec::new(layout, Preprocess::Raw, strategy) }
}

/// Bytes that differ by batch, and by sample within it.
pub fn batch_bytes(batch: usize, samples: usize) -> Vec<u8> {
    (0..samples * SAMPLE).map(|i| (i * 31 + batch * 101 + i / SAMPLE) as u8).collect()
}

pub fn write(mut fill: Fill, bytes: &[u8]) -> Filled {
    let (layout, samples) = (spec(Strategy::Memcpy, 1).layout, bytes.len() / SAMPLE);
    let (mut front, mut back) =
        (fill.take_region(&layout, samples / 2), fill.take_region(&layout, samples.div_ceil(2)));
    let second = bytes[samples / 2 * SAMPLE..].to_vec();
    let thread = std::thread::spawn(move || {
        write_region(&mut back, &second);
        back.commit()
    });
    write_region(&mut front, bytes);
    let front_was_last = front.commit();
    assert_ne!(front_was_last, thread.join().expect("no panic"), "exactly one region is the last");
    let Finish::Filled(filled) = fill.finish() else { panic!("every region is committed") };
    filled
}

/// Writes a region's samples, of which these are the first bytes.
fn write_region(region: &mut Region, bytes: &[u8]) {
    for (position, sample) in region.samples().zip(bytes.chunks(SAMPLE)) {
        region.writer(position, &mut []).write(sample).expect("it fits");
    }
}

pub fn begin<L: Lane>(lane: &mut L) -> Fill {
    lane.begin().expect("the device is there").expect("a slot is free")
}

/// Waits until a submission's tensor may be used, which on one queue it may at once.
pub fn arrives<L: Lane>(lane: &mut L, id: SubmissionId, finished: &mut Vec<SubmissionId>) -> Result<(), DeviceError> {
    while !lane.has_arrived(id)? {
        lane.await_arrival(Duration::from_millis(1));
        lane.reap(Wait::Poll, finished)?;
    }
    Ok(())
}

/// As a user who waits for the tensor reads it.
fn read<L: Lane>(lane: &mut L, submitted: &Submitted<L::Tensor>, desc: &TensorDesc) -> Vec<u8> {
    arrives(lane, submitted.id, &mut Vec::new()).expect("it arrives");
    submitted.tensor.read(desc).expect("it can be read")
}

pub fn bytes_arrive_as_they_were_written<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mut lane = backend.open_lane(&spec(strategy, 2)).expect("the lane opens");
    let desc = |samples| spec(strategy, 2).preprocess.tensor(&spec(strategy, 2).layout, samples);
    let mut output = lane.output().expect("an output");
    for (batch, samples) in [4, 1, 3, 2, 4].into_iter().enumerate() {
        let bytes = batch_bytes(batch, samples);
        let filled = write(begin(&mut lane), &bytes);
        let submitted = lane.submit(Input::Staged(filled), samples, output).expect("it is sent");
        let mut finished = Vec::new();
        arrives(&mut lane, submitted.id, &mut finished).expect("it arrives");
        assert_eq!(submitted.tensor.read(&desc(samples)).expect("it can be read"), bytes);
        output = submitted.tensor;
        lane.reap(Wait::All, &mut finished).expect("the device is there");
        assert_eq!((finished, lane.in_flight()), (vec![batch as u64], 0));
    }
}

pub fn several_batches_are_in_flight_at_once<B: TestDevice>(backend: &B, strategy: Strategy) {
    let spec = spec(strategy, 4);
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let fills: Vec<Fill> = (0..4).map(|_| begin(&mut lane)).collect();
    assert!(lane.begin().expect("the device is there").is_none(), "there are four slots");
    let mut tensors = Vec::new();
    // Filled and sent in another order than begun.
    for (batch, fill) in fills.into_iter().enumerate().rev() {
        let filled = write(fill, &batch_bytes(batch, BATCH));
        let output = lane.output().expect("an output");
        let submitted = lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent");
        tensors.push((batch, submitted.tensor));
    }
    let mut finished = Vec::new();
    lane.reap(Wait::AtMost(1), &mut finished).expect("the device is there");
    assert!(finished.len() >= 3 && lane.in_flight() == 4 - finished.len(), "{finished:?} are finished");
    lane.reap(Wait::All, &mut finished).expect("the device is there");
    finished.sort_unstable();
    assert_eq!(finished, [0, 1, 2, 3]);
    let desc = spec.preprocess.tensor(&spec.layout, BATCH);
    for (batch, tensor) in tensors {
        assert_eq!(tensor.read(&desc).expect("it can be read"), batch_bytes(batch, BATCH), "batch {batch}");
    }
}

pub fn a_tensor_that_is_sent_again_reads_as_what_was_sent_last<B: TestDevice>(backend: &B, strategy: Strategy) {
    let spec = spec(strategy, 2);
    let desc = spec.preprocess.tensor(&spec.layout, BATCH);
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let mut output = lane.output().expect("an output");
    for round in 0..10 {
        let mut last = 0;
        // As where a batch is dropped unread, and its tensor becomes a later one's.
        for batch in [2 * round, 2 * round + 1] {
            let filled = write(begin(&mut lane), &batch_bytes(batch, BATCH));
            let sent = lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent");
            (output, last) = (sent.tensor, sent.id);
            // So that a slow device has finished the first and not the second.
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        lane.reap(Wait::Poll, &mut Vec::new()).expect("the device is there");
        arrives(&mut lane, last, &mut Vec::new()).expect("it arrives");
        assert_eq!(output.read(&desc).expect("it can be read"), batch_bytes(2 * round + 1, BATCH), "round {round}");
        lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
    }
}

pub fn a_slot_is_not_reused_before_the_device_has_read_it<B: TestDevice>(backend: &B, strategy: Strategy) {
    let spec = spec(strategy, 2);
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let mut tensors = Vec::new();
    for batch in 0..20 {
        let fill = loop {
            match lane.begin().expect("the device is there") {
                Some(fill) => break fill,
                None => lane.reap(Wait::One, &mut Vec::new()).expect("the device is there"),
            }
        };
        let filled = write(fill, &batch_bytes(batch, BATCH));
        let output = lane.output().expect("an output");
        tensors.push(lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent").tensor);
    }
    lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
    let desc = spec.preprocess.tensor(&spec.layout, BATCH);
    for (batch, tensor) in tensors.iter().enumerate() {
        assert_eq!(tensor.read(&desc).expect("it can be read"), batch_bytes(batch, BATCH), "batch {batch}");
    }
}

pub fn nothing_in_flight_means_that_every_slot_is_free<B: TestDevice>(backend: &B, strategy: Strategy) {
    let spec = spec(strategy, 2);
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let mut outputs = vec![lane.output().expect("an output"), lane.output().expect("an output")];
    for round in 0..50 {
        let fills = [begin(&mut lane), begin(&mut lane)];
        for fill in fills {
            let filled = write(fill, &batch_bytes(round, BATCH));
            let submitted = lane.submit(Input::Staged(filled), BATCH, outputs.remove(0)).expect("it is sent");
            outputs.push(submitted.tensor);
        }
        let mut finished = Vec::new();
        while lane.in_flight() > 0 {
            lane.reap(Wait::Poll, &mut finished).expect("the device is there");
        }
        assert_eq!(finished, [2 * round as u64, 2 * round as u64 + 1], "both are reported before nothing is in flight");
    }
}

pub fn a_half_filled_slot_is_never_sent<B: TestDevice>(backend: &B, strategy: Strategy) {
    let spec = spec(strategy, 1);
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    for _ in 0..3 {
        let mut fill = begin(&mut lane);
        let (mut front, back) = (fill.take_region(&spec.layout, 1), fill.take_region(&spec.layout, BATCH - 1));
        write_region(&mut front, &[0xAA; SAMPLE]);
        front.commit();
        drop(back);
        let Finish::Cancelled(cancelled) = fill.finish() else { panic!("a region was dropped") };
        lane.cancel(cancelled);
    }
    let bytes = batch_bytes(9, BATCH);
    let filled = write(begin(&mut lane), &bytes);
    let output = lane.output().expect("an output");
    let submitted = lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent");
    let desc = spec.preprocess.tensor(&spec.layout, BATCH);
    assert_eq!(read(&mut lane, &submitted, &desc), bytes);
}

pub fn what_is_refused_comes_back<B: TestDevice>(backend: &B, strategy: Strategy) {
    let spec = spec(strategy, 1);
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let output = lane.output().expect("an output");
    // One sample is filled, and four are to be sent.
    let filled = write(begin(&mut lane), &batch_bytes(0, 1));
    let rejected = lane.submit(Input::Staged(filled), BATCH, output).expect_err("too little is filled");
    assert!(matches!(rejected.error, DeviceError::Refused { .. }), "{}", rejected.error);
    let direct = lane
        .submit(Input::Direct { offsets: &[0], records: &[] }, 1, rejected.tensor)
        .expect_err("this strategy has slots");
    assert!(matches!(direct.error, DeviceError::Refused { .. }), "{}", direct.error);
    // The only slot and the output are there again.
    let bytes = batch_bytes(1, BATCH);
    let filled = write(begin(&mut lane), &bytes);
    let submitted = lane.submit(Input::Staged(filled), BATCH, direct.tensor).expect("it is sent");
    let desc = spec.preprocess.tensor(&spec.layout, BATCH);
    assert_eq!(read(&mut lane, &submitted, &desc), bytes);
}

pub fn an_output_that_fails_does_not_take_the_slot_along<B: TestDevice>(backend: &B, strategy: Strategy) {
    let spec = spec(strategy, 1);
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let desc = spec.preprocess.tensor(&spec.layout, BATCH);
    for batch in 0..3 {
        let spoilt = lane.output().expect("an output");
        if !backend.spoil(&spoilt) {
            return;
        }
        let filled = write(begin(&mut lane), &batch_bytes(0, BATCH));
        let mut finished = Vec::new();
        let error = match lane.submit(Input::Staged(filled), BATCH, spoilt) {
            Err(rejected) => rejected.error,
            // Where the copy goes first, through a queue of its own, the tensor is looked at when it has arrived. Where kernels run there
            // too, the memory has other owners beside the user, and is written all the same.
            Ok(sent) => match arrives(&mut lane, sent.id, &mut finished) {
                Err(error) => error,
                Ok(()) => return,
            },
        };
        assert!(matches!(error, DeviceError::Refused { .. }), "{error}");
        lane.reap(Wait::All, &mut finished).expect("the device is there");
        let bytes = batch_bytes(batch + 1, BATCH);
        let filled = write(begin(&mut lane), &bytes);
        let output = lane.output().expect("an output");
        let submitted = lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent");
        finished.clear();
        arrives(&mut lane, submitted.id, &mut finished).expect("it arrives");
        assert_eq!(submitted.tensor.read(&desc).expect("it can be read"), bytes);
        lane.reap(Wait::All, &mut finished).expect("the device is there");
        assert_eq!(finished, [submitted.id], "the failed submission is not reported behind it");
    }
}

pub fn the_devices_own_times_are_those_of_its_batches<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mut lane = backend.open_lane(&spec(strategy, 2)).expect("the lane opens");
    assert_eq!(lane.gpu_times(), None, "nobody asked");
    let mut lane = backend.open_lane(&LaneSpec { timing: true, ..spec(strategy, 2) }).expect("the lane opens");
    let mut output = lane.output().expect("an output");
    for batch in 0..3 {
        let filled = write(begin(&mut lane), &batch_bytes(batch, BATCH));
        output = lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent").tensor;
        lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
        // A device without a clock to be believed tells nothing.
        if let Some(times) = lane.gpu_times() {
            assert_eq!(times.batches, batch as u64 + 1);
            assert!(times.copy_s >= 0.0 && times.kernel_s >= 0.0 && times.copy_s + times.kernel_s > 0.0, "{times:?}");
        }
    }
}

pub fn what_is_submitted_ahead_is_bounded<B: TestDevice>(backend: &B, strategy: Strategy) {
    let spec = LaneSpec { outputs: 2, ..spec(strategy, 2) };
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let mut output = lane.output().expect("an output");
    // Nobody asks what has finished, and the output is given back at once, as by a consumer that queues its own work.
    let mut submitted = 0;
    while let Some(fill) = lane.begin().expect("the device is there") {
        let filled = write(fill, &batch_bytes(submitted, BATCH));
        output = lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent").tensor;
        submitted += 1;
        assert!(submitted <= spec.slots + spec.outputs, "{submitted} batches are queued");
    }
    assert!(submitted >= spec.slots);
    lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
    let desc = spec.preprocess.tensor(&spec.layout, BATCH);
    assert_eq!(output.read(&desc).expect("it can be read"), batch_bytes(submitted - 1, BATCH));
}
