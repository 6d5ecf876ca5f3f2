//! What only CUDA has: kernels of every shape against the CPU, memory that the device reads by itself, an application's
//! streams, and page-lock failures. Skipped in sight where there is no driver.

#![cfg(feature = "cuda")]
#![allow(clippy::print_stderr)] // A test that skips itself says so.

mod cuda_support;

use std::sync::Arc;

use cuda_support::{CASES, check_tensor, image_bytes, lane_spec, on_cuda};
use gpufeed::backend::cuda::{CudaBackend, CudaLane, CudaTensor, GatherMethod, KernelPriority, OnStream, Tuning};
use gpufeed::backend::{Input, Lane, LaneSpec, Step, Tensor, Wait};
use gpufeed::cudarc::driver::sys::CUresult;
use gpufeed::cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError, result};
use gpufeed::preprocess::fingerprint;
use gpufeed::staging::{Filled, Finish};
use gpufeed::{
    Backend, BatchLayout, DeviceError, Element, FeedError, Feeder, FeederOptions, Field, FloatType, HostArena,
    Normalize, OpenError, Preprocess, SampleLayout, SourceError, StableHostMemory, Strategy, TensorLayout,
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

/// Keeps a stream busy for a while, then copies the tensor into the returned memory.
#[allow(unsafe_code)]
fn slow_copy(stream: &Arc<CudaStream>, guard: &OnStream<'_>, bytes: usize) -> CudaSlice<u8> {
    let slow = stream.alloc_zeros::<u8>(1 << 28).expect("memory");
    let mut other = stream.alloc_zeros::<u8>(1 << 28).expect("memory");
    for _ in 0..40 {
        stream.memcpy_dtod(&slow, &mut other).expect("queued");
    }
    let copy = stream.alloc_zeros::<u8>(bytes).expect("memory");
    let (to, synced) = copy.device_ptr(stream);
    // SAFETY: the stream holds the guard, and both memories have so many bytes.
    let from = unsafe { guard.tensor().device_address() };
    // SAFETY: as above.
    unsafe { result::memcpy_dtod_async(to, from, bytes, stream.cu_stream()) }.expect("queued");
    drop(synced);
    copy
}

#[test]
fn a_batch_is_not_overwritten_before_an_applications_stream_has_read_it() {
    on_cuda("a_batch_is_not_overwritten_before_an_applications_stream_has_read_it", |backend| {
        let spec = lane_spec((224, 224, 3, 8), TensorLayout::Nchw, FloatType::F32, Strategy::PinnedRing);
        let mut lane = backend.open_lane(&spec).expect("the lane opens");
        let bytes = image_bytes(&spec.layout, 8);
        let others: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        let stream = backend.context().new_stream().expect("a stream");
        let output = lane.output().expect("an output");
        let first = send(&mut lane, &spec.layout, &bytes, 8, output);
        let desc = spec.preprocess.tensor(&spec.layout, 8);
        let right = first.read(&desc).expect("it can be read");
        let guard = first.on_stream(&stream).expect("the tensor can be used");
        let refused = send_result(&mut lane, &spec.layout, &others, first.clone()).expect_err("it is in use");
        assert!(matches!(refused, DeviceError::Refused { .. }), "{refused}");
        let copy = slow_copy(&stream, &guard, right.len());
        drop(guard);
        let second = send(&mut lane, &spec.layout, &others, 8, first);
        assert!(stream.clone_dtoh(&copy).expect("it can be read") == right, "the copy saw the second batch");
        check_tensor(&spec, &others, &second);
    });
}

#[test]
fn an_error_that_an_application_recorded_fails_no_batch_and_stays_for_the_application() {
    on_cuda("an_error_that_an_application_recorded_fails_no_batch_and_stays_for_the_application", |backend| {
        let theirs = DriverError(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        let record = || backend.context().record_err::<()>(Err(theirs));
        record();
        let spec = lane_spec(CASES[0], TensorLayout::Nchw, FloatType::F32, Strategy::PinnedRing);
        let mut lane = backend.open_lane(&spec).expect("the lane opens");
        let output = lane.output().expect("an output");
        let bytes = image_bytes(&spec.layout, 5);
        let output = send(&mut lane, &spec.layout, &bytes, 5, output);
        check_tensor(&spec, &bytes, &output);
        lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
        drop((lane, output));
        backend.copy_ceiling(1 << 20, std::time::Duration::from_millis(1)).expect("measured");
        assert_eq!(backend.context().check_err(), Err(theirs), "the application finds its error");
        assert_eq!(backend.context().check_err(), Ok(()), "and nothing of ours");
    });
}

#[test]
fn a_tensor_is_idle_when_the_application_has_done_with_it_and_a_forgotten_guard_costs_it_alone() {
    on_cuda("a_tensor_is_idle_when_the_application_has_done_with_it", |backend| {
        let spec = lane_spec((224, 224, 3, 8), TensorLayout::Nchw, FloatType::F32, Strategy::PinnedRing);
        let mut lane = backend.open_lane(&spec).expect("the lane opens");
        let bytes = image_bytes(&spec.layout, 8);
        let stream = backend.context().new_stream().expect("a stream");
        let output = lane.output().expect("an output");
        assert_eq!((output.is_idle(), output.is_held()), (Ok(true), false), "nothing was queued with it");
        let used = send(&mut lane, &spec.layout, &bytes, 8, output);
        let guard = used.on_stream(&stream).expect("the tensor can be used");
        assert_eq!((used.is_idle(), used.is_held()), (Ok(false), true));
        let copy = slow_copy(&stream, &guard, 64);
        drop(guard);
        assert!(!used.is_held());
        // Forty copies of 256 MiB take milliseconds, and a look takes microseconds.
        assert_eq!(used.is_idle(), Ok(false), "the application's work runs");
        stream.synchronize().expect("it ends");
        assert_eq!(used.is_idle(), Ok(true));
        drop(copy);

        #[allow(clippy::mem_forget)] // The use that never ends.
        std::mem::forget(used.on_stream(&stream).expect("the tensor can be used"));
        lane.reap(Wait::All, &mut Vec::new()).expect("the lane waits for no event of it");
        assert_eq!((used.is_idle(), used.is_held()), (Ok(false), true));
        let other = lane.output().expect("an output");
        let other = send(&mut lane, &spec.layout, &bytes, 8, other);
        check_tensor(&spec, &bytes, &other);
    });
}

#[test]
fn a_copy_does_not_wait_for_an_application_that_uses_another_tensor() {
    on_cuda("a_copy_does_not_wait_for_an_application_that_uses_another_tensor", |backend| {
        let spec = LaneSpec {
            preprocess: Preprocess::Raw,
            ..lane_spec((224, 224, 3, 8), TensorLayout::Nchw, FloatType::F32, Strategy::PinnedRing)
        };
        let mut lane = backend.open_lane(&spec).expect("the lane opens");
        let bytes = image_bytes(&spec.layout, 8);
        let stream = backend.context().new_stream().expect("a stream");
        let (first, second) = (lane.output().expect("an output"), lane.output().expect("an output"));
        let first = send(&mut lane, &spec.layout, &bytes, 8, first);
        let guard = first.on_stream(&stream).expect("the tensor can be used");
        // Filled beforehand: that takes the CPU a while.
        let filled = fill(&mut lane, &spec.layout, &bytes);
        let copy = slow_copy(&stream, &guard, 64);
        drop(guard);
        let second = lane.submit(Input::Staged(filled), 8, second).expect("it is sent").tensor;
        lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
        assert_eq!(second.is_written(), Ok(true));
        assert_eq!(first.is_idle(), Ok(false), "the second batch is there while the first is still being used");
        drop(copy);
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

/// Queues the writing of bytes of a batch that a step was given.
#[allow(unsafe_code)]
fn set(stream: &CudaStream, to: u64, value: u8, bytes: usize) -> Result<(), SourceError> {
    // SAFETY: the tensors of the tests that call this have so many bytes there.
    Ok(unsafe { result::memset_d8_async(to, value, bytes, stream.cu_stream()) }?)
}

/// Queues the copy of as many bytes of a batch as a step's tensor has.
#[allow(unsafe_code)]
fn copy(stream: &CudaStream, from: u64, to: u64, bytes: usize) -> Result<(), SourceError> {
    // SAFETY: both hold so many bytes of the batch, and all that uses them follows on this stream.
    Ok(unsafe { result::memcpy_dtod_async(to, from, bytes, stream.cu_stream()) }?)
}

fn stepping(backend: &CudaBackend, strategy: Strategy, preprocess: Preprocess, step: Step) -> Feeder<CudaBackend> {
    let (strategy, step) = (Some(strategy), Some(step));
    let options = FeederOptions { slots: 1, outputs: 2, strategy, preprocess, step, ..FeederOptions::default() };
    Feeder::new(backend, SampleLayout::image(1, 4, 1).expect("an image"), options).expect("the feeder opens")
}

#[test]
fn a_step_runs_behind_the_kernels_or_instead_of_them() {
    on_cuda("a_step_runs_behind_the_kernels_or_instead_of_them", |backend| {
        for strategy in [Strategy::PinnedRing, Strategy::PinnedWriteCombined, Strategy::Pageable, Strategy::PinPerBatch]
        {
            let behind = Step::cuda(|stream, batch| set(stream, batch.output + 4, 0, 4));
            let mut feeder = stepping(&backend, strategy, Normalize::unit(1).into(), behind.clone());
            let mut raw =
                stepping(&backend, strategy, Preprocess::Raw, Step::cuda(|to, batch| set(to, batch.output, 9, 2)));
            let own = Step::cuda(|stream, batch| {
                let from = batch.input.ok_or("the bytes are on the device")?;
                copy(stream, from, batch.output, batch.tensors.first().of(batch.samples).byte_len())?;
                set(stream, batch.output, 7, 1)
            });
            let tensor = Preprocess::Own(Field::array("bytes", Element::U8, &[4]).expect("a field"));
            let mut making = stepping(&backend, strategy, tensor, own);
            for byte in 1..20 {
                let normalized = feeder.feed(&[&[255, 255, 0, 255]]).expect("it is sent");
                assert_eq!(normalized.read_f32().expect("it can be read back"), [1.0, 0.0, 0.0, 1.0]);
                let raw = raw.feed(&[&[byte; 4]]).expect("it is sent");
                assert_eq!(raw.read().expect("it can be read back"), [9, 9, byte, byte]);
                let made = making.feed(&[&[byte; 4]]).expect("it is sent");
                assert_eq!(made.read().expect("it can be read back"), [7, byte, byte, byte]);
            }
        }
    });
}

#[test]
fn a_step_that_fails_or_panics_costs_its_batch_only() {
    on_cuda("a_step_that_fails_or_panics_costs_its_batch_only", |backend| {
        let calls = std::sync::atomic::AtomicUsize::new(0);
        let step =
            Step::cuda(move |stream, batch| match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 3 {
                0 => Err("there is no model yet".into()),
                1 => panic!("there was a bug"),
                _ => set(stream, batch.output, 0, 4),
            });
        let mut feeder = stepping(&backend, Strategy::PinnedRing, Normalize::unit(1).into(), step);
        for _ in 0..4 {
            for text in ["there is no model yet", "there was a bug"] {
                let error = feeder.feed(&[&[255; 4]]).err();
                let Some(FeedError::Device(DeviceError::Step { reason })) = &error else { panic!("{error:?}") };
                assert!(reason.contains(text), "{reason}");
            }
            let batch = feeder.feed(&[&[255; 4]]).expect("it is sent");
            assert_eq!(batch.read_f32().expect("it can be read back"), [0.0, 1.0, 1.0, 1.0]);
        }
    });
}
