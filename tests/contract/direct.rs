//! The contract of lanes that read the source's own memory.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gpufeed::backend::{Input, Lane, LaneSpec, Tensor, Wait};
use gpufeed::preprocess::{error_bound, expected, fingerprint};
use gpufeed::{
    BatchLayout, DeviceError, FloatType, HostArena, Normalize, OpenError, Preprocess, SampleLayout, StableHostMemory,
    Strategy, TensorLayout,
};

use crate::device::{TestDevice, skip};
use crate::lanes::arrives;

const BATCH: usize = 6;

/// A limit of the device, in bytes.
fn limit<B: TestDevice>(backend: &B, name: &str) -> usize {
    backend.info().limits.iter().find(|(limit, _)| limit == name).expect("it is listed").1 as usize
}

/// What the offsets of bindings are multiples of: 256 bytes on some devices, 32 on others, and at least a vector's size. A run of samples
/// that is no multiple of it cannot be cut there.
fn binding_alignment<B: TestDevice>(backend: &B) -> usize {
    limit(backend, "min_storage_buffer_offset_alignment").max(16)
}

/// Memory that tells when it is let go.
#[allow(unsafe_code)]
struct Watched(HostArena, Arc<AtomicBool>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Release);
    }
}

// SAFETY: the arena is one, and is not touched.
#[allow(unsafe_code)]
unsafe impl StableHostMemory for Watched {
    fn address(&self) -> NonNull<u8> {
        self.0.address()
    }

    fn len(&self) -> usize {
        StableHostMemory::len(&self.0)
    }
}

/// So many bytes, in which neighbours differ and no sample is like another.
fn arena(bytes: usize) -> Arc<HostArena> {
    let fill = |memory: &mut [u8]| {
        let mut state = 1u32;
        memory.iter_mut().for_each(|byte| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        });
    };
    Arc::new(HostArena::new(bytes, fill).expect("a little memory"))
}

fn spec(sample: SampleLayout, preprocess: Preprocess, memory: Arc<dyn StableHostMemory>) -> LaneSpec {
    let layout = BatchLayout::new(sample, BATCH).expect("a valid batch");
    LaneSpec { outputs: 4, memory: Some(memory), ..LaneSpec::new(layout, preprocess, Strategy::Imported) }
}

fn bytes_layout(len: usize) -> SampleLayout {
    SampleLayout::bytes(&[len]).expect("a valid layout")
}

/// Batches of shuffled samples that lie `stride` bytes apart after `header` bytes: their first bytes.
fn shuffled(samples: usize, header: usize, stride: usize, seed: usize) -> Vec<u64> {
    let mut all: Vec<u64> = (0..samples).map(|sample| (header + sample * stride) as u64).collect();
    let mut state = seed as u32 + 1;
    for at in (1..all.len()).rev() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        all.swap(at, (state >> 8) as usize % (at + 1));
    }
    all
}

fn gathered(memory: &HostArena, offsets: &[u64], len: usize) -> Vec<u8> {
    offsets.iter().flat_map(|&offset| memory.bytes()[offset as usize..][..len].to_vec()).collect()
}

/// Sends each batch by itself and reads it.
fn each<L: Lane>(lane: &mut L, spec: &LaneSpec, offsets: &[u64], mut check: impl FnMut(&[u64], Vec<u8>)) {
    let mut output = lane.output().expect("an output");
    for batch in offsets.chunks(BATCH) {
        let submitted =
            lane.submit(Input::Direct { offsets: batch, records: &[] }, batch.len(), output).expect("it is sent");
        let desc = spec.preprocess.tensor(&spec.layout, batch.len());
        let mut finished = Vec::new();
        arrives(lane, submitted.id, &mut finished).expect("it arrives");
        check(batch, submitted.tensor.read(&desc).expect("it can be read"));
        output = submitted.tensor;
        lane.reap(Wait::All, &mut finished).expect("the device is there");
        assert_eq!((finished, lane.in_flight()), (vec![submitted.id], 0));
    }
}

pub fn samples_of_every_size_arrive_whole<B: TestDevice>(backend: &B, _: Strategy) {
    for (len, samples) in
        [(1, 50), (3, 17), (4, 20), (16, 9), (31, 40), (1581, 40), (4096, 60), (4099, 50), (12_288, 30)]
    {
        let memory = arena(len * samples);
        let spec = spec(bytes_layout(len), Preprocess::Raw, memory.clone());
        let mut lane = backend.open_lane(&spec).expect("the lane opens");
        assert!(lane.begin().expect("the device is there").is_none(), "there are no slots");
        let mut held = backend.footprint(&spec).expect("ok");
        held.outputs = 0;
        assert_eq!(lane.memory().held, held);
        each(&mut lane, &spec, &shuffled(samples, 0, len, len), |batch, got| {
            assert!(got == gathered(&memory, batch, len), "samples of {len} bytes at {batch:?}");
        });
    }
}

pub fn samples_may_lie_anywhere<B: TestDevice>(backend: &B, _: Strategy) {
    for (len, header, stride) in [(48, 1, 50), (100, 127, 33), (4096, 3, 4097), (1581, 80, 1600)] {
        let memory = arena(header + stride * 60 + len);
        let spec = spec(bytes_layout(len), Preprocess::Raw, memory.clone());
        let mut lane = backend.open_lane(&spec).expect("the lane opens");
        // The same sample may come twice, and the very last bytes are one too.
        let mut offsets = shuffled(60, header, stride, 5);
        offsets.extend([(stride * 60 + header) as u64, offsets[0], offsets[0]]);
        each(&mut lane, &spec, &offsets, |batch, got| {
            assert!(got == gathered(&memory, batch, len), "samples of {len} bytes at {batch:?}");
        });
    }
}

pub fn memory_larger_than_a_binding_is_read_everywhere<B: TestDevice>(backend: &B, _: Strategy) {
    let limit = limit(backend, "max_storage_buffer_binding_size");
    if limit > 256 << 20 {
        return skip("memory larger than a binding", &format!("a binding holds {limit} bytes here"));
    }
    let (len, samples) = (1581, (limit + limit / 2) / 1581);
    // Around the binding's end, and at both ends of the memory.
    let offsets: Vec<u64> =
        (0..BATCH).flat_map(|at| [at, limit / len - 3 + at, samples - 1 - at]).map(|at| (at * len) as u64).collect();
    let memory = Arc::new(
        HostArena::new(samples * len, |bytes| {
            for &offset in &offsets {
                bytes[offset as usize..][..len]
                    .iter_mut()
                    .enumerate()
                    .for_each(|(at, byte)| *byte = (offset as usize + at * 7) as u8);
            }
        })
        .expect("some memory"),
    );
    let spec = spec(bytes_layout(len), Preprocess::Raw, memory.clone());
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    each(&mut lane, &spec, &offsets, |batch, got| assert!(got == gathered(&memory, batch, len), "{batch:?}"));
}

fn values(normalize: &Normalize, tensor: &[u8]) -> Vec<f64> {
    match normalize.dtype {
        FloatType::F32 => tensor.as_chunks().0.iter().map(|&word| f64::from(f32::from_le_bytes(word))).collect(),
        FloatType::F16 => tensor.as_chunks().0.iter().map(|&half| half::f16::from_le_bytes(half).to_f64()).collect(),
    }
}

fn within_the_bound<B: TestDevice>(backend: &B, normalize: &Normalize, sample: &SampleLayout, header: usize) {
    let (len, image) = (sample.byte_len(), sample.as_image().expect("an image"));
    let memory = arena(header + len * 20);
    let spec = spec(sample.clone(), normalize.clone().into(), memory.clone());
    let sizes = [len, spec.preprocess.tensor(&spec.layout, 1).byte_len()];
    let mut lane = match backend.open_lane(&spec) {
        // Bindings are cut only between samples that begin where one may.
        Err(OpenError::TooLarge { .. })
            if sizes.iter().any(|size| !size.is_multiple_of(binding_alignment(backend))) =>
        {
            return;
        }
        opened => opened.expect("the lane opens"),
    };
    each(&mut lane, &spec, &shuffled(20, header, len, 3), |batch, got| {
        let pixels = gathered(&memory, batch, len);
        let want = expected(normalize, image, &pixels).expect("valid");
        let got = values(normalize, &got);
        assert_eq!(want.len(), got.len());
        for (at, (&want, &got)) in want.iter().zip(&got).enumerate() {
            let channel = match normalize.layout {
                TensorLayout::Nhwc => at % image.channels(),
                TensorLayout::Nchw => at % len / image.plane(),
            };
            let pixel = ((want - normalize.bias(channel)) / normalize.scale(channel)).round() as u8;
            let error = (want - got).abs();
            assert!(error <= error_bound(normalize, channel, pixel), "{sample} {normalize:?} {at}: {got} for {want}");
        }
    });
}

pub fn normalised_samples_are_within_the_bound<B: TestDevice>(backend: &B, _: Strategy) {
    let (mean, std) = ([0.485, 0.456, 0.406, 0.5], [0.229, 0.224, 0.225, 0.25]);
    // The last are whole bindings' offsets on every device.
    for (height, width) in [(1, 1), (31, 17), (8, 8), (24, 44), (16, 48)] {
        for channels in [1, 3, 4] {
            for layout in [TensorLayout::Nchw, TensorLayout::Nhwc] {
                for dtype in [FloatType::F32, FloatType::F16] {
                    let normalize = Normalize::new(&mean[..channels], &std[..channels]);
                    let sample = SampleLayout::image(height, width, channels).expect("a valid layout");
                    // Also at odd addresses.
                    within_the_bound(backend, &normalize.with_layout(layout).with_dtype(dtype), &sample, height % 5);
                }
            }
        }
    }
}

pub fn fingerprints_are_those_of_the_samples<B: TestDevice>(backend: &B, _: Strategy) {
    let image = SampleLayout::image(31, 17, 3).expect("a valid layout");
    for (sample, preprocess) in [
        (image.clone(), Preprocess::from(Normalize::imagenet())),
        (image, Preprocess::Raw),
        (bytes_layout(20_003), Preprocess::Raw),
        (bytes_layout(5), Preprocess::Raw),
    ] {
        let len = sample.byte_len();
        let memory = arena(3 + len * 25);
        let spec = LaneSpec { fingerprints: true, ..spec(sample.clone(), preprocess, memory.clone()) };
        let mut lane = match backend.open_lane(&spec) {
            Err(OpenError::TooLarge { .. }) => continue,
            opened => opened.expect("the lane opens"),
        };
        let mut output = lane.output().expect("an output");
        for batch in shuffled(25, 3, len, 9).chunks(BATCH) {
            let sent =
                lane.submit(Input::Direct { offsets: batch, records: &[] }, batch.len(), output).expect("it is sent");
            arrives(&mut lane, sent.id, &mut Vec::new()).expect("it arrives");
            output = sent.tensor;
            let want: Vec<u64> = gathered(&memory, batch, len).chunks(len).map(fingerprint).collect();
            assert_eq!(output.fingerprints(batch.len()).expect("it can be read"), Some(want), "{sample}");
            lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
        }
    }
}

pub fn many_shuffled_batches_are_in_flight_at_once<B: TestDevice>(backend: &B, _: Strategy) {
    let memory = arena(1200 * 200);
    let spec = spec(bytes_layout(1200), Preprocess::Raw, memory.clone());
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let mut sent = Vec::new();
    for seed in 0..4 {
        for batch in shuffled(200, 0, 1200, seed).chunks(BATCH) {
            let mut output = lane.output().expect("an output");
            let tensor = loop {
                match lane.submit(Input::Direct { offsets: batch, records: &[] }, batch.len(), output) {
                    Ok(submitted) => break submitted.tensor,
                    Err(rejected) => {
                        assert_eq!(lane.in_flight(), spec.slots + spec.outputs, "{}", rejected.error);
                        output = rejected.tensor;
                        lane.reap(Wait::One, &mut Vec::new()).expect("the device is there");
                    }
                }
            };
            sent.push((batch.to_vec(), tensor));
        }
    }
    let allocations = lane.memory().allocations;
    lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
    assert_eq!(lane.memory().allocations, allocations);
    for (batch, tensor) in sent {
        let desc = spec.preprocess.tensor(&spec.layout, batch.len());
        assert!(tensor.read(&desc).expect("it can be read") == gathered(&memory, &batch, 1200), "{batch:?}");
    }
}

pub fn what_cannot_be_read_is_refused<B: TestDevice>(backend: &B, _: Strategy) {
    let memory = arena(100 * 10);
    let spec = spec(bytes_layout(100), Preprocess::Raw, memory.clone());
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    let mut output = lane.output().expect("an output");
    for (offsets, samples) in
        [(&[901][..], 1), (&[u64::MAX][..], 1), (&[0, 1][..], 1), (&[][..], 0), (&[0; BATCH + 1][..], BATCH + 1)]
    {
        let rejected =
            lane.submit(Input::Direct { offsets, records: &[] }, samples, output).expect_err("it cannot be read");
        assert!(matches!(rejected.error, DeviceError::Refused { .. }), "{}", rejected.error);
        output = rejected.tensor;
    }
    drop(output);
    each(&mut lane, &spec, &[900, 1], |batch, got| assert_eq!(got, gathered(&memory, batch, 100)));
}

pub fn an_output_that_fails_costs_its_batch_only<B: TestDevice>(backend: &B, _: Strategy) {
    let memory = arena(64 * 10);
    let spec = spec(bytes_layout(64), Preprocess::Raw, memory.clone());
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    for first in [0, 64, 128, 192, 256, 320, 384, 448] {
        let spoilt = lane.output().expect("an output");
        assert!(backend.spoil(&spoilt));
        let error = match lane.submit(Input::Direct { offsets: &[first], records: &[] }, 1, spoilt) {
            Err(rejected) => rejected.error,
            // Where kernels run on a queue of their own the memory has other owners beside the user, and is written all the same.
            Ok(sent) => match arrives(&mut lane, sent.id, &mut Vec::new()) {
                Err(error) => error,
                Ok(()) => return,
            },
        };
        assert!(matches!(error, DeviceError::Refused { .. }), "{error}");
        lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
        each(&mut lane, &spec, &[first, first + 64], |batch, got| assert_eq!(got, gathered(&memory, batch, 64)));
    }
}

pub fn memory_that_holds_no_sample_is_refused<B: TestDevice>(backend: &B, _: Strategy) {
    let short = spec(bytes_layout(100), Preprocess::Raw, arena(99));
    for spec in [LaneSpec { memory: None, ..short.clone() }, short] {
        let errors = [backend.footprint(&spec).map(drop), backend.open_lane(&spec).map(drop)];
        for error in errors.map(|result| result.expect_err("there is no sample")) {
            assert!(matches!(&error, OpenError::Unsupported(why) if why.strategy == Strategy::Imported), "{error}");
        }
    }
}

/// A lane on memory that tells when it is let go, and the bytes of a sample there.
fn watched<B: TestDevice>(backend: &B) -> (B::Lane, Arc<AtomicBool>, usize) {
    let gone = Arc::new(AtomicBool::new(false));
    let sample = 20_000usize.next_multiple_of(binding_alignment(backend));
    let memory = HostArena::new(sample * 6, |bytes| bytes.fill(7)).expect("a little memory");
    let spec = spec(bytes_layout(sample), Preprocess::Raw, Arc::new(Watched(memory, Arc::clone(&gone))));
    (backend.open_lane(&spec).expect("the lane opens"), gone, sample)
}

fn send<L: Lane>(lane: &mut L, sample: usize) -> L::Tensor {
    let output = lane.output().expect("an output");
    let offsets = [0, 1, 2, 3].map(|at| at * sample as u64);
    lane.submit(Input::Direct { offsets: &offsets, records: &[] }, 4, output).expect("it is sent").tensor
}

pub fn memory_is_let_go_after_its_last_use<B: TestDevice>(backend: &B, _: Strategy) {
    let (mut lane, gone, sample) = watched(backend);
    let tensor = send(&mut lane, sample);
    lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
    assert!(!gone.load(Ordering::Acquire), "the lane may read again");
    drop(lane);
    assert!(gone.load(Ordering::Acquire), "a tensor does not keep what it was made from");
    drop(tensor);
}

pub fn a_lane_may_be_dropped_with_batches_in_flight<B: TestDevice>(backend: &B, _: Strategy) {
    let (mut lane, gone, sample) = watched(backend);
    let tensors: Vec<_> = (0..4).map(|_| send(&mut lane, sample)).collect();
    drop(lane);
    let layout = BatchLayout::new(bytes_layout(sample), BATCH).expect("a valid batch");
    for tensor in tensors {
        let bytes = tensor.read(&Preprocess::Raw.tensor(&layout, 4)).expect("it can be read");
        assert!(bytes.iter().all(|&byte| byte == 7));
    }
    assert!(gone.load(Ordering::Acquire));
}

pub fn a_device_may_be_destroyed_while_it_reads<B: TestDevice>(backend: &B, _: Strategy) {
    let (mut lane, gone, sample) = watched(backend);
    let tensors: Vec<_> = (0..4).map(|_| send(&mut lane, sample)).collect();
    backend.lose();
    let rejected = lane
        .submit(Input::Direct { offsets: &[0], records: &[] }, 1, tensors[0].clone())
        .expect_err("the device is gone");
    assert!(matches!(rejected.error, DeviceError::Lost { .. }), "{}", rejected.error);
    let lost = lane.reap(Wait::All, &mut Vec::new());
    assert!(matches!(lost, Err(DeviceError::Lost { .. })), "{lost:?}");
    drop(lane);
    // Nothing is asserted of when: it is let go once the device has ended what it began.
    drop((rejected, tensors, gone));
}

pub fn the_devices_own_times_are_those_of_its_batches<B: TestDevice>(backend: &B, _: Strategy) {
    let memory = arena(30_000);
    let image = SampleLayout::image(10, 10, 3).expect("a valid layout");
    let spec = LaneSpec { timing: true, ..spec(image, Normalize::imagenet().into(), memory) };
    let mut lane = backend.open_lane(&spec).expect("the lane opens");
    each(&mut lane, &spec, &shuffled(4 * BATCH, 0, 300, 1), |_, _| ());
    if let Some(times) = lane.gpu_times() {
        assert!(times.batches == 4 && times.kernel_s > 0.0 && times.copy_s >= 0.0, "{times:?}");
    }
}
