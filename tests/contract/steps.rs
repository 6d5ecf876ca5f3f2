//! Steps of an application's own: behind the kernels, or instead of them, for every batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::backend::{Backend, Step, WgpuBatch};
use gpufeed::preprocess::{fingerprint, sample_fingerprint};
use gpufeed::source::random_images;
use gpufeed::staging::SampleBuffer;
use gpufeed::wgpu::{self, BufferUsages};
use gpufeed::{
    DeviceError, Element, FeedError, Feeder, FeederOptions, Field, LoadError, Loader, LoaderOptions, MemorySource,
    Normalize, OpenError, Preprocess, SampleContext, SampleLayout, Source, SourceError, Strategy,
};

const SAMPLES: usize = 11;
const BATCH: usize = 4;
const PIXELS: usize = 8 * 6;

const THRESHOLD: &str = "
    @group(0) @binding(0) var<storage, read_write> tensor: array<f32>;
    @compute @workgroup_size(64) fn step(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&tensor) { tensor[id.x] = select(0.0, 1.0, tensor[id.x] > 0.5); }
    }";
const INVERT: &str = "
    @group(0) @binding(0) var<storage, read_write> tensor: array<u32>;
    @compute @workgroup_size(64) fn step(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&tensor) { tensor[id.x] = ~tensor[id.x]; }
    }";
/// A grey picture becomes itself and its negative.
const TWO_CHANNELS: &str = "
    @group(0) @binding(0) var<storage, read_write> tensor: array<f32>;
    @group(0) @binding(1) var<storage, read> pixels: array<u32>;
    const PIXELS = 48u;
    @compute @workgroup_size(64) fn step(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x >= arrayLength(&tensor) { return; }
        let pixel = id.x / (2u * PIXELS) * PIXELS + id.x % PIXELS;
        let value = f32((pixels[pixel / 4u] >> (8u * (pixel % 4u))) & 255u);
        tensor[id.x] = select(value, 255.0 - value, (id.x / PIXELS) % 2u == 1u);
    }";

/// A grey picture, and words that no step works on.
fn source() -> Arc<MemorySource> {
    let fields = [Field::image("image", 8, 6, 1), Field::array("words", Element::I32, &[3])];
    let fields: Result<Vec<_>, _> = fields.into_iter().collect();
    Arc::new(random_images(fields.and_then(SampleLayout::new).expect("a sample"), SAMPLES, 3).expect("in memory"))
}

fn field(source: &dyn Source, index: u64, number: usize) -> Vec<u8> {
    let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
    source.read(&SampleContext::of(index), &mut sample.writer()).expect("it can be read");
    sample.bytes(number).expect("it was written").to_vec()
}

fn options(strategy: Strategy, preprocess: Preprocess, step: Step) -> LoaderOptions {
    LoaderOptions {
        batch_size: BATCH,
        slots: 2,
        outputs: 3,
        workers: 2,
        seed: Some(7),
        strategy: Some(strategy),
        preprocess,
        step: Some(step),
        fingerprints: true,
        ..LoaderOptions::default()
    }
}

/// A kernel over the first tensor, which reads the bytes that arrived where it `reads`.
fn kernel(
    backend: &WgpuBackend,
    shader: &str,
    reads: bool,
) -> impl Fn(&mut wgpu::CommandEncoder, &WgpuBatch<'_>) + Send + Sync + use<> {
    let module = backend.device().create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("a step"),
        source: wgpu::ShaderSource::Wgsl(shader.into()),
    });
    let pipeline = backend.device().create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("a step"),
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    move |encoder, batch| {
        let buffers = [Some(batch.tensor(0).expect("on the device")), batch.field(0).filter(|_| reads)];
        let entry =
            |(binding, buffer)| wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(buffer) };
        let entries: Vec<_> = (0..).zip(buffers.into_iter().flatten()).map(entry).collect();
        let layout = &pipeline.get_bind_group_layout(0);
        let desc = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
        let group = batch.device.create_bind_group(&desc);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        let elements = batch.tensors.first().of(batch.samples).elements();
        pass.dispatch_workgroups(elements.div_ceil(64) as u32, 1, 1);
    }
}

fn step(backend: &WgpuBackend, shader: &str, reads: bool) -> Step {
    let kernel = kernel(backend, shader, reads);
    Step::wgpu(move |encoder, batch| {
        kernel(encoder, batch);
        Ok(())
    })
}

/// Two epochs, of which every tensor is what `made` says of the bytes, and everything else as it was.
fn check(backend: &WgpuBackend, options: LoaderOptions, made: impl Fn(&[u8]) -> Vec<u8>) {
    let source = source();
    let mut loader = Loader::new(backend, Arc::clone(&source), options).expect("it opens");
    let mut seen = 0;
    for batch in loader.epochs(0..2) {
        let batch = batch.expect("it can be read");
        let all = |number| -> Vec<u8> { batch.indices().iter().flat_map(|&at| field(&*source, at, number)).collect() };
        let images: Vec<_> = batch.indices().iter().flat_map(|&at| made(&field(&*source, at, 0))).collect();
        assert!(batch.read().expect("it can be read back") == images, "batch {}", batch.number());
        assert_eq!(batch.read_field("words").expect("it can be read back").expect("on the device"), all(1));
        let sums = batch.fingerprints().expect("they can be read back").expect("they were asked for");
        for (&index, sum) in batch.indices().iter().zip(sums) {
            let fields = [0, 1].map(|number| fingerprint(&field(&*source, index, number)));
            assert_eq!(sum, sample_fingerprint(&fields), "those of the bytes that arrived");
        }
        seen += batch.len();
    }
    assert_eq!(seen, 2 * SAMPLES);
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_ne_bytes).collect()
}

fn threshold(bytes: &[u8]) -> Vec<u8> {
    floats(bytes.iter().map(|&byte| f32::from(u8::from(byte > 127))))
}

pub fn a_step_changes_what_the_kernels_made(backend: &WgpuBackend, strategy: Strategy) {
    let normalized = options(strategy, Normalize::unit(1).into(), step(backend, THRESHOLD, false));
    check(backend, normalized, threshold);
    let raw = options(strategy, Preprocess::Raw, step(backend, INVERT, false));
    check(backend, raw, |bytes| bytes.iter().map(|byte| !byte).collect());
}

pub fn a_step_makes_the_tensor_or_is_refused_by_name(backend: &WgpuBackend, strategy: Strategy) {
    let tensor = Preprocess::Own(Field::array("planes", Element::F32, &[2, 8, 6]).expect("a field"));
    let own = options(strategy, tensor.clone(), step(backend, TWO_CHANNELS, true));
    match Loader::new(backend, source(), own.clone()) {
        Ok(loader) => drop(loader),
        Err(OpenError::Unsupported(why)) => {
            assert!(matches!(strategy, Strategy::DirectMap | Strategy::SystemRing), "{why}");
            assert!(why.reason.contains("step"), "{why}");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    assert_ne!(strategy, Strategy::DirectMap);
    check(backend, own.clone(), |bytes| {
        assert_eq!(bytes.len(), PIXELS);
        let plane = |negative: bool| bytes.iter().map(move |&byte| f32::from(if negative { 255 - byte } else { byte }));
        floats(plane(false).chain(plane(true)))
    });
    let missing = Loader::new(backend, source(), LoaderOptions { step: None, ..own });
    assert!(matches!(missing.err(), Some(OpenError::Unsupported(why)) if why.reason.contains("there is none")));
}

/// A grey picture of two by two.
fn feeder(backend: &WgpuBackend, strategy: Strategy, step: Step) -> Feeder<WgpuBackend> {
    let options = FeederOptions {
        slots: 1,
        outputs: 2,
        strategy: Some(strategy),
        preprocess: Normalize::unit(1).into(),
        step: Some(step),
        ..FeederOptions::default()
    };
    Feeder::new(backend, SampleLayout::image(2, 2, 1).expect("an image"), options).expect("the feeder opens")
}

fn buffer(backend: &WgpuBackend, size: u64, usage: BufferUsages) -> wgpu::Buffer {
    let desc = wgpu::BufferDescriptor { label: Some("the application's"), size, usage, mapped_at_creation: false };
    backend.device().create_buffer(&desc)
}

pub fn a_step_that_fails_costs_its_batch_only(backend: &WgpuBackend, strategy: Strategy) {
    let (calls, kernel) = (Arc::new(AtomicUsize::new(0)), kernel(backend, THRESHOLD, false));
    let destroyed = buffer(backend, 64, BufferUsages::COPY_SRC);
    destroyed.destroy();
    let call = Arc::clone(&calls);
    let device = backend.device().clone();
    let step = Step::wgpu(move |encoder, batch| {
        match call.load(Ordering::Relaxed) {
            1 => return Err("there is no model yet".into()),
            2 => panic!("there was a bug"),
            3 => encoder.copy_buffer_to_buffer(&destroyed, 0, batch.output.0, batch.output.1, 16),
            4 => encoder.clear_buffer(batch.output.0, 1 << 40, None),
            // The batch's own commands are not in the encoder that a step is given.
            5 => drop(std::mem::replace(
                encoder,
                device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default()),
            )),
            _ => {}
        }
        kernel(encoder, batch);
        Ok::<_, SourceError>(())
    });
    let mut feeder = feeder(backend, strategy, step);
    let mut feed = |number: usize| {
        calls.store(number, Ordering::Relaxed);
        let frame = [10, 200, 30, number as u8];
        feeder.feed(&[&frame]).map(|batch| batch.read_f32().expect("it can be read back"))
    };
    let refused = |fed: Result<Vec<f32>, FeedError>| match fed {
        Err(FeedError::Device(error)) => error,
        other => panic!("{other:?}"),
    };
    for round in 0..3 {
        assert_eq!(feed(0).expect("it is sent"), [0.0, 1.0, 0.0, 0.0], "round {round}");
        let reason = "there is no model yet".to_owned();
        assert_eq!(refused(feed(1)), DeviceError::Step { reason });
        assert!(matches!(refused(feed(2)), DeviceError::Step { reason } if reason.contains("there was a bug")));
        assert!(matches!(refused(feed(3)), DeviceError::Refused { message } if message.contains("destroyed")));
        assert!(matches!(refused(feed(4)), DeviceError::Refused { .. }));
        assert_eq!(feed(5).expect("it is sent"), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(feed(200).expect("it is sent"), [0.0, 1.0, 0.0, 1.0]);
    }
}

pub fn a_step_that_fails_in_a_loader_is_an_error_of_its_batch(backend: &WgpuBackend, strategy: Strategy) {
    let (calls, kernel) = (AtomicUsize::new(0), kernel(backend, THRESHOLD, false));
    let step = Step::wgpu(move |encoder, batch| {
        if calls.fetch_add(1, Ordering::Relaxed) == 1 {
            return Err("not this one".into());
        }
        kernel(encoder, batch);
        Ok(())
    });
    let options = options(strategy, Normalize::unit(1).into(), step);
    let (source, mut failed, mut seen) = (source(), 0, 0);
    let mut loader = Loader::new(backend, Arc::clone(&source), options).expect("it opens");
    for batch in loader.epochs(0..3) {
        match batch {
            Ok(batch) => {
                let images: Vec<_> =
                    batch.indices().iter().flat_map(|&at| threshold(&field(&*source, at, 0))).collect();
                assert!(batch.read().expect("it can be read back") == images);
                seen += 1;
            }
            Err(LoadError::Device { source: DeviceError::Step { reason }, .. }) => {
                assert_eq!(reason, "not this one");
                failed += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((failed, seen), (1, 8));
}

/// Who destroys a tensor that a step is lent loses its batches, with an error and nothing else.
pub fn a_tensor_that_a_step_destroys_is_lost(backend: &WgpuBackend, strategy: Strategy) {
    let (calls, kernel) = (AtomicUsize::new(0), kernel(backend, THRESHOLD, false));
    let step = Step::wgpu(move |encoder, batch| {
        kernel(encoder, batch);
        if calls.fetch_add(1, Ordering::Relaxed) == 1 {
            batch.output.0.destroy();
        }
        Ok(())
    });
    let mut feeder = feeder(backend, strategy, step);
    let kept = feeder.feed(&[&[9, 201, 9, 9]]).expect("it is sent");
    for _ in 0..3 {
        assert!(matches!(feeder.feed(&[&[9; 4]]), Err(FeedError::Device(DeviceError::Refused { .. }))));
    }
    assert_eq!(kept.read_f32().expect("it can be read back"), [0.0, 1.0, 0.0, 0.0]);
    drop(kept);
}

pub fn frames_that_are_on_the_gpu_have_the_step_too(backend: &WgpuBackend, strategy: Strategy) {
    let mut feeder = feeder(backend, strategy, step(backend, THRESHOLD, false));
    let frames = buffer(backend, 4, BufferUsages::STORAGE | BufferUsages::COPY_DST);
    backend.queue().write_buffer(&frames, 0, &[200, 10, 128, 127]);
    let batch = feeder.feed_buffer(&frames, 0, 1).expect("it is sent");
    assert_eq!(batch.read_f32().expect("it can be read back"), [1.0, 0.0, 1.0, 0.0]);
    let target = buffer(backend, 512 + 16, BufferUsages::STORAGE | BufferUsages::COPY_SRC);
    feeder.feed_into(&[&[1, 2, 254, 255]], &target, 512).expect("it is sent").wait().expect("the device is there");
    let staging = buffer(backend, 16, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(&target, 512, &staging, 0, 16);
    encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., |result| result.expect("mapped"));
    backend.queue().submit([encoder.finish()]);
    while !backend.device().poll(wgpu::PollType::Poll).expect("the device is there").is_queue_empty() {}
    let bytes = staging.slice(..).get_mapped_range().expect("mapped").to_vec();
    assert_eq!(bytes, floats([0.0, 0.0, 1.0, 1.0].into_iter()));
}

/// Of the host, of CUDA, and of strategies that have no slots.
pub fn a_step_that_nothing_records_is_refused_by_name<B: Backend>(backend: &B, strategy: Strategy) {
    let source = Arc::new(random_images(SampleLayout::image(8, 8, 1).expect("an image"), 4, 3).expect("in memory"));
    let options = options(strategy, Normalize::unit(1).into(), Step::wgpu(|_, _| Ok(())));
    match Loader::new(backend, source, options).err() {
        Some(OpenError::Unsupported(why)) => assert!(why.reason.contains("step"), "{why}"),
        other => panic!("{other:?}"),
    }
}
