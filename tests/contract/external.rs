//! An application's own buffers and textures: what tensors are written into, and what frames are read from.

use gpufeed::backend::wgpu::{ResourceError, WgpuBackend, requirements};
use gpufeed::layout::FrameLayout;
use gpufeed::wgpu::{self, BufferUsages, TextureFormat, TextureUsages};
use gpufeed::{
    Api, Element, FeedError, Feeder, FeederOptions, Field, Normalize, Pipeline, PixelFormat, Preprocess, Resize,
    SampleLayout, Strategy, TensorType,
};

const HEIGHT: usize = 5;
const WIDTH: usize = 7;
const OFFSET: u64 = 512;
/// What stands in a buffer before anything is written there.
const UNTOUCHED: u8 = 0xA5;

fn options(strategy: Strategy, preprocess: &Preprocess, batch_size: usize) -> FeederOptions {
    let (strategy, preprocess) = (Some(strategy), preprocess.clone());
    FeederOptions { batch_size, slots: 1, outputs: 2, strategy, preprocess, ..FeederOptions::default() }
}

fn feeder(backend: &WgpuBackend, layout: SampleLayout, options: FeederOptions) -> Feeder<WgpuBackend> {
    Feeder::new(backend, layout, options).expect("the feeder opens")
}

fn image(channels: usize) -> SampleLayout {
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

fn bytes(number: usize, len: usize) -> Vec<u8> {
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

fn read(backend: &WgpuBackend, from: &wgpu::Buffer) -> Vec<u8> {
    let staging = buffer(backend, from.size(), BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(from, 0, &staging, 0, from.size());
    encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., |result| result.expect("mapped"));
    backend.queue().submit([encoder.finish()]);
    while !backend.device().poll(wgpu::PollType::Poll).expect("the device is there").is_queue_empty() {}
    staging.slice(..).get_mapped_range().expect("mapped").to_vec()
}

fn target(backend: &WgpuBackend, size: u64) -> wgpu::Buffer {
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
    filled(backend, 0, &vec![UNTOUCHED; size as usize], usage)
}

fn resource(error: FeedError) -> ResourceError {
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
                let fields: Vec<_> = ["image", "mask"].into_iter().filter_map(|name| expected.field(name)).collect();
                let tensors: Vec<_> =
                    ["image", "mask"].into_iter().filter_map(|name| expected.read_field(name).expect("read")).collect();
                let geometry = expected.geometry(count - 1);
                backend.queue().write_buffer(&target, 0, &vec![UNTOUCHED; 4096]);
                let written = feeder.feed_with_into(count, write, &target, OFFSET).expect("it is sent");
                assert_eq!((written.len(), written.tags(), written.buffer()), (count, &vec![7; count][..], &target));
                written.wait().expect("the device is there");
                assert!(written.is_ready().expect("the device is there"));
                let (all, mut end) = (read(backend, &target), 0);
                for (name, (desc, tensor)) in ["image", "mask"].into_iter().zip(fields.iter().zip(&tensors)) {
                    let own = written.field(name).expect("on the device");
                    assert_eq!((own.offset, own.shape.as_slice()), (desc.offset + 512, desc.shape.as_slice()));
                    end = own.offset + own.byte_len();
                    assert_eq!(all[own.offset..end], tensor[..], "{name} of {count} frames, {preprocess:?}");
                }
                assert!(all[..512].iter().all(|&byte| byte == UNTOUCHED), "before the offset");
                assert!(all[end.next_multiple_of(16)..].iter().all(|&byte| byte == UNTOUCHED), "behind the tensors");
                assert_eq!((written.geometry(count - 1), written.field("geometry")), (geometry, None));
                fed += count;
            }
        }
    }
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
            let geometries = |batch: &gpufeed::Batch<WgpuBackend>| batch.read_field("geometry").expect("readable");
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

/// A texture of the frames' size that holds these texels.
fn texture(backend: &WgpuBackend, format: TextureFormat, texels: &[u8], twin: bool) -> wgpu::Texture {
    let texel = format.block_copy_size(None).expect("a plain format");
    let view_formats: &[TextureFormat] = if twin { &[format.remove_srgb_suffix()] } else { &[] };
    let usage = TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST;
    let made = backend.device().create_texture(&wgpu::TextureDescriptor { format, view_formats, ..picture(usage) });
    let layout =
        wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(WIDTH as u32 * texel), rows_per_image: None };
    backend.queue().write_texture(made.as_image_copy(), texels, layout, made.size());
    made
}

fn picture(usage: TextureUsages) -> wgpu::TextureDescriptor<'static> {
    wgpu::TextureDescriptor {
        label: Some("the application's"),
        size: wgpu::Extent3d { width: WIDTH as u32, height: HEIGHT as u32, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: TextureFormat::Rgba8Unorm,
        usage,
        view_formats: &[],
    }
}

fn view(texture: &wgpu::Texture) -> wgpu::TextureView {
    texture.create_view(&wgpu::TextureViewDescriptor::default())
}

/// The bytes of a frame with these pixels, red first.
fn frame_of(frame: &FrameLayout, pixels: &[[u8; 4]]) -> Vec<u8> {
    let order: &[usize] = match frame.format() {
        PixelFormat::Gray8 => &[0],
        PixelFormat::Rgb8 => &[0, 1, 2],
        PixelFormat::Bgr8 => &[2, 1, 0],
        PixelFormat::Rgba8 => &[0, 1, 2, 3],
        _ => &[2, 1, 0, 3],
    };
    let row = |row: &[[u8; 4]]| {
        let mut bytes: Vec<u8> = row.iter().flat_map(|pixel| order.iter().map(|&at| pixel[at])).collect();
        bytes.resize(frame.pitch(), 0);
        bytes
    };
    pixels.chunks(WIDTH).flat_map(row).collect()
}

pub fn a_texture_becomes_the_frame_that_its_texels_are(backend: &WgpuBackend, strategy: Strategy) {
    let texels = bytes(4, 4 * HEIGHT * WIDTH);
    let rgba: Vec<[u8; 4]> = texels.as_chunks().0.to_vec();
    let swapped: Vec<[u8; 4]> = rgba.iter().map(|&[b, g, r, a]| [r, g, b, a]).collect();
    let gray: Vec<[u8; 4]> = texels.iter().take(HEIGHT * WIDTH).map(|&one| [one, 0, 0, 255]).collect();
    for (format, tight) in [
        (PixelFormat::Rgb8, 3 * WIDTH),
        (PixelFormat::Bgr8, 3 * WIDTH),
        (PixelFormat::Rgba8, 4 * WIDTH),
        (PixelFormat::Bgra8, 4 * WIDTH),
        (PixelFormat::Gray8, WIDTH),
    ] {
        for pitch in [tight, tight + 1, 32 + tight.next_multiple_of(4)] {
            let field = Field::frame("image", format, HEIGHT, WIDTH).and_then(|field| field.with_pitch(pitch));
            let layout = field.and_then(|field| SampleLayout::new([field])).expect("a frame");
            let frame = layout.as_frame().expect("it is one");
            let sources: &[(TextureFormat, &[[u8; 4]])] = match format {
                PixelFormat::Gray8 => &[(TextureFormat::R8Unorm, &gray)],
                _ => &[
                    (TextureFormat::Rgba8Unorm, &rgba),
                    (TextureFormat::Bgra8Unorm, &swapped),
                    (TextureFormat::Rgba8UnormSrgb, &rgba),
                    (TextureFormat::Bgra8UnormSrgb, &swapped),
                ],
            };
            let pipeline = Pipeline::minus_one_to_one().with_resize(Resize::Exact { height: 4, width: 6 });
            let normalizes = layout.as_image().map(|image| Normalize::unit(image.channels()).into());
            for preprocess in [Preprocess::Raw, pipeline.into()].into_iter().chain(normalizes) {
                let mut feeder = feeder(backend, layout.clone(), options(strategy, &preprocess, 2));
                let target = target(backend, 4096);
                // GL views textures in their own format only.
                let viewed = |format: TextureFormat| !format.is_srgb() || backend.info().api != Api::Gl;
                for &(texture_format, pixels) in sources.iter().filter(|(format, _)| viewed(*format)) {
                    let expected = feeder.feed(&[frame_of(&frame, pixels)]).expect("it is sent");
                    let expected = expected.read().expect("readable");
                    let len = pixels.len() * texture_format.block_copy_size(None).expect("plain") as usize;
                    let texture = texture(backend, texture_format, &texels[..len], texture_format.is_srgb());
                    let batch = feeder.feed_texture(&view(&texture)).expect("it is sent");
                    assert_eq!(batch.read().expect("readable"), expected, "{texture_format:?} to {layout}");
                    let into = feeder.feed_texture_into(&view(&texture), &target, OFFSET).expect("it is sent");
                    into.wait().expect("the device is there");
                    assert_eq!(read(backend, &target)[512..][..expected.len()], expected[..]);
                }
            }
        }
    }
}

pub fn a_texture_that_is_no_frame_is_refused_by_name(backend: &WgpuBackend, strategy: Strategy) {
    let mut feeder = feeder(backend, image(3), options(strategy, &Normalize::unit(3).into(), 1));
    let usage = TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST;
    let plain = picture(usage);
    let mut refused = |desc: &wgpu::TextureDescriptor<'_>| {
        let view = view(&backend.device().create_texture(desc));
        let error = resource(feeder.feed_texture(&view).map(drop).expect_err("it is no frame"));
        assert_eq!(feeder.feed(&[bytes(0, 105)]).expect("the feeder goes on").len(), 1);
        error
    };
    let format = TextureFormat::Rgba8UnormSrgb;
    let srgb = refused(&wgpu::TextureDescriptor { format, ..plain.clone() });
    assert!(srgb.to_string().ends_with("it was created without Rgba8Unorm in `view_formats`"), "{srgb}");
    let format = TextureFormat::Rgba16Float;
    assert!(matches!(
        refused(&wgpu::TextureDescriptor { format, ..plain.clone() }),
        ResourceError::TextureFormat { format: TextureFormat::Rgba16Float, .. }
    ));
    let format = TextureFormat::R8Unorm;
    let gray = refused(&wgpu::TextureDescriptor { format, ..plain.clone() });
    assert!(gray.to_string().ends_with("it has one channel, and the frames have 3"), "{gray}");
    let size = wgpu::Extent3d { width: 8, ..plain.size };
    assert_eq!(
        refused(&wgpu::TextureDescriptor { size, ..plain.clone() }),
        ResourceError::TextureSize { width: 8, height: 5, frame_width: WIDTH, frame_height: HEIGHT }
    );
    assert!(matches!(
        refused(&wgpu::TextureDescriptor { mip_level_count: 2, ..plain.clone() }),
        ResourceError::Texture { .. }
    ));
    let size = wgpu::Extent3d { depth_or_array_layers: 2, ..plain.size };
    assert!(matches!(refused(&wgpu::TextureDescriptor { size, ..plain.clone() }), ResourceError::Texture { .. }));
    let missing = refused(&wgpu::TextureDescriptor { usage: TextureUsages::COPY_DST, ..plain.clone() });
    assert_eq!(missing.to_string(), "the texture lacks the usages TEXTURE_BINDING");
    let destroyed = backend.device().create_texture(&plain);
    let destroyed_view = view(&destroyed);
    destroyed.destroy();
    let error = feeder.feed_texture(&destroyed_view).map(drop).expect_err("it is gone");
    assert!(matches!(resource(error), ResourceError::Refused { .. }));
    assert_eq!(feeder.feed(&[bytes(0, 105)]).expect("the feeder goes on").len(), 1);
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
