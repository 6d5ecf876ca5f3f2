//! The kernels against the CPU, on every adapter there is.
#![allow(clippy::print_stderr)] // A skipped adapter must be seen.

mod gpu;
mod parts;

use gpu::Gpu;
use half::f16;

use super::{Kernels, fingerprint_bytes};
use crate::backend::{LaneSpec, Strategy};
use crate::layout::{BatchLayout, SampleLayout};
use crate::preprocess::{FloatType, Normalize, Preprocess, TensorLayout, error_bound, expected, fingerprint};

const BATCH: usize = 5;
/// Every API but GL, whose driver does not get on with others in one process.
const PRIMARY: wgpu::Backends = wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);
const SENTINEL: u8 = 0xA5;
const SIZES: [(usize, usize); 6] = [(1, 1), (1, 7), (31, 17), (5, 4), (8, 8), (16, 20)];

/// Where `wgpu` finds no such adapter, says so and runs nothing.
fn on_each(backends: wgpu::Backends, run: impl FnMut(&Gpu)) {
    let gpus = Gpu::all(backends, |_| ());
    if gpus.is_empty() {
        eprintln!("skipped: no {backends:?} adapter on this machine");
    }
    gpus.iter().for_each(run);
}

fn lane(sample: SampleLayout, batch: usize, preprocess: Preprocess) -> LaneSpec {
    LaneSpec {
        layout: BatchLayout::new(sample, batch).expect("a valid layout"),
        preprocess,
        strategy: Strategy::MappedRing,
        slots: 1,
        outputs: 1,
        fingerprints: true,
        memory: None,
        timing: false,
        step: None,
    }
}

/// Samples in which every channel has all 256 values once there are as many pixels, and every sample differs.
fn samples(layout: &BatchLayout, channels: usize) -> Vec<u8> {
    let one = layout.payload(1);
    let value = |at: usize| (at % one / channels + at % channels * 85 + at / one * 31) as u8;
    (0..layout.payload(layout.batch_size())).map(value).collect()
}

fn normalize(channels: usize, layout: TensorLayout, dtype: FloatType) -> Normalize {
    let (mean, std) = ([0.485, 0.456, 0.406, 0.5], [0.229, 0.224, 0.225, 0.25]);
    Normalize::new(&mean[..channels], &std[..channels]).with_layout(layout).with_dtype(dtype)
}

/// What the device made of a batch's first samples: the whole tensor buffer and the fingerprints.
struct Outcome {
    tensor: Vec<u8>,
    fingerprints: Vec<u64>,
}

fn run(gpu: &Gpu, spec: &LaneSpec, bytes: &[u8], count: usize) -> Outcome {
    let layout = &spec.layout;
    let kernels = Kernels::new(&gpu.device, spec).expect("the kernels compile");
    let size = spec.preprocess.tensor(layout, layout.batch_size()).buffer_bytes().expect("no overflow");
    let mut padded = bytes.to_vec();
    padded.resize(layout.slot_bytes(), 0xFF);
    let source = gpu.buffer(&padded);
    // Larger than the kernels are told, to see what they write behind the end.
    let tensor = gpu.buffer(&vec![SENTINEL; size + 256]);
    let sums = gpu.buffer(&vec![SENTINEL; fingerprint_bytes(layout.batch_size()) as usize]);
    let bindings = kernels.bind(&gpu.device, &source, &tensor, Some(&sums));
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    // Twice: the sums start from zero each time.
    kernels.encode(&mut encoder, &bindings, layout.batch_size());
    kernels.encode(&mut encoder, &bindings, count);
    gpu.queue.submit([encoder.finish()]);
    let (mut tensor, sums) = (gpu.read(&tensor), gpu.read(&sums));
    assert!(tensor[size..].iter().all(|&byte| byte == SENTINEL), "written behind the tensor");
    tensor.truncate(size);
    let word = |eight: &[u8]| u64::from_le_bytes(eight.try_into().expect("eight bytes"));
    Outcome { tensor, fingerprints: sums.chunks_exact(8).take(count).map(word).collect() }
}

/// The largest error in parts of the bound.
fn worst(normalize: &Normalize, sample: &SampleLayout, bytes: &[u8], tensor: &[u8]) -> f64 {
    let image = sample.as_image().expect("an image");
    let values = expected(normalize, image, bytes).expect("valid");
    let got: Vec<f64> = match normalize.dtype {
        FloatType::F32 => {
            tensor.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect()
        }
        FloatType::F16 => tensor.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f64()).collect(),
    };
    let mut worst = 0.0;
    for (at, (&want, &got)) in values.iter().zip(&got).enumerate() {
        let (channels, plane, one) = (image.channels(), image.plane(), sample.byte_len());
        let channel = match normalize.layout {
            TensorLayout::Nhwc => at % channels,
            TensorLayout::Nchw => at % one / plane,
        };
        let pixel = (want - normalize.bias(channel)) / normalize.scale(channel);
        let share = (got - want).abs() / error_bound(normalize, channel, pixel.round() as u8);
        assert!(share <= 1.0, "{normalize:?} {sample} element {at}: {got} instead of {want}, {share} of the bound");
        worst = f64::max(worst, share);
    }
    worst
}

fn every_shape(backends: wgpu::Backends, dtype: FloatType) {
    on_each(backends, |gpu| {
        let mut most = 0.0;
        for channels in [1, 3, 4] {
            for order in [TensorLayout::Nchw, TensorLayout::Nhwc] {
                for (height, width) in SIZES {
                    let sample = SampleLayout::image(height, width, channels).expect("valid");
                    let normalize = normalize(channels, order, dtype);
                    let spec = lane(sample.clone(), BATCH, normalize.clone().into());
                    let bytes = samples(&spec.layout, channels);
                    for count in [1, 3, BATCH] {
                        let outcome = run(gpu, &spec, &bytes, count);
                        let sent = &bytes[..spec.layout.payload(count)];
                        most = f64::max(most, worst(&normalize, &sample, sent, &outcome.tensor));
                        let prints: Vec<u64> = sent.chunks_exact(sample.byte_len()).map(fingerprint).collect();
                        assert_eq!(outcome.fingerprints, prints, "{sample} {count}");
                    }
                }
            }
        }
        eprintln!("{}: {dtype:?} within {most:.3} of the bound", gpu.name);
    });
}

#[test]
fn primary_f32_is_within_the_bound() {
    every_shape(PRIMARY, FloatType::F32);
}

#[test]
fn primary_f16_is_within_the_bound() {
    every_shape(PRIMARY, FloatType::F16);
}

#[test]
fn gl_f32_is_within_the_bound() {
    every_shape(wgpu::Backends::GL, FloatType::F32);
}

#[test]
fn gl_f16_is_within_the_bound() {
    every_shape(wgpu::Backends::GL, FloatType::F16);
}

/// Values that f16 holds only as subnormals, values on both sides of zero, and values beyond its range.
fn half_range(backends: wgpu::Backends) {
    on_each(backends, |gpu| {
        let sample = SampleLayout::image(16, 16, 1).expect("valid");
        for (mean, std) in [(0.5, 1000.0), (0.5, 70_000.0), (0.2, 1e-5), (0.0, 1.0), (100.0 / 255.0, 300.0)] {
            let normalize = Normalize::new(&[mean], &[std]).with_dtype(FloatType::F16);
            let spec = lane(sample.clone(), 1, normalize.clone().into());
            let bytes = samples(&spec.layout, 1);
            let tensor = run(gpu, &spec, &bytes, 1).tensor;
            for (&pixel, half) in bytes.iter().zip(tensor.chunks_exact(2)) {
                let got = f16::from_le_bytes([half[0], half[1]]);
                let value = f64::from(pixel) * normalize.scale(0) + normalize.bias(0);
                let bound = error_bound(&normalize, 0, pixel);
                let right = if value.abs() < 65_504.0 {
                    (got.to_f64() - value).abs() <= bound
                } else {
                    got == f16::from_f64(value)
                };
                assert!(right, "{} std {std}: {got} instead of {value}", gpu.name);
            }
        }
    });
}

/// Values that are exact in f32 and halfway between two f16: as the CPU rounds them, bit by bit.
fn half_ties(backends: wgpu::Backends) {
    on_each(backends, |gpu| {
        let sample = SampleLayout::image(16, 16, 1).expect("valid");
        for (bits, bias) in [(9, 8.0), (9, -8.0), (27, 0.0), (31, 0.0)] {
            let (scale, std) = (2f64.powi(-bits), 2f64.powi(bits) / 255.0);
            let normalize = Normalize::new(&[-bias * std], &[std]).with_dtype(FloatType::F16);
            let spec = lane(sample.clone(), 1, normalize.into());
            let bytes = samples(&spec.layout, 1);
            let tensor = run(gpu, &spec, &bytes, 1).tensor;
            for (&pixel, half) in bytes.iter().zip(tensor.chunks_exact(2)) {
                let want = f16::from_f64(f64::from(pixel) * scale + bias);
                assert_eq!([half[0], half[1]], want.to_le_bytes(), "{} {pixel} * {scale} + {bias}", gpu.name);
            }
        }
    });
}

#[test]
fn primary_f16_rounds_ties_to_even() {
    half_ties(PRIMARY);
}

#[test]
fn gl_f16_rounds_ties_to_even() {
    half_ties(wgpu::Backends::GL);
}

#[test]
fn primary_f16_keeps_subnormals_and_overflows_to_infinity() {
    half_range(PRIMARY);
}

#[test]
fn gl_f16_keeps_subnormals_and_overflows_to_infinity() {
    half_range(wgpu::Backends::GL);
}

/// Values over all of f16's normal range, of both signs, and zero: bit by bit as the CPU rounds the same f32, whichever way they are
/// packed.
fn half_bits_over_the_range(backends: wgpu::Backends) {
    on_each(backends, |gpu| {
        let sample = SampleLayout::image(16, 16, 1).expect("valid");
        for exponent in -13..8 {
            for (numerator, bias) in [(1.0, 0.0), (-1.37, 0.0), (2.71, 0.0)] {
                // Powers of two and a product alone are exact in f32 or rounded once, on every device.
                let std = 1.0 / (255.0 * numerator * 2f64.powi(exponent));
                let normalize = Normalize::new(&[bias], &[std]).with_dtype(FloatType::F16);
                let spec = lane(sample.clone(), 1, normalize.clone().into());
                let bytes = samples(&spec.layout, 1);
                let tensor = run(gpu, &spec, &bytes, 1).tensor;
                let scale = normalize.scale(0) as f32;
                for (&pixel, half) in bytes.iter().zip(tensor.chunks_exact(2)) {
                    let (got, want) = (f16::from_le_bytes([half[0], half[1]]), f16::from_f32(f32::from(pixel) * scale));
                    let zeros = got == f16::ZERO && want == f16::ZERO;
                    assert!(
                        got.to_bits() == want.to_bits() || zeros,
                        "{}: {pixel} * {scale}: {got} for {want}",
                        gpu.name
                    );
                }
            }
        }
    });
}

#[test]
fn primary_f16_is_exact_over_its_range() {
    half_bits_over_the_range(PRIMARY);
}

#[test]
fn gl_f16_is_exact_over_its_range() {
    half_bits_over_the_range(wgpu::Backends::GL);
}
