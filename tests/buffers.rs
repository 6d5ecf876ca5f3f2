//! Batches as an application's own `wgpu` buffers: submitted with, kept for good.

#![cfg(feature = "wgpu")]

#[path = "support/skip.rs"]
mod skip;

use std::sync::Arc;

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::{Loader, LoaderOptions, MemorySource, OpenError, SampleLayout, wgpu};

fn loader(test: &str, outputs: usize) -> Option<Loader<WgpuBackend>> {
    let backend = match WgpuBackend::open("vulkan:0") {
        Err(OpenError::NoDevice { .. }) => {
            skip::skip(test, "no Vulkan device here");
            return None;
        }
        opened => opened.expect("the device is there and opens"),
    };
    let bytes: Vec<u8> = (0..32 * 16).map(|i| (i / 16) as u8).collect();
    let source = MemorySource::new(bytes, SampleLayout::bytes(&[16]).expect("valid")).expect("whole samples");
    let options = LoaderOptions { batch_size: 2, outputs, ..LoaderOptions::default() };
    Some(Loader::new(&backend, Arc::new(source), options).expect("the loader opens"))
}

/// Reads a buffer back without gpufeed.
fn read(device: &wgpu::Device, queue: &wgpu::Queue, buffer: &wgpu::Buffer, bytes: u64) -> Vec<u8> {
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, bytes);
    encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., |result| result.expect("mapped"));
    queue.submit([encoder.finish()]);
    device.poll(wgpu::PollType::wait_indefinitely()).expect("the device is there");
    staging.slice(..).get_mapped_range().expect("mapped").to_vec()
}

#[test]
fn work_submitted_with_a_batch_sees_that_batch_and_no_later_one() {
    // One output: the loader writes the next batch into the same buffer as soon as it has it back.
    let Some(mut loader) = loader("work_submitted_with_a_batch", 1) else { return };
    let (device, queue) = (loader.backend().device().clone(), loader.backend().queue().clone());
    let copies = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 32 * 16,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    for batch in loader.epoch(0) {
        let batch = batch.expect("no error");
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(batch.buffer(), 0, &copies, batch.number() * 32, 32);
        batch.submit([encoder.finish()]);
    }
    let right: Vec<u8> = (0..32 * 16).map(|i| (i / 16) as u8).collect();
    assert_eq!(read(&device, &queue, &copies, 32 * 16), right);
}

#[test]
fn a_buffer_that_is_kept_stays_as_it_is_and_the_loader_goes_on() {
    let Some(mut loader) = loader("a_buffer_that_is_kept", 2) else { return };
    let (device, queue) = (loader.backend().device().clone(), loader.backend().queue().clone());
    let mut kept = Vec::new();
    for batch in loader.epoch(0) {
        kept.push(batch.expect("another output took its place").into_buffer());
    }
    assert_eq!(kept.len(), 16);
    for (number, buffer) in (0u8..).zip(&kept) {
        let right = [[number * 2; 16], [number * 2 + 1; 16]].concat();
        assert_eq!(read(&device, &queue, buffer, 32), right);
    }
}

#[test]
fn a_tensor_is_copied_into_a_buffer_of_the_callers_or_refused() {
    let Some(mut loader) = loader("a_tensor_is_copied_into_a_buffer", 2) else { return };
    let (device, queue) = (loader.backend().device().clone(), loader.backend().queue().clone());
    let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let desc = wgpu::BufferDescriptor { label: None, size: 32 * 16, usage, mapped_at_creation: false };
    let target = device.create_buffer(&desc);
    for batch in loader.epoch(0) {
        let batch = batch.expect("no error");
        let place = batch.number() * 32;
        batch.fill_into(&target, place).expect("it fits");
    }
    let right: Vec<u8> = (0..32 * 16).map(|i| (i / 16) as u8).collect();
    assert_eq!(read(&device, &queue, &target, 32 * 16), right);
    let batch = loader.epoch(1).next().expect("there are batches").expect("no error");
    let error = batch.fill_into(&target, 32 * 16 - 4).expect_err("it does not fit");
    assert!(matches!(error, gpufeed::DeviceError::Refused { .. }), "{error}");
    // The batch is still there, and can be copied to where it fits.
    batch.fill_into(&target, 32 * 15).expect("it fits");
    drop(batch);
    assert_eq!(read(&device, &queue, &target, 32 * 16)[32 * 15..], right[..32]);
}
