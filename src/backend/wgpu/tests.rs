//! Opening devices, and what becomes of their errors. Every test runs on every API that is here.

#![allow(clippy::print_stderr)] // A test that skips itself says so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use super::health::LostFlag;
use super::{WgpuBackend, adapters, adapters_of, requirements};
use crate::backend::{AdapterInfo, Api, Backend, Input, Lane, LaneSpec, Strategy, Wait};
use crate::error::{DeviceError, OpenError};
use crate::layout::{BatchLayout, SampleLayout};
use crate::memory::StableHostMemory;
use crate::preprocess::Preprocess;
use crate::staging::Finish;

/// The first device of each API that is here, opened. `WGPU_BACKEND` narrows them, as it narrows wgpu's own.
pub(super) fn opened() -> Vec<WgpuBackend> {
    let only = std::env::var("WGPU_BACKEND").unwrap_or_default();
    let ids = ["vulkan:0", "metal:0", "dx12:0", "gl:0"].into_iter().filter(|id| id.starts_with(&only));
    let here: Vec<AdapterInfo> = adapters();
    let wanted = ids.filter(|id| here.iter().any(|info| info.id == *id));
    let open = |id| match WgpuBackend::open(id) {
        // Some drivers list a GL device that they do not open.
        Err(error) if id == "gl:0" => {
            eprintln!("skipped: {error}");
            None
        }
        opened => Some(opened.expect(id)),
    };
    let opened: Vec<WgpuBackend> = wanted.filter_map(open).collect();
    if opened.is_empty() {
        eprintln!("skipped: no adapter here");
    }
    opened
}

/// An application's device, of the same adapter.
fn given(api: Api, strategy: Option<Strategy>) -> WgpuBackend {
    let found = super::adapters::find(Some(api)).into_iter().next().expect("it was opened before");
    let needs = requirements(&found.adapter, strategy).expect("this strategy runs here");
    let request = found.adapter.request_device(&wgpu::DeviceDescriptor {
        required_features: needs.features,
        required_limits: needs.limits,
        ..Default::default()
    });
    let (device, queue) = pollster::block_on(request).expect("a device");
    WgpuBackend::from_device(device, queue).expect("a backend")
}

fn buffer(backend: &WgpuBackend, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    let descriptor = wgpu::BufferDescriptor { label: Some("test"), size, usage, mapped_at_creation: false };
    backend.device().create_buffer(&descriptor)
}

fn can(backend: &WgpuBackend, strategy: Strategy) -> Option<String> {
    let all = &backend.info().strategies;
    all.iter().find(|support| support.strategy == strategy).expect("it is listed").missing.clone()
}

#[test]
fn devices_open_by_id_and_by_part_of_their_name() {
    for backend in opened() {
        let info = backend.info();
        assert!(!info.id.ends_with(":given"));
        let limits = backend.device().limits();
        let told = |name: &str| info.limits.iter().find(|(limit, _)| limit == name).expect("it is listed").1;
        assert_eq!(told("max_buffer_size"), limits.max_buffer_size);
        assert_eq!(told("max_storage_buffer_binding_size"), limits.max_storage_buffer_binding_size);
        assert_eq!(WgpuBackend::open_adapter(&info.id).expect("by id").info(), info);
        let part = info.name.split(' ').next().expect("a name").to_uppercase();
        let named = WgpuBackend::open(&part).expect("by name");
        assert!(named.info().name.to_uppercase().contains(&part));
    }
}

#[test]
fn a_device_that_is_not_there_is_refused_with_what_is() {
    for wanted in ["no-such-gpu", "vulkan:99", "host", "cuda:0"] {
        let error = WgpuBackend::open(wanted).expect_err("no such device");
        let OpenError::NoDevice { found, .. } = error else { panic!("{error}") };
        assert!(adapters().iter().all(|info| found.contains(&info.id)), "{found}");
    }
    assert!(matches!(WgpuBackend::open_adapter("vulkan"), Err(OpenError::NoDevice { .. })));
}

#[test]
fn an_applications_device_runs_what_it_was_created_for() {
    for own in opened() {
        let all = given(own.api(), None);
        assert!(all.info().id.ends_with(":given"));
        assert_eq!(can(&all, Strategy::DirectMap).is_none(), can(&own, Strategy::DirectMap).is_none());
        let ring = given(own.api(), Some(Strategy::MappedRing));
        assert_eq!(can(&ring, Strategy::MappedRing), None);
        let missing = can(&ring, Strategy::DirectMap).expect("its feature was not asked for");
        assert!(missing.contains("requirements()"), "{missing}");
        assert_eq!(
            (ring.info().name.as_str(), ring.info().id.split(':').next()),
            (own.info().name.as_str(), Some(own.api().key()))
        );
    }
}

#[test]
fn a_wrong_call_in_a_scope_is_refused_and_the_device_goes_on() {
    for own in opened() {
        for backend in [given(own.api(), None), own] {
            let usage = wgpu::BufferUsages::COPY_DST;
            let too_large = backend.device().limits().max_buffer_size + 4;
            let error = backend.scope(|| buffer(&backend, too_large, usage)).expect_err("over the limit");
            let DeviceError::Refused { message } = &error else { panic!("{error}") };
            assert!(message.contains("Buffer size") && !message.contains('\n'), "{message}");
            backend.scope(|| buffer(&backend, 1024, usage)).expect("nothing is wrong with this one");
            backend.check().expect("the device is there");
        }
    }
}

#[test]
fn a_wait_returns_when_the_work_is_done() {
    for backend in opened() {
        let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let target = buffer(&backend, 4096, usage);
        backend.queue().write_buffer(&target, 0, &[7; 4096]);
        let ticket = backend.submit([]).expect("a live device");
        let done = Arc::new(AtomicBool::new(false));
        let signal = Arc::clone(&done);
        backend.queue().on_submitted_work_done(move || signal.store(true, Ordering::Release));
        backend.wait_until(ticket, || done.load(Ordering::Acquire)).expect("it is done");
        assert!(backend.poll().expect("a live device"), "the queue is empty");
    }
}

#[test]
fn waiting_for_what_never_happens_ends() {
    for backend in opened().into_iter().take(1) {
        let error = backend.wait_until(None, || false).expect_err("nothing will happen");
        assert!(matches!(error, DeviceError::Refused { .. }), "{error}");
    }
}

#[test]
fn a_destroyed_device_is_lost_at_every_call_and_panics_at_none() {
    for own in opened() {
        for backend in [given(own.api(), None), own] {
            let usage = wgpu::BufferUsages::COPY_DST;
            backend.device().destroy();
            let lost = |result: Result<(), DeviceError>| {
                let error = result.expect_err("the device is gone");
                assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
                error
            };
            let first = lost(backend.scope(|| drop(buffer(&backend, 1024, usage))));
            assert_eq!(lost(backend.poll().map(drop)), first);
            assert_eq!(lost(backend.wait_until(None, || false)), first);
            assert_eq!(lost(backend.check()), first);
            let (device, queue) = (backend.device().clone(), backend.queue().clone());
            assert!(matches!(
                WgpuBackend::from_device(device, queue),
                Err(OpenError::Device(DeviceError::Lost { .. }))
            ));
        }
    }
}

#[test]
fn polling_a_destroyed_device_first_tells_it_too() {
    for own in opened() {
        for backend in [given(own.api(), None), own] {
            backend.device().destroy();
            let error = backend.poll().expect_err("the device is gone");
            assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
        }
    }
}

#[test]
fn the_callbacks_of_an_applications_device_stay_its_own() {
    for own in opened() {
        let found = super::adapters::find(Some(own.api())).into_iter().next().expect("it was opened before");
        let (device, queue) =
            pollster::block_on(found.adapter.request_device(&wgpu::DeviceDescriptor::default())).expect("a device");
        let (sender, uncaptured) = mpsc::channel();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| drop(sender.send(error.to_string()))));
        let backend = WgpuBackend::from_device(device, queue).expect("a backend");
        drop(buffer(&backend, 4, wgpu::BufferUsages::empty()));
        assert_eq!(uncaptured.try_iter().count(), 1, "the application's own error, and not the probe's");
    }
}

#[test]
fn the_first_reason_of_a_loss_stays() {
    let flag = LostFlag::default();
    assert_eq!(flag.get(), None);
    flag.clone().set("the cause");
    flag.set("a consequence");
    assert_eq!(flag.get(), Some(DeviceError::Lost { reason: "the cause".to_owned() }));
    assert!(adapters_of(Api::Cuda).is_empty());
}

/// Memory of a source that tells when it is let go.
struct Watched(crate::HostArena, Arc<AtomicBool>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Release);
    }
}

// SAFETY: the arena is one, and is not touched.
#[allow(unsafe_code)]
unsafe impl StableHostMemory for Watched {
    fn address(&self) -> std::ptr::NonNull<u8> {
        self.0.address()
    }

    fn len(&self) -> usize {
        StableHostMemory::len(&self.0)
    }
}

#[test]
fn imported_memory_is_let_go_with_a_destroyed_device() {
    for own in opened().into_iter().filter(|own| can(own, Strategy::Imported).is_none()) {
        let gone = Arc::new(AtomicBool::new(false));
        let (sample, batch) = (SampleLayout::bytes(&[1 << 20]).expect("a valid layout"), 8);
        let arena = crate::HostArena::new(batch << 20, |bytes| bytes.fill(7)).expect("a little memory");
        let spec = LaneSpec {
            layout: BatchLayout::new(sample, batch).expect("a valid batch"),
            preprocess: Preprocess::Raw,
            strategy: Strategy::Imported,
            slots: 2,
            outputs: 2,
            fingerprints: false,
            memory: Some(Arc::new(Watched(arena, Arc::clone(&gone)))),
            timing: false,
            step: None,
        };
        let mut lane = own.open_lane(&spec).expect("the lane opens");
        drop(spec);
        let offsets: Vec<u64> = (0..batch as u64).map(|sample| sample << 20).collect();
        let output = lane.output().expect("an output");
        let sent = lane.submit(Input::Direct { offsets: &offsets, records: &[] }, batch, output).expect("it is sent");
        own.device().destroy();
        drop((lane, sent));
        // The last one to hold the queue waits for it.
        drop(own);
        assert!(gone.load(Ordering::Acquire));
    }
}

#[test]
fn a_device_says_of_its_copies_what_is_possible_or_nothing() {
    for backend in opened() {
        let (sample, batch) = (SampleLayout::bytes(&[1 << 20]).expect("a valid layout"), 4);
        let spec = LaneSpec {
            layout: BatchLayout::new(sample, batch).expect("a valid batch"),
            preprocess: Preprocess::Raw,
            strategy: Strategy::MappedRing,
            slots: 1,
            outputs: 1,
            fingerprints: false,
            memory: None,
            timing: true,
            step: None,
        };
        let mut lane = backend.open_lane(&spec).expect("the lane opens");
        let mut output = lane.output().expect("an output");
        for _ in 0..4 {
            let mut fill = lane.begin().expect("no error").expect("a slot");
            assert!(fill.take_region(&spec.layout, batch).commit());
            let Finish::Filled(filled) = fill.finish() else { panic!("all of it is committed") };
            output = lane.submit(Input::Staged(filled), batch, output).expect("it is sent").tensor;
            lane.reap(Wait::All, &mut Vec::new()).expect("the device is there");
        }
        let Some(times) = lane.gpu_times() else {
            eprintln!("skipped: {} has no clock to be believed", backend.info().id);
            continue;
        };
        let rate = (times.batches << 22) as f64 / times.copy_s;
        eprintln!("{} copies {:.1} GB/s", backend.info().id, rate / 1e9);
        assert!(!backend.info().is_software() || rate < 1e12, "{} copies {rate:e} bytes a second", backend.info().id);
    }
}

#[test]
fn a_copying_kernel_is_measured_on_every_device() {
    for backend in opened() {
        // It checks that it copies.
        let rate = backend.kernel_ceiling(std::time::Duration::from_millis(10)).expect("it is measured");
        assert!(rate.is_some_and(|rate| rate > 0.0), "{}: {rate:?}", backend.info().id);
    }
}
