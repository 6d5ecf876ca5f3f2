//! Tensors that another queue than wgpu's writes.

use super::super::tensor::read_back;
use super::super::transfer::test_lanes::{BATCH, arrive, bytes, each, fill, indices, spec, submit};
use super::super::tuning::KernelQueue;
use super::super::{WgpuBackend, WgpuTensor};
use crate::backend::{Backend, Input, Lane, Strategy, Tensor, Wait};
use crate::preprocess::{Normalize, Preprocess};

/// As [`each`], with kernels beside wgpu's queue.
fn each_beside(test: impl Fn(&dyn Fn() -> WgpuBackend)) {
    each(|tuning, open| {
        if tuning.kernels != KernelQueue::Main {
            test(open);
        }
    });
}

/// A copy of a tensor, on the application's queue.
fn copy(backend: &WgpuBackend, tensor: &WgpuTensor) -> wgpu::Buffer {
    let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let size = tensor.buffer().size();
    let desc = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
    let copy = backend.device().create_buffer(&desc);
    tensor.copy_to(&copy, 0, usize::try_from(size).expect("small")).expect("it is queued");
    copy
}

#[test]
fn a_tensor_is_idle_when_what_was_submitted_before_it_was_given_back_has_ended() {
    each_beside(|open| {
        let backend = open();
        let spec = spec(Strategy::SystemRing, Preprocess::Raw);
        let mut lane = backend.open_lane(&spec).expect("a lane");
        let (id, tensor) = submit(&mut lane, Strategy::SystemRing, &indices(0, BATCH));
        arrive(&mut lane, id, &mut Vec::new());
        assert!(tensor.must_be_idle() && tensor.is_idle().expect("a live device"), "nobody has used it");
        let first = copy(&backend, &tensor);
        tensor.given_back();
        assert!(!tensor.is_idle().expect("a live device"), "nobody has asked the device yet");
        // What a pump does while it waits for a tensor.
        while !tensor.is_idle().expect("a live device") {
            lane.reap(Wait::Poll, &mut Vec::new()).expect("a live device");
        }
        let second = fill(&mut lane, &bytes(&indices(1, BATCH)));
        let again = lane.submit(Input::Staged(second), BATCH, tensor);
        let again = again.expect("it is sent");
        arrive(&mut lane, again.id, &mut Vec::new());
        let desc = Preprocess::Raw.tensor(&spec.layout, BATCH);
        assert_eq!(again.tensor.read(&desc).expect("it is read"), bytes(&indices(1, BATCH)));
        let copied = read_back(&backend, &first, 0, desc.byte_len()).expect("it is read");
        assert_eq!(copied, bytes(&indices(0, BATCH)));
    });
}

#[test]
fn a_lane_on_wgpus_queue_leaves_the_order_to_it() {
    each(|tuning, open| {
        if tuning.kernels == KernelQueue::Main {
            let backend = open();
            let mut lane = backend.open_lane(&spec(Strategy::SystemRing, Preprocess::Raw)).expect("a lane");
            let tensor = lane.output().expect("an output");
            tensor.given_back();
            assert!(!tensor.must_be_idle() && tensor.is_idle().expect("a live device"));
        }
    });
}

#[test]
fn lane_tensor_and_device_can_be_dropped_in_any_order() {
    for order in 0..6 {
        each_beside(|open| {
            let backend = open();
            let mut lane = backend.open_lane(&spec(Strategy::Imported, Normalize::imagenet().into())).expect("a lane");
            let (id, tensor) = submit(&mut lane, Strategy::Imported, &indices(0, BATCH));
            if order % 2 == 0 {
                arrive(&mut lane, id, &mut Vec::new());
            }
            let (device, queue) = (backend.device().clone(), backend.queue().clone());
            match order {
                0 => drop((backend, lane, tensor)),
                1 => drop((lane, tensor, backend)),
                2 => {
                    let buffer = tensor.buffer().clone();
                    drop((tensor, lane, backend));
                    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                    encoder.clear_buffer(&buffer, 0, None);
                    drop(buffer);
                    queue.submit([encoder.finish()]);
                }
                3 => {
                    backend.device().destroy();
                    drop((lane, tensor, backend));
                }
                4 => {
                    backend.device().destroy();
                    drop((backend, tensor, lane));
                }
                _ => drop((tensor, backend, lane)),
            }
            if order < 3 {
                device.poll(wgpu::PollType::wait_indefinitely()).expect("it ends");
            }
        });
    }
}

#[test]
fn lanes_and_backends_of_one_device_share_its_second_one() {
    each_beside(|open| {
        let backend = open();
        let again = WgpuBackend::from_device(backend.device().clone(), backend.queue().clone()).expect("it is there");
        let spec = spec(Strategy::SystemRing, Preprocess::Raw);
        let seconds: Vec<_> = [&backend, &backend, &again.with_tuning(backend.tuning())]
            .map(|backend| backend.beside(&spec).expect("it was opened before").expect("it is another queue"))
            .into();
        assert!(seconds.iter().all(|second| second.is_same_queue(&seconds[0]) && !second.is_same_queue(&backend)));
    });
}
