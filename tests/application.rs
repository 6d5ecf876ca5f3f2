//! What an application does on the device beside gpufeed: its callbacks stay its own.

#![cfg(feature = "wgpu")]

#[path = "support/skip.rs"]
mod skip;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::{Loader, LoaderOptions, MemorySource, OpenError, SampleLayout, wgpu};

fn open(test: &str, device: &str) -> Option<WgpuBackend> {
    match WgpuBackend::open(device) {
        Err(OpenError::NoDevice { .. }) => {
            skip::skip(test, &format!("no {device} here"));
            None
        }
        // Some drivers' GL fails in a process that has used their Vulkan.
        Err(error) if device.starts_with("gl") => {
            skip::skip(test, &error.to_string());
            None
        }
        opened => Some(opened.expect("the device is there and opens")),
    }
}

/// 64 samples of 16 bytes that all are the sample's index, in batches of two.
fn loader(backend: &WgpuBackend) -> Loader<WgpuBackend> {
    let bytes: Vec<u8> = (0..64 * 16).map(|i| (i / 16) as u8).collect();
    let source = MemorySource::new(bytes, SampleLayout::bytes(&[16]).expect("valid")).expect("whole samples");
    let options = LoaderOptions { batch_size: 2, ..LoaderOptions::default() };
    Loader::new(backend, Arc::new(source), options).expect("the loader opens")
}

/// Loads an epoch, and calls `beside` at every batch.
fn all_batches_are_right(loader: &mut Loader<WgpuBackend>, beside: impl Fn(&wgpu::Device, &wgpu::Queue)) {
    let (device, queue) = (loader.backend().device().clone(), loader.backend().queue().clone());
    let mut samples = 0u8;
    for batch in loader.epoch(0) {
        let batch = batch.expect("the application's trouble is not the loader's");
        beside(&device, &queue);
        let right = [[samples; 16], [samples + 1; 16]].concat();
        assert_eq!(batch.read().expect("the device is there"), right);
        samples += 2;
    }
    assert_eq!(samples, 64);
}

#[test]
fn a_panic_in_an_applications_callback_ends_no_loader() {
    for device in ["vulkan:0", "gl:0"] {
        let Some(backend) = open("a_panic_in_an_applications_callback", device) else { continue };
        let panics = Arc::new(AtomicUsize::new(0));
        let mut loader = loader(&backend);
        all_batches_are_right(&mut loader, |_, queue| {
            let panics = Arc::clone(&panics);
            queue.on_submitted_work_done(move || {
                panics.fetch_add(1, Ordering::Relaxed);
                panic!("the application's own");
            });
        });
        assert!(panics.load(Ordering::Relaxed) > 0, "{device}: somebody ran them");
        // Another loader of the same backend.
        all_batches_are_right(&mut self::loader(&backend), |_, _| ());
    }
}

#[test]
fn an_error_in_an_applications_callback_fails_no_batch() {
    let Some(backend) = open("an_error_in_an_applications_callback", "vulkan:0") else { return };
    backend.device().on_uncaptured_error(Arc::new(|_| ()));
    all_batches_are_right(&mut loader(&backend), |device, queue| {
        let device = device.clone();
        queue.on_submitted_work_done(move || {
            // A buffer needs a usage.
            let usage = wgpu::BufferUsages::empty();
            drop(device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 4,
                usage,
                mapped_at_creation: false,
            }));
        });
    });
}

#[test]
fn an_applications_device_has_its_adapters_id_where_the_adapter_is_given_too() {
    let desc = wgpu::InstanceDescriptor { backends: wgpu::Backends::VULKAN, ..instance_descriptor() };
    let instance = wgpu::Instance::new(desc);
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN));
    if adapters.is_empty() {
        skip::skip("an_applications_device_has_its_adapters_id", "no Vulkan driver here");
    }
    for (number, adapter) in adapters.iter().enumerate() {
        let opened =
            || pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).expect("it opens");
        let (device, queue) = opened();
        let backend = WgpuBackend::from_parts(&instance, adapter, device, queue).expect("it is alive");
        let known = &gpufeed::backend::wgpu::adapters_of(gpufeed::Api::Vulkan)[number];
        assert_eq!((&backend.info().id, backend.info().memory), (&known.id, known.memory));
        all_batches_are_right(&mut loader(&backend), |_, _| ());
        let (device, queue) = opened();
        assert_eq!(WgpuBackend::from_device(device, queue).expect("it is alive").info().id, "vulkan:given");
    }
}

#[test]
fn an_adapter_that_a_device_is_not_of_is_refused_by_name() {
    let desc =
        wgpu::InstanceDescriptor { backends: wgpu::Backends::VULKAN | wgpu::Backends::GL, ..instance_descriptor() };
    let instance = wgpu::Instance::new(desc);
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let [first, .., last] = adapters.as_slice() else {
        return skip::skip("an_adapter_that_a_device_is_not_of", "there are no two adapters here");
    };
    let (device, queue) =
        pollster::block_on(first.request_device(&wgpu::DeviceDescriptor::default())).expect("it opens");
    let refused = WgpuBackend::from_parts(&instance, last, device, queue).expect_err("it is another's");
    assert!(matches!(&refused, OpenError::Option { option: "adapter", .. }), "{refused}");
}

fn instance_descriptor() -> wgpu::InstanceDescriptor {
    wgpu::InstanceDescriptor::new_without_display_handle()
}
