//! What only CUDA has: kernels of every shape against the CPU, memory that the device reads by itself, an application's
//! streams and steps, and page-lock failures. Skipped in sight where there is no driver.

#![cfg(feature = "cuda")]
#![allow(clippy::print_stderr)] // A test that skips itself says so.

mod application;
#[path = "../cuda_support/mod.rs"]
mod cuda_support;
mod step;

use std::sync::Arc;

use cuda_support::{CASES, check_tensor, image_bytes, lane_spec, on_cuda};
use gpufeed::backend::cuda::{CudaBackend, CudaLane, CudaTensor, GatherMethod, KernelPriority, Tuning};
use gpufeed::backend::{Input, Lane, LaneSpec, Tensor, Wait};
use gpufeed::preprocess::fingerprint;
use gpufeed::staging::{Filled, Finish};
use gpufeed::{
    Backend, BatchLayout, DeviceError, FloatType, HostArena, Normalize, OpenError, Preprocess, SampleLayout,
    StableHostMemory, Strategy, TensorLayout,
};

/// Sends one batch through a slot.
fn send(lane: &mut CudaLane, layout: &BatchLayout, bytes: &[u8], samples: usize, output: CudaTensor) -> CudaTensor {
    let filled = fill(lane, layout, bytes);
    lane.submit(Input::Staged(filled), samples, output).expect("it is sent").tensor
}

/// Why a batch of eight cannot be sent.
fn send_result(lane: &mut CudaLane, layout: &BatchLayout, bytes: &[u8], output: CudaTensor) -> Result<(), DeviceError> {
    let filled = fill(lane, layout, bytes);
    lane.submit(Input::Staged(filled), 8, output).map(drop).map_err(|rejected| rejected.error)
}

fn fill(lane: &mut CudaLane, layout: &BatchLayout, bytes: &[u8]) -> Filled {
    let mut fill = lane.begin().expect("the device is there").expect("a slot is free");
    let samples = bytes.chunks_exact(layout.payload(1));
    let mut region = fill.take_region(layout, samples.len());
    for (position, sample) in samples.enumerate() {
        region.writer(position, &mut []).write(sample).expect("it fits");
    }
    region.commit();
    let Finish::Filled(filled) = fill.finish() else { panic!("the region is committed") };
    filled
}

#[test]
fn every_shape_is_normalised_within_the_bound() {
    on_cuda("every_shape_is_normalised_within_the_bound", |backend| {
        for case in CASES {
            for (order, dtype) in cuda_support::tensors() {
                let spec = lane_spec(case, order, dtype, Strategy::PinnedRing);
                let mut lane = backend.open_lane(&spec).expect("the lane opens");
                let mut output = lane.output().expect("an output");
                for samples in [1, 3, spec.layout.batch_size()] {
                    let bytes = image_bytes(&spec.layout, samples);
                    output = send(&mut lane, &spec.layout, &bytes, samples, output);
                    check_tensor(&spec, &bytes, &output);
                    lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
                }
            }
        }
    });
}

#[test]
fn a_batch_that_is_normalised_in_parts_is_within_the_bound() {
    on_cuda("a_batch_that_is_normalised_in_parts_is_within_the_bound", |backend| {
        for priority in [KernelPriority::Least, KernelPriority::Greatest] {
            let backend = backend.with_tuning(Tuning { priority, part_bytes: 1 });
            // Sixteen samples a launch where one is no whole vectors, and one elsewhere.
            for case in [(5, 7, 3, 40), (31, 17, 3, 33), (1, 7, 4, 17), (5, 7, 1, 50), (8, 8, 3, 5), (5, 4, 4, 7)] {
                for (order, dtype) in cuda_support::tensors() {
                    let spec = lane_spec(case, order, dtype, Strategy::PinnedRing);
                    let mut lane = backend.open_lane(&spec).expect("the lane opens");
                    let bytes = image_bytes(&spec.layout, spec.layout.batch_size());
                    let output = lane.output().expect("an output");
                    let output = send(&mut lane, &spec.layout, &bytes, spec.layout.batch_size(), output);
                    check_tensor(&spec, &bytes, &output);
                }
            }
        }
    });
}

#[test]
fn halves_round_to_even_keep_subnormals_and_overflow() {
    on_cuda("halves_round_to_even_keep_subnormals_and_overflow", |backend| {
        let tie = |bits: i32, bias: f64| {
            let std = 2f64.powi(bits) / 255.0;
            (-bias * std, std)
        };
        let ranges = [tie(9, 8.0), tie(9, -8.0), tie(27, 0.0), tie(31, 0.0), (0.5, 70_000.0), (0.2, 1e-5)];
        for (mean, std) in ranges {
            let normalize = Normalize::new(&[mean], &[std]).with_dtype(FloatType::F16);
            let sample = SampleLayout::image(16, 16, 1).expect("valid");
            let spec = LaneSpec {
                layout: BatchLayout::new(sample, 1).expect("valid"),
                preprocess: normalize.clone().into(),
                ..lane_spec(CASES[0], TensorLayout::Nhwc, FloatType::F16, Strategy::PinnedRing)
            };
            let mut lane = backend.open_lane(&spec).expect("the lane opens");
            let output = lane.output().expect("an output");
            let bytes: Vec<u8> = (0..=255).collect();
            let tensor = send(&mut lane, &spec.layout, &bytes, 1, output);
            let read = tensor.read(&spec.preprocess.tensor(&spec.layout, 1)).expect("it can be read");
            for (&pixel, half) in bytes.iter().zip(read.chunks_exact(2)) {
                let value = f64::from(pixel) * normalize.scale(0) + normalize.bias(0);
                let got = half::f16::from_le_bytes([half[0], half[1]]);
                let exact = half::f16::from_f64(value);
                let near = (got.to_f64() - value).abs() <= gpufeed::preprocess::error_bound(&normalize, 0, pixel);
                assert!(got == exact || (near && std != tie(9, 0.0).1), "{pixel}: {got} instead of {value}");
            }
        }
    });
}

#[test]
fn raw_samples_of_odd_sizes_have_the_cpus_fingerprints() {
    on_cuda("raw_samples_of_odd_sizes_have_the_cpus_fingerprints", |backend| {
        for (length, batch) in [(1, 70_000), (3, 9), (4099, 40), (40_001, 7), (16_384, 8), (2_000_001, 2)] {
            let sample = SampleLayout::bytes(&[length]).expect("valid");
            let spec = LaneSpec {
                layout: BatchLayout::new(sample, batch).expect("valid"),
                preprocess: Preprocess::Raw,
                ..lane_spec(CASES[0], TensorLayout::Nchw, FloatType::F32, Strategy::PinnedRing)
            };
            let mut lane = backend.open_lane(&spec).expect("the lane opens");
            let bytes: Vec<u8> = (0..length * batch).map(|i| (i * 7 + i / 251) as u8).collect();
            let output = lane.output().expect("an output");
            let tensor = send(&mut lane, &spec.layout, &bytes, batch, output);
            let right: Vec<u64> = bytes.chunks_exact(length).map(fingerprint).collect();
            assert!(tensor.fingerprints(batch).expect("readable").as_ref() == Some(&right), "{length} x {batch}");
            assert!(tensor.read(&spec.preprocess.tensor(&spec.layout, batch)).expect("readable") == bytes);
        }
    });
}

/// Every sample of a data set in page-locked memory, gathered in another order, several batches in flight.
fn gathered(backend: &CudaBackend, gather: GatherMethod) {
    let Ok(backend) = backend.with_gather(gather) else {
        return eprintln!("skipped: {gather:?} needs a newer driver");
    };
    for case in CASES {
        for (order, dtype) in cuda_support::tensors() {
            let mut spec = lane_spec(case, order, dtype, Strategy::Registered);
            let (sample, batch) = (spec.layout.sample().byte_len(), spec.layout.batch_size());
            let data = image_bytes(&BatchLayout::new(spec.layout.sample().clone(), 40).expect("valid"), 40);
            let arena = HostArena::new(data.len(), |bytes| bytes.copy_from_slice(&data)).expect("memory");
            spec.memory = Some(Arc::new(arena));
            let mut lane = backend.open_lane(&spec).expect("the lane opens");
            assert!(lane.begin().expect("the device is there").is_none(), "there are no slots");
            let outputs: Vec<CudaTensor> = (0..4).map(|_| lane.output().expect("an output")).collect();
            for (turn, output) in outputs.into_iter().enumerate() {
                let samples = if turn == 3 { 1 } else { batch };
                let chosen: Vec<usize> = (0..samples).map(|i| (i * 17 + turn * 5) % 40).collect();
                let offsets: Vec<u64> = chosen.iter().map(|index| (index * sample) as u64).collect();
                let sent = lane
                    .submit(Input::Direct { offsets: &offsets, records: &[] }, samples, output)
                    .expect("it is sent");
                let bytes: Vec<u8> =
                    chosen.iter().flat_map(|index| data[index * sample..(index + 1) * sample].to_vec()).collect();
                check_tensor(&spec, &bytes, &sent.tensor);
            }
            let mut finished = Vec::new();
            lane.reap(Wait::All, &mut finished).expect("the device is there");
            assert_eq!((finished, lane.in_flight()), (vec![0, 1, 2, 3], 0));
        }
    }
}

#[test]
fn registered_memory_is_gathered_by_batched_copies() {
    on_cuda("registered_memory_is_gathered_by_batched_copies", |backend| gathered(&backend, GatherMethod::Batched));
}

#[test]
fn registered_memory_is_gathered_by_single_copies() {
    on_cuda("registered_memory_is_gathered_by_single_copies", |backend| gathered(&backend, GatherMethod::Each));
}

#[test]
fn registered_memory_is_gathered_by_the_kernel() {
    on_cuda("registered_memory_is_gathered_by_the_kernel", |backend| gathered(&backend, GatherMethod::Kernel));
}

#[test]
fn a_registration_is_shared_by_lanes_and_ends_with_the_last() {
    on_cuda("a_registration_is_shared_by_lanes_and_ends_with_the_last", |backend| {
        let mut spec = lane_spec(CASES[0], TensorLayout::Nchw, FloatType::F32, Strategy::Registered);
        let error = backend.open_lane(&spec).map(drop).expect_err("no memory was given");
        assert!(matches!(error, OpenError::Unsupported(_)), "{error}");
        let arena: Arc<dyn StableHostMemory> = Arc::new(HostArena::new(1 << 20, |_| ()).expect("memory"));
        spec.memory = Some(Arc::clone(&arena));
        for _ in 0..3 {
            let first = backend.open_lane(&spec).expect("the lane opens");
            let mut second = backend.open_lane(&spec).expect("the same memory again");
            drop(first);
            let output = second.output().expect("an output");
            let beyond = second
                .submit(Input::Direct { offsets: &[1 << 20], records: &[] }, 1, output)
                .expect_err("beyond the memory");
            assert!(matches!(beyond.error, DeviceError::Refused { .. }), "{}", beyond.error);
            second.submit(Input::Direct { offsets: &[0], records: &[] }, 1, beyond.tensor).expect("it is still locked");
            drop(second);
        }
        spec.memory = None;
        assert_eq!(Arc::strong_count(&arena), 1, "nobody holds the memory any more");
    });
}

#[test]
fn more_page_locked_memory_than_there_is_is_refused_as_the_hosts() {
    on_cuda("more_page_locked_memory_than_there_is_is_refused_as_the_hosts", |backend| {
        let spec = LaneSpec {
            layout: BatchLayout::new(SampleLayout::bytes(&[1 << 28]).expect("valid"), 4).expect("valid"),
            preprocess: Preprocess::Raw,
            slots: 1 << 13,
            outputs: 1,
            fingerprints: false,
            ..lane_spec(CASES[0], TensorLayout::Nchw, FloatType::F32, Strategy::PinnedRing)
        };
        let error = backend.open_lane(&spec).map(drop).expect_err("eight tebibytes");
        let OpenError::Device(DeviceError::PageLock { bytes, reason }) = &error else {
            panic!("another error: {error}")
        };
        assert_eq!(*bytes, 8 << 40);
        assert!(reason.contains("ulimit -l"), "{reason}");
        assert!(!error.to_string().contains("GPU"), "{error}");
    });
}

#[test]
fn ceilings_can_be_measured() {
    on_cuda("ceilings_can_be_measured", |backend| {
        let short = std::time::Duration::from_millis(5);
        assert!(backend.copy_ceiling(1 << 20, short).expect("measured") > 0.0);
        let spec = lane_spec(CASES[0], TensorLayout::Nchw, FloatType::F32, Strategy::PinnedRing);
        let speed = backend.kernel_speed(&spec, short).expect("measured");
        assert!(speed.normalize > 0.0 && speed.copy > 0.0, "{speed:?}");
        let info = backend.info();
        eprintln!("{info:#?}");
        assert!(info.pci.is_some() && info.memory.is_some_and(|bytes| bytes > 1 << 28), "{info:?}");
    });
}
