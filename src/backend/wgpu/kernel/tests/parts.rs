//! Batches that need several bindings or several rows of workgroups.

use super::super::segments::Binding;
use super::gpu::Gpu;
use super::{Kernels, lane, normalize, on_each, run, samples};
use crate::layout::SampleLayout;
use crate::preprocess::{FloatType, Preprocess, TensorLayout, fingerprint};

const BATCH: usize = 61;

/// A device that binds only a part of the batch, and one that dispatches few workgroups in a row, make the same tensor
/// and fingerprints as one with larger limits.
fn in_parts(backends: wgpu::Backends) {
    // A part holds at least a run of samples that begins and ends where a binding may.
    let small = Gpu::all(backends, |limits| {
        limits.max_storage_buffer_binding_size = 8192.max(64 * u64::from(limits.min_storage_buffer_offset_alignment));
    });
    let narrow = Gpu::all(backends, |limits| limits.max_compute_workgroups_per_dimension = 8);
    let mut others = small.iter().zip(&narrow);
    on_each(backends, |whole| {
        let (small, narrow) = others.next().expect("the same adapters");
        for (height, width, channels, order) in [
            (8, 8, 3, TensorLayout::Nchw),
            (8, 8, 3, TensorLayout::Nhwc),
            (6, 10, 4, TensorLayout::Nchw),
            (4, 2, 3, TensorLayout::Nchw),
        ] {
            for dtype in [FloatType::F32, FloatType::F16] {
                let sample = SampleLayout::image(height, width, channels).expect("valid");
                let spec = lane(sample.clone(), BATCH, normalize(channels, order, dtype).into());
                let bytes = samples(&spec.layout, channels);
                let parts = Binding::new(&small.device.limits()).normalize(&spec).expect("fits");
                assert!(parts.len() > 1 || height * width == 8, "{sample} is not split");
                for count in [BATCH, 20] {
                    let one = run(whole, &spec, &bytes, count);
                    let length = spec.preprocess.tensor(&spec.layout, count).byte_len();
                    for other in [small, narrow] {
                        let same = run(other, &spec, &bytes, count);
                        assert!(same.tensor[..length] == one.tensor[..length], "{sample} {order:?} {dtype:?} {count}");
                        assert_eq!(same.fingerprints, one.fingerprints);
                    }
                }
            }
        }
    });
}

#[test]
fn primary_in_parts_is_the_same() {
    in_parts(super::PRIMARY);
}

#[test]
fn gl_in_parts_is_the_same() {
    in_parts(wgpu::Backends::GL);
}

fn raw_on(gpu: &Gpu, length: usize, batch: usize) {
    let spec = lane(SampleLayout::bytes(&[length]).expect("valid"), batch, Preprocess::Raw);
    let bytes = samples(&spec.layout, 1);
    let prints: Vec<u64> = bytes.chunks_exact(length).map(fingerprint).collect();
    assert!(run(gpu, &spec, &bytes, batch).fingerprints == prints, "{length} x {batch} on {}", gpu.name);
}

/// Fingerprints of raw samples: odd sizes, samples of several workgroups, segments that start at any byte, more samples
/// than a row of workgroups, and samples for which a thread sums more words than usual.
fn raw_fingerprints(backends: wgpu::Backends) {
    on_each(backends, |gpu| {
        for (length, batch) in [(1, 70_000), (3, 9), (4099, 40), (40_001, 7), (16_384, 8)] {
            raw_on(gpu, length, batch);
        }
    });
    for gpu in Gpu::all(backends, |limits| limits.max_storage_buffer_binding_size = 65_536) {
        for (length, batch) in [(3, 9), (4099, 40), (40_001, 7), (16_384, 8)] {
            raw_on(&gpu, length, batch);
        }
        for (length, batch) in [(1, 70_000), (65_537, 1)] {
            let spec = lane(SampleLayout::bytes(&[length]).expect("valid"), batch, Preprocess::Raw);
            assert!(Kernels::new(&gpu.device, &spec).is_err(), "{length} x {batch} cannot be bound");
        }
    }
    for gpu in Gpu::all(backends, |limits| limits.max_compute_workgroups_per_dimension = 8) {
        raw_on(&gpu, 600_001, 2);
    }
}

#[test]
fn primary_fingerprints_of_raw_samples_equal_the_cpus() {
    raw_fingerprints(super::PRIMARY);
}

#[test]
fn gl_fingerprints_of_raw_samples_equal_the_cpus() {
    raw_fingerprints(wgpu::Backends::GL);
}
