//! An application's own streams, and its own errors.

use std::sync::Arc;

use gpufeed::backend::cuda::OnStream;
use gpufeed::backend::{Input, Lane, LaneSpec, Tensor, Wait};
use gpufeed::cudarc::driver::sys::CUresult;
use gpufeed::cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError, result};
use gpufeed::{Backend, DeviceError, FloatType, Preprocess, Strategy, TensorLayout};

use crate::cuda_support::{CASES, check_tensor, image_bytes, lane_spec, on_cuda};
use crate::{fill, send, send_result};

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
