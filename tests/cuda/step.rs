//! Steps of an application, queued behind gpufeed's kernels or instead of them.

use gpufeed::backend::Step;
use gpufeed::backend::cuda::CudaBackend;
use gpufeed::cudarc::driver::{CudaStream, result};
use gpufeed::{
    DeviceError, Element, FeedError, Feeder, FeederOptions, Field, Normalize, Preprocess, SampleLayout, SourceError,
    Strategy,
};

use crate::cuda_support::on_cuda;

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
