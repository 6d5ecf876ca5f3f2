//! An application's own buffers: what tensors are written into, and what frames are read from.

use gpufeed::backend::wgpu::{ResourceError, WgpuBackend, requirements};
use gpufeed::loader::TargetBatch;
use gpufeed::wgpu::{self, BufferUsages};
use gpufeed::{
    Api, Batch, Element, FeedError, Feeder, FeederOptions, Field, Normalize, Pipeline, Preprocess, Resize,
    SampleLayout, Strategy, TensorType,
};

pub const HEIGHT: usize = 5;
pub const WIDTH: usize = 7;
pub const OFFSET: u64 = 512;
/// What stands in a buffer before anything is written there.
const UNTOUCHED: u8 = 0xA5;

pub fn options(strategy: Strategy, preprocess: &Preprocess, batch_size: usize) -> FeederOptions {
    let (strategy, preprocess) = (Some(strategy), preprocess.clone());
    FeederOptions { batch_size, slots: 1, outputs: 2, strategy, preprocess, ..FeederOptions::default() }
}

pub fn feeder(backend: &WgpuBackend, layout: SampleLayout, options: FeederOptions) -> Feeder<WgpuBackend> {
    Feeder::new(backend, layout, options).expect("the feeder opens")
}

pub fn image(channels: usize) -> SampleLayout {
    SampleLayout::image(HEIGHT, WIDTH, channels).expect("valid")
}

/// Bytes as they are, and what a kernel computes.
fn preprocessing(channels: usize) -> [Preprocess; 2] {
    [Preprocess::Raw, Normalize::unit(channels).into()]
}

/// The same, and pipelines whose tensors are and are not whole words, one of which draws at random.
fn all_preprocessing() -> Vec<Preprocess> {
    let odd = Pipeline::minus_one_to_one().with_resize(Resize::Exact { height: 3, width: 5 });
    let pipelines = [odd.with_dtype(TensorType::F16), Pipeline::imagenet_train(4)];
    preprocessing(3).into_iter().chain(pipelines.map(Preprocess::from)).collect()
}

pub fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 5 + number * 31 + 1) as u8).collect()
}

fn buffer(backend: &WgpuBackend, size: u64, usage: BufferUsages) -> wgpu::Buffer {
    let desc = wgpu::BufferDescriptor { label: Some("the application's"), size, usage, mapped_at_creation: false };
    backend.device().create_buffer(&desc)
}

/// A buffer that holds these bytes from `offset` on.
fn filled(backend: &WgpuBackend, offset: u64, bytes: &[u8], usage: BufferUsages) -> wgpu::Buffer {
    let size = (offset + bytes.len() as u64).next_multiple_of(4);
    let filled = buffer(backend, size, usage | BufferUsages::COPY_DST);
    let padded: Vec<u8> = bytes.iter().copied().chain([0; 3]).collect();
    backend.queue().write_buffer(&filled, offset, &padded[..bytes.len().next_multiple_of(4)]);
    filled
}

pub fn read(backend: &WgpuBackend, from: &wgpu::Buffer) -> Vec<u8> {
    let staging = buffer(backend, from.size(), BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(from, 0, &staging, 0, from.size());
    encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., |result| result.expect("mapped"));
    backend.queue().submit([encoder.finish()]);
    while !backend.device().poll(wgpu::PollType::Poll).expect("the device is there").is_queue_empty() {}
    staging.slice(..).get_mapped_range().expect("mapped").to_vec()
}

pub fn target(backend: &WgpuBackend, size: u64) -> wgpu::Buffer {
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
    filled(backend, 0, &vec![UNTOUCHED; size as usize], usage)
}

pub fn resource(error: FeedError) -> ResourceError {
    match error {
        FeedError::Resource(error) => error,
        other => panic!("{other}"),
    }
}

pub fn tensors_are_written_straight_into_an_applications_buffer(backend: &WgpuBackend, strategy: Strategy) {
    let mask = Field::array("mask", Element::U16, &[3]).expect("a field");
    let labelled = image(3).with_label(Element::I64).and_then(|layout| layout.with(mask)).expect("a sample");
    for preprocess in all_preprocessing() {
        for layout in [image(3), labelled.clone()] {
            let fields = layout.fields().len();
            // In step, so that what is drawn at random is the same.
            let mut twin = feeder(backend, layout.clone(), options(strategy, &preprocess, 4));
            let mut feeder = feeder(backend, layout, options(strategy, &preprocess, 4));
            let target = target(backend, 4096);
            let mut fed = 0;
            for count in [4usize, 1, 3] {
                let write = |out: &mut gpufeed::FrameWriter<'_>| {
                    out.write(&bytes(fed + out.position(), 105))?;
                    if fields > 1 {
                        out.label(out.position() as i64)?;
                        let number = out.position() as u16;
                        out.field("mask")?.values(&[number; 3])?;
                    }
                    out.set_tag(7);
                    Ok::<(), std::io::Error>(())
                };
                let expected = twin.feed_with(count, write).expect("it is sent");
                backend.queue().write_buffer(&target, 0, &vec![UNTOUCHED; 4096]);
                let written = feeder.feed_with_into(count, write, &target, OFFSET).expect("it is sent");
                assert_eq!((written.len(), written.tags(), written.buffer()), (count, &vec![7; count][..], &target));
                written.wait().expect("the device is there");
                assert!(written.is_ready().expect("the device is there"));
                check_written(&read(backend, &target), &written, &expected);
                fed += count;
            }
        }
    }
}

/// A buffer holds the tensors of a batch behind the offset, and nothing else was touched.
fn check_written(all: &[u8], written: &TargetBatch, expected: &Batch<WgpuBackend>) {
    let mut end = 0;
    for name in ["image", "mask"] {
        let Some((desc, own)) = expected.field(name).zip(written.field(name)) else { continue };
        assert_eq!((own.offset, own.shape.as_slice()), (desc.offset + 512, desc.shape.as_slice()));
        end = own.offset + own.byte_len();
        let tensor = expected.read_field(name).expect("readable");
        assert_eq!(Some(&all[own.offset..end]), tensor.as_deref(), "{name}");
    }
    assert!(all[..512].iter().all(|&byte| byte == UNTOUCHED), "before the offset");
    assert!(all[end.next_multiple_of(16)..].iter().all(|&byte| byte == UNTOUCHED), "behind the tensors");
    let last = expected.len() - 1;
    assert_eq!((written.geometry(last), written.field("geometry")), (expected.geometry(last), None));
}

pub fn a_target_that_cannot_be_written_is_refused_by_name(backend: &WgpuBackend, strategy: Strategy) {
    for preprocess in preprocessing(3) {
        let mut feeder = feeder(backend, image(3), options(strategy, &preprocess, 2));
        let frames = [bytes(0, 105), bytes(1, 105)];
        let computes = preprocess != Preprocess::Raw;
        let needed = if computes { 4 * 210_u64.next_multiple_of(4) } else { 212 };
        let mut refused = |target: &wgpu::Buffer, offset| {
            let error =
                resource(feeder.feed_into(&frames, target, offset).map(drop).expect_err("it cannot be written"));
            // As often as there are slots, and more: none is lost.
            let batch = feeder.feed(&frames).expect("the feeder goes on");
            assert_eq!(batch.len(), 2);
            error
        };
        let fits = target(backend, OFFSET + needed);
        let small = target(backend, OFFSET + needed - 4);
        let size = OFFSET + needed - 4;
        let what = "the target buffer";
        assert_eq!(refused(&small, OFFSET), ResourceError::Size { what, size, offset: OFFSET, needed });
        let far = u64::MAX - 1023;
        assert!(matches!(refused(&fits, far), ResourceError::Size { offset, .. } if offset == far));
        assert!(matches!(refused(&fits, 2), ResourceError::Alignment { offset: 2, .. }));
        let useless = buffer(backend, OFFSET + needed, BufferUsages::COPY_SRC);
        let missing = if computes { "STORAGE" } else { "COPY_DST" }.to_owned();
        assert_eq!(refused(&useless, 0), ResourceError::Usage { what, missing });
        let destroyed = target(backend, OFFSET + needed);
        destroyed.destroy();
        assert!(matches!(refused(&destroyed, OFFSET), ResourceError::Refused { .. }));
        let written = feeder.feed_into(&frames, &fits, OFFSET).expect("it fits exactly");
        written.wait().expect("the device is there");
    }
}

/// Two devices of one instance, which wgpu tells apart.
fn two_devices(backends: wgpu::Backends) -> Option<[WgpuBackend; 2]> {
    let desc = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor { backends, ..desc });
    let adapter = pollster::block_on(instance.enumerate_adapters(backends)).into_iter().next()?;
    let needs = requirements(&adapter, None).expect("the adapter computes");
    let open = || {
        let opened = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: needs.features,
            required_limits: needs.limits.clone(),
            ..wgpu::DeviceDescriptor::default()
        }));
        let (device, queue) = opened.expect("the adapter opens");
        WgpuBackend::from_device(device, queue).expect("it is alive")
    };
    Some([open(), open()])
}

pub fn a_buffer_of_another_device_is_refused(backend: &WgpuBackend, strategy: Strategy) {
    // GL has one context.
    if backend.info().api == Api::Gl {
        return;
    }
    let Some([own, other]) = two_devices(wgpu::Backends::VULKAN) else { return };
    for preprocess in preprocessing(3) {
        let mut feeder = feeder(&own, image(3), options(strategy, &preprocess, 1));
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let foreign = buffer(&other, 4096, usage);
        for _ in 0..3 {
            let written = feeder.feed_into(&[bytes(0, 105)], &foreign, 0).map(drop).expect_err("it is another's");
            assert!(matches!(resource(written), ResourceError::Refused { .. }));
            let read = feeder.feed_buffer(&foreign, 0, 1).map(drop).expect_err("it is another's");
            assert!(matches!(resource(read), ResourceError::Refused { .. }));
            assert_eq!(feeder.feed(&[bytes(0, 105)]).expect("the feeder goes on").len(), 1);
        }
    }
}

pub fn frames_in_a_buffer_become_tensors_where_they_are(backend: &WgpuBackend, strategy: Strategy) {
    for preprocess in all_preprocessing() {
        let mut twin = feeder(backend, image(3), options(strategy, &preprocess, 3));
        let mut into_twin = feeder(backend, image(3), options(strategy, &preprocess, 3));
        let mut feeder = feeder(backend, image(3), options(strategy, &preprocess, 3));
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        let target = target(backend, 4096);
        for count in [3, 1, 2] {
            let frames: Vec<Vec<u8>> = (0..count).map(|number| bytes(number + 9, 105)).collect();
            let by_slot = twin.feed(&frames).expect("it is sent");
            let expected = by_slot.read().expect("readable");
            let source = filled(backend, OFFSET, &frames.concat(), usage);
            let batch = feeder.feed_buffer(&source, OFFSET, count).expect("it is sent");
            assert_eq!((batch.len(), batch.read().expect("readable")), (count, expected.clone()), "{preprocess:?}");
            let geometries = |batch: &Batch<WgpuBackend>| batch.read_field("geometry").expect("readable");
            assert_eq!(geometries(&batch), geometries(&by_slot));
            let into = into_twin.feed_buffer_into(&source, OFFSET, count, (&target, OFFSET)).expect("it is sent");
            into.wait().expect("the device is there");
            assert_eq!(read(backend, &target)[512..][..expected.len()], expected[..]);
        }
        // More than can be in flight at once: it waits for room.
        let source = filled(backend, 0, &bytes(3, 108), usage);
        (0..10).for_each(|_| drop(feeder.feed_buffer(&source, 0, 1).expect("it is sent")));
    }
}

pub fn frames_that_cannot_be_read_where_they_are_are_refused_by_name(backend: &WgpuBackend, strategy: Strategy) {
    for preprocess in preprocessing(3) {
        let mut feeder = feeder(backend, image(3), options(strategy, &preprocess, 2));
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        let mut refused = |source: &wgpu::Buffer, offset| {
            let error = resource(feeder.feed_buffer(source, offset, 2).map(drop).expect_err("it cannot be read"));
            assert_eq!(feeder.feed(&[bytes(0, 105)]).expect("the feeder goes on").len(), 1);
            error
        };
        let what = "the buffer of frames";
        let small = filled(backend, 0, &[0; 208], usage);
        assert_eq!(refused(&small, 0), ResourceError::Size { what, size: 208, offset: 0, needed: 212 });
        let fits = filled(backend, 0, &[0; 1024], usage);
        assert!(matches!(refused(&fits, 6), ResourceError::Alignment { offset: 6, .. }));
        assert!(matches!(refused(&buffer(backend, 1024, BufferUsages::COPY_DST), 0), ResourceError::Usage { .. }));
        let destroyed = filled(backend, 0, &[0; 1024], usage);
        destroyed.destroy();
        assert!(matches!(refused(&destroyed, 0), ResourceError::Refused { .. }));
        assert_eq!(feeder.feed_buffer(&fits, 0, 3).map(drop), Err(FeedError::Count { got: 3, most: 2 }));
    }
    let labelled = image(3).with_label(Element::I64).expect("a sample");
    let mut feeder = feeder(backend, labelled, options(strategy, &Preprocess::Raw, 1));
    let fits = filled(backend, 0, &[0; 1024], BufferUsages::COPY_SRC);
    let refused = resource(feeder.feed_buffer(&fits, 0, 1).map(drop).expect_err("nobody gives the label"));
    assert_eq!(refused, ResourceError::Fields { fields: 2 });
}

pub fn work_is_ordered_with_the_applications_own(backend: &WgpuBackend, strategy: Strategy) {
    let mut feeder = feeder(backend, image(3), options(strategy, &Normalize::unit(3).into(), 1));
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
    let (source, target) = (filled(backend, 0, &[0; 108], usage), target(backend, 512));
    for value in [51u8, 102, 255, 0] {
        // Behind what was submitted before, and before what is submitted then.
        backend.queue().write_buffer(&source, 0, &[value; 108]);
        backend.queue().submit([]);
        let batch = feeder.feed_buffer(&source, 0, 1).expect("it is sent");
        let written = feeder.feed_into(&[[value; 105]], &target, 0).expect("it is sent");
        backend.queue().write_buffer(&source, 0, &[7; 108]);
        let seen = read(backend, &target);
        let right = |tensor: &[f32]| tensor.iter().all(|got| (got - f32::from(value) / 255.0).abs() < 1e-6);
        assert!(right(&batch.read_f32().expect("readable")), "{value}");
        let (floats, _) = seen[..420].as_chunks::<4>();
        assert!(right(&floats.iter().map(|&one| f32::from_ne_bytes(one)).collect::<Vec<_>>()), "{value}");
        assert_eq!(written.desc().byte_len(), 420);
    }
}
