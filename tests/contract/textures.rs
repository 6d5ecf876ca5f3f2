//! An application's own textures as frames.

use gpufeed::backend::Step;
use gpufeed::backend::wgpu::{ResourceError, WgpuBackend};
use gpufeed::layout::FrameLayout;
use gpufeed::wgpu::{self, TextureFormat, TextureUsages};
use gpufeed::{
    Api, Element, Feeder, FeederOptions, Field, Normalize, OpenError, Pipeline, PixelFormat, Preprocess, Resize,
    SampleLayout, Strategy,
};

use crate::external::{HEIGHT, OFFSET, WIDTH, bytes, feeder, image, options, read, resource, target};

/// A texture of the frames' size that holds these texels.
fn texture(backend: &WgpuBackend, format: TextureFormat, texels: &[u8], twin: bool) -> wgpu::Texture {
    let texel = format.block_copy_size(None).expect("a plain format");
    let texels = &texels[..HEIGHT * WIDTH * texel as usize];
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

/// The textures that become frames of a format, and the pixels that they have of these bytes, red first.
fn sources(format: PixelFormat, texels: &[u8]) -> Vec<(TextureFormat, Vec<[u8; 4]>)> {
    if format == PixelFormat::Gray8 {
        let gray = texels.iter().take(HEIGHT * WIDTH).map(|&one| [one, 0, 0, 255]).collect();
        return vec![(TextureFormat::R8Unorm, gray)];
    }
    let rgba: Vec<[u8; 4]> = texels.as_chunks().0.to_vec();
    let swapped: Vec<[u8; 4]> = rgba.iter().map(|&[b, g, r, a]| [r, g, b, a]).collect();
    vec![
        (TextureFormat::Rgba8Unorm, rgba.clone()),
        (TextureFormat::Bgra8Unorm, swapped.clone()),
        (TextureFormat::Rgba8UnormSrgb, rgba),
        (TextureFormat::Bgra8UnormSrgb, swapped),
    ]
}

pub fn a_texture_becomes_the_frame_that_its_texels_are(backend: &WgpuBackend, strategy: Strategy) {
    let texels = bytes(4, 4 * HEIGHT * WIDTH);
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
            let pipeline = Pipeline::minus_one_to_one().with_resize(Resize::Exact { height: 4, width: 6 });
            let normalizes = layout.as_image().map(|image| Normalize::unit(image.channels()).into());
            for preprocess in [Preprocess::Raw, pipeline.into()].into_iter().chain(normalizes) {
                let mut feeder = feeder(backend, layout.clone(), options(strategy, &preprocess, 2));
                let target = target(backend, 4096);
                for (format, pixels) in sources(frame.format(), &texels) {
                    // GL views textures in their own format only, and wgpu's uploads of BGRA are no calls of OpenGL ES.
                    let (gl, es) = (backend.info().api == Api::Gl, backend.info().driver_info.contains("OpenGL ES"));
                    if gl && (format.is_srgb() || es && format == TextureFormat::Bgra8Unorm) {
                        continue;
                    }
                    let expected = feeder.feed(&[frame_of(&frame, &pixels)]).expect("it is sent");
                    let expected = expected.read().expect("readable");
                    let texture = texture(backend, format, &texels, format.is_srgb());
                    let batch = feeder.feed_texture(&view(&texture)).expect("it is sent");
                    assert_eq!(batch.read().expect("readable"), expected, "{format:?} to {layout}");
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
    let missing = refused(&wgpu::TextureDescriptor { usage: TextureUsages::RENDER_ATTACHMENT, ..plain.clone() });
    assert_eq!(missing.to_string(), "the texture lacks the usages TEXTURE_BINDING");
}

pub fn a_destroyed_texture_is_refused(backend: &WgpuBackend, strategy: Strategy) {
    let mut feeder = feeder(backend, image(3), options(strategy, &Normalize::unit(3).into(), 1));
    let usage = TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST;
    let destroyed = backend.device().create_texture(&picture(usage));
    let destroyed_view = view(&destroyed);
    destroyed.destroy();
    let error = feeder.feed_texture(&destroyed_view).map(drop).expect_err("it is gone");
    assert!(matches!(resource(error), ResourceError::Refused { .. }));
    assert_eq!(feeder.feed(&[bytes(0, 105)]).expect("the feeder goes on").len(), 1);
}

/// Behind the frame's own commands, or instead of kernels, with the texels' bytes as they would have come in a slot.
pub fn a_texture_has_an_applications_step_too(backend: &WgpuBackend, strategy: Strategy) {
    let (bytes, texels) = (4 * HEIGHT * WIDTH, bytes(9, 4 * HEIGHT * WIDTH));
    let texture = texture(backend, TextureFormat::Rgba8Unorm, &texels, false);
    let clears = Step::wgpu(|encoder, batch| {
        encoder.clear_buffer(batch.output.0, batch.output.1, Some(8));
        Ok(())
    });
    let raw = FeederOptions { step: Some(clears), ..options(strategy, &Preprocess::Raw, 1) };
    let mut cleared = feeder(backend, image(4), raw);
    let batch = cleared.feed_texture(&view(&texture)).expect("it is sent");
    assert_eq!(batch.read().expect("readable"), [&[0; 8], &texels[8..]].concat());
    let copies = Step::wgpu(move |encoder, batch| {
        let (from, (to, start)) = (batch.field(0).ok_or("no bytes")?, batch.output);
        encoder.copy_buffer_to_buffer(from.buffer, from.offset, to, start + bytes as u64, bytes as u64);
        encoder.clear_buffer(to, start, Some(bytes as u64));
        Ok(())
    });
    let twice = Preprocess::Own(Field::array("twice", Element::U8, &[2, bytes]).expect("a field"));
    let own = FeederOptions { step: Some(copies), ..options(strategy, &twice, 1) };
    let mut own = match Feeder::new(backend, image(4), own) {
        // Slots that are read in place are no step's to read, as `steps` has it.
        Err(OpenError::Unsupported(_)) if matches!(strategy, Strategy::DirectMap | Strategy::SystemRing) => return,
        opened => opened.expect("the feeder opens"),
    };
    let batch = own.feed_texture(&view(&texture)).expect("it is sent");
    assert_eq!(batch.read().expect("readable"), [vec![0; bytes], texels].concat());
}
