//! Lanes whose copies or kernels go beside wgpu's queue.

#![allow(clippy::print_stderr)] // A test that skips itself says so.

use std::sync::Arc;

use super::super::tuning::{CopyQueue, KernelQueue, Tuning};
use super::test_lanes::{BATCH, PIXELS, SAMPLES, arrive, backend, both, bytes, data, each, indices, spec, submit};
use crate::backend::{Backend, Input, Lane, Strategy, Tensor, Wait};
use crate::error::{DeviceError, OpenError};
use crate::layout::SampleLayout;
use crate::loader::{Loader, LoaderOptions};
use crate::memory::HostArena;
use crate::preprocess::{Normalize, Preprocess, fingerprint};
use crate::source::MemorySource;

#[test]
fn what_arrives_beside_wgpus_queue_is_what_was_sent() {
    each(|tuning, open| {
        let backend = open();
        let normalize: Preprocess = Normalize::imagenet().into();
        for strategy in both(&backend) {
            for preprocess in [Preprocess::Raw, normalize.clone()] {
                let spec = spec(strategy, preprocess.clone());
                let mut lane = backend.open_lane(&spec).expect("a lane");
                let mut finished = Vec::new();
                for (number, samples) in [BATCH, 3, BATCH, 1, BATCH].into_iter().enumerate() {
                    let indices = indices(number, samples);
                    let (id, tensor) = submit(&mut lane, strategy, &indices);
                    assert!(!lane.has_arrived(id).expect("it is under way"), "its second half was not sent yet");
                    let waits_for_the_copy = tuning.kernels == KernelQueue::Main;
                    assert!(!waits_for_the_copy || !tensor.is_written().expect("a live device"));
                    arrive(&mut lane, id, &mut finished);
                    tensor.wait().expect("it is written");
                    let right = bytes(&indices);
                    let prints: Vec<_> = right.chunks(PIXELS).map(fingerprint).collect();
                    if preprocess == Preprocess::Raw {
                        let desc = preprocess.tensor(&spec.layout, samples);
                        assert_eq!(tensor.read(&desc).expect("it is read"), right, "{strategy}, batch {number}");
                    }
                    assert_eq!(
                        tensor.fingerprints(samples).expect("it is read"),
                        Some(prints),
                        "{strategy}, batch {number}"
                    );
                    lane.reap(Wait::All, &mut finished).expect("a live device");
                }
                assert_eq!((finished, lane.in_flight()), (vec![0, 1, 2, 3, 4], 0));
            }
        }
    });
}

#[test]
fn a_wait_for_all_sends_second_halves_by_itself() {
    each(|_, open| {
        let backend = open();
        let mut lane = backend.open_lane(&spec(Strategy::SystemRing, Preprocess::Raw)).expect("a lane");
        let sent: Vec<_> =
            (0..2).map(|number| submit(&mut lane, Strategy::SystemRing, &indices(number, BATCH))).collect();
        assert_eq!(lane.in_flight(), 2);
        assert!(lane.begin().expect("a live device").is_none(), "both slots are being copied");
        let mut finished = Vec::new();
        lane.reap(Wait::All, &mut finished).expect("a live device");
        assert_eq!(finished, [0, 1]);
        for (number, (id, tensor)) in sent.into_iter().enumerate() {
            assert!(lane.has_arrived(id).expect("it has") && tensor.is_written().expect("a live device"));
            let desc = Preprocess::Raw.tensor(&lane.spec.layout, BATCH);
            assert_eq!(tensor.read(&desc).expect("it is read"), bytes(&indices(number, BATCH)));
        }
        assert!(lane.begin().expect("a live device").is_some());
    });
}

#[test]
fn a_loader_delivers_each_batch_when_it_has_arrived() {
    each(|_, open| {
        let backend = open();
        let layout = SampleLayout::image(5, 7, 3).expect("an image");
        let arena = HostArena::new(SAMPLES * PIXELS, |bytes| bytes.copy_from_slice(&data())).expect("a little memory");
        let source = Arc::new(MemorySource::in_arena(Arc::new(arena), layout).expect("a source"));
        for strategy in both(&backend) {
            for preprocess in [Preprocess::Raw, Normalize::imagenet().into()] {
                // Nothing is read before all is delivered: then the loader's thread submits no more.
                let options = LoaderOptions {
                    batch_size: BATCH,
                    slots: 2,
                    outputs: 8,
                    seed: Some(3),
                    fingerprints: true,
                    strategy: Some(strategy),
                    preprocess,
                    ..LoaderOptions::default()
                };
                let mut loader = Loader::new(&backend, source.clone(), options).expect("a loader");
                let batches: Vec<_> = loader.epoch(0).map(|batch| batch.expect("it arrives")).collect();
                assert_eq!(batches.len(), SAMPLES.div_ceil(BATCH));
                loader.wait_idle().expect("a live device");
                for batch in &batches {
                    let indices: Vec<_> = batch.indices().iter().map(|&index| index as usize).collect();
                    let right: Vec<_> = bytes(&indices).chunks(PIXELS).map(fingerprint).collect();
                    assert_eq!(
                        batch.fingerprints().expect("it is read"),
                        Some(right),
                        "{strategy}, {}",
                        batch.number()
                    );
                }
            }
        }
    });
}

#[test]
fn more_batches_than_there_are_arrival_buffers_are_refused_and_cost_nothing() {
    each(|tuning, open| {
        if tuning.copies == CopyQueue::Main {
            return;
        }
        let backend = open();
        if !both(&backend).contains(&Strategy::Imported) {
            return;
        }
        let mut lane = backend.open_lane(&spec(Strategy::Imported, Preprocess::Raw)).expect("a lane");
        let sent: Vec<_> =
            (0..2).map(|number| submit(&mut lane, Strategy::Imported, &indices(number, BATCH))).collect();
        let output = lane.output().expect("an output");
        let rejected =
            lane.submit(Input::Direct { offsets: &[0], records: &[] }, 1, output).expect_err("both are on their way");
        assert!(matches!(rejected.error, DeviceError::Refused { .. }), "{}", rejected.error);
        let mut finished = Vec::new();
        lane.reap(Wait::All, &mut finished).expect("a live device");
        assert_eq!(finished, [0, 1]);
        let sent_again =
            lane.submit(Input::Direct { offsets: &[0], records: &[] }, 1, rejected.tensor).expect("there is room");
        arrive(&mut lane, sent_again.id, &mut finished);
        drop(sent);
    });
}

#[test]
fn what_a_lane_takes_is_what_was_planned() {
    each(|tuning, open| {
        let backend = open();
        for strategy in both(&backend) {
            let spec = spec(strategy, Preprocess::Raw);
            let planned = backend.footprint(&spec).expect("it fits");
            if tuning.copies != CopyQueue::Main {
                // With kernels beside too, raw bytes land in the tensor.
                let arrivals = if tuning.kernels == KernelQueue::Main { 2 } else { 0 };
                assert_eq!(planned.device, arrivals * spec.layout.slot_bytes() as u64, "{strategy}");
            }
            let mut lane = backend.open_lane(&spec).expect("a lane");
            let _outputs = [lane.output().expect("an output"), lane.output().expect("an output")];
            assert_eq!(lane.memory().held, planned, "{strategy}");
        }
    });
}

#[test]
fn a_lane_is_dropped_while_batches_arrive() {
    each(|_, open| {
        for destroyed in [false, true] {
            for strategy in both(&open()) {
                let backend = open();
                let mut lane = backend.open_lane(&spec(strategy, Normalize::imagenet().into())).expect("a lane");
                let sent = submit(&mut lane, strategy, &indices(0, BATCH));
                if destroyed {
                    backend.device().destroy();
                }
                drop(lane);
                assert_eq!(sent.1.is_written().is_ok_and(|written| written), !destroyed, "{strategy}");
                drop((sent, backend));
            }
        }
    });
}

#[test]
fn a_batch_of_a_lost_device_is_reported_and_never_arrives() {
    each(|_, open| {
        let backend = open();
        let mut lane = backend.open_lane(&spec(Strategy::SystemRing, Preprocess::Raw)).expect("a lane");
        let (id, _tensor) = submit(&mut lane, Strategy::SystemRing, &indices(0, BATCH));
        backend.device().destroy();
        let mut finished = Vec::new();
        let error = lane.reap(Wait::All, &mut finished).expect_err("the device is gone");
        assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
        assert_eq!((finished, lane.in_flight()), (vec![id], 0));
        assert!(matches!(lane.has_arrived(id), Err(DeviceError::Lost { .. })));
    });
}

#[test]
fn a_device_with_one_queue_goes_on_as_before_and_says_why_when_asked_for_another() {
    let Some(usual) = backend(Tuning::default()) else { return };
    let spec = spec(Strategy::SystemRing, Normalize::imagenet().into());
    let Err(reason) = super::super::apis::device_families(usual.device()) else {
        eprintln!("skipped: this device has more than one kind of queue");
        return;
    };
    let tuned = |copies| usual.with_tuning(Tuning { copies, ..Tuning::default() });
    for copies in [CopyQueue::Transfer, CopyQueue::Compute] {
        let error = tuned(copies).open_lane(&spec).map(drop).expect_err("there is none");
        let OpenError::Unsupported(error) = error else { panic!("{error}") };
        assert_eq!(error.reason, reason.to_string());
    }
    let tuned_kernels = |kernels| usual.with_tuning(Tuning { kernels, ..Tuning::default() });
    for kernels in [KernelQueue::Compute, KernelQueue::LowCompute] {
        let error = tuned_kernels(kernels).open_lane(&spec).map(drop).expect_err("there is none");
        assert!(matches!(error, OpenError::Unsupported(_)), "{error}");
    }
    let beside = tuned(CopyQueue::Beside);
    assert_eq!(beside.footprint(&spec).expect("it fits"), usual.footprint(&spec).expect("it fits"));
    let mut lane = beside.open_lane(&spec).expect("a lane");
    let (id, _) = submit(&mut lane, Strategy::SystemRing, &indices(0, BATCH));
    assert!(lane.has_arrived(id).expect("one queue orders all"));
}
