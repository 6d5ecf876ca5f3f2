//! How long the kernels of pipelines take by the device's own clock, beside the normalising kernel and a kernel that only copies.
//!
//! ```sh
//! cargo bench --bench pipeline -- vulkan
//! ```
//!
//! A sample of each case's last batch is checked against the oracle before its figures are printed.

#![allow(clippy::print_stdout)] // It is a report.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "cuda")]
use gpufeed::backend::cuda::CudaBackend;
use gpufeed::backend::host::HostBackend;
#[cfg(feature = "wgpu")]
use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::layout::{FrameLayout, PixelFormat, Yuv};
use gpufeed::preprocess::PipelineOracle;
use gpufeed::source::random_images;
use gpufeed::{
    Anchor, Backend, Field, Loader, LoaderOptions, Normalize, Pipeline, Preprocess, Resize, SampleContext,
    SampleLayout, Source, staging::SampleBuffer,
};

const BATCHES: u64 = 200;
const WARM_UP: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_else(|| "host".to_owned());
    match wanted.as_str() {
        "host" => report(&HostBackend::new()),
        #[cfg(feature = "cuda")]
        other if other.starts_with("cuda") => report(&CudaBackend::open(other)?),
        #[cfg(feature = "wgpu")]
        other => report(&WgpuBackend::open(other)?),
        #[cfg(not(feature = "wgpu"))]
        other => Err(format!("{other} needs the feature wgpu").into()),
    }
}

/// What is measured: a name, samples, how many of them a batch has, and what becomes of them.
type Case = (&'static str, SampleLayout, usize, Preprocess);

fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    let camera = FrameLayout::new(PixelFormat::Bgra8, 720, 1280)?.with_pitch(5376)?;
    let camera = SampleLayout::new([Field::of_frame("frame", camera)?])?;
    let letterbox = Resize::Letterbox { height: 224, width: 224, anchor: Anchor::Center };
    let nv12 = |height, width| SampleLayout::frame(PixelFormat::Nv12(Yuv::BT709), height, width);
    let rgb = SampleLayout::image(256, 256, 3)?;
    Ok(vec![
        ("720p BGRA, letterbox 224", camera, 1, Pipeline::imagenet().with_resize(letterbox).into()),
        ("1080p NV12, YOLO 640", nv12(1080, 1920)?, 1, Pipeline::yolo(640).into()),
        ("1080p NV12, ImageNet eval", nv12(1080, 1920)?, 1, Pipeline::imagenet_eval().into()),
        ("256x256, ImageNet train", rgb.clone(), 64, Pipeline::imagenet_train(224).into()),
        ("256x256, ImageNet eval", rgb, 64, Pipeline::imagenet_eval().into()),
        ("224x224, as they are", SampleLayout::image(224, 224, 3)?, 64, Pipeline::imagenet().into()),
        ("224x224, Normalize", SampleLayout::image(224, 224, 3)?, 64, Normalize::imagenet().into()),
    ])
}

fn report<B: Backend>(backend: &B) -> Result<(), Box<dyn Error>> {
    let info = backend.info();
    println!("{} ({}), {} {}", info.name, info.id, info.driver, info.driver_info);
    let ceiling = backend.kernel_ceiling(Duration::from_millis(300))?;
    if let Some(ceiling) = ceiling {
        println!("a kernel that copies: {:.0} GB/s, read and written", ceiling / 1e9);
    }
    println!("{:28} {:>6} {:>10} {:>8} {:>8}", "case", "batch", "us", "GB/s", "of copy");
    for (name, layout, batch, preprocess) in cases()? {
        let (seconds, bytes) = measure(backend, &layout, batch, &preprocess)?;
        let (us, rate) = (seconds * 1e6, bytes / seconds);
        let share = ceiling.map_or_else(String::new, |ceiling| format!("{:.2}", rate / ceiling));
        println!("{name:28} {batch:>6} {us:>10.1} {:>8.0} {share:>8}", rate / 1e9);
    }
    Ok(())
}

/// Seconds of a batch's kernels, and the bytes of its frames and tensors.
fn measure<B: Backend>(
    backend: &B,
    layout: &SampleLayout,
    batch: usize,
    preprocess: &Preprocess,
) -> Result<(f64, f64), Box<dyn Error>> {
    let source = Arc::new(random_images(layout.clone(), 4 * batch, 1)?);
    let options = LoaderOptions {
        batch_size: batch,
        seed: Some(1),
        preprocess: preprocess.clone(),
        timing: true,
        ..LoaderOptions::default()
    };
    let mut loader = Loader::new(backend, Arc::clone(&source), options)?;
    let (mut before, mut number, mut bytes) = (None, 0, 0);
    for epoch in 0.. {
        for next in loader.epoch(epoch) {
            let next = next?;
            bytes = layout.byte_len() * next.len() + next.desc().byte_len();
            number += 1;
            if number == BATCHES {
                check(&next, &*source, layout, preprocess)?;
            }
        }
        if number >= WARM_UP && before.is_none() {
            loader.wait_idle()?;
            before = loader.stats().gpu;
        }
        if number >= BATCHES {
            break;
        }
    }
    loader.wait_idle()?;
    let (Some(before), Some(after)) = (before, loader.stats().gpu) else {
        return Err("the device has no clock that can be believed".into());
    };
    let times = after.since(before);
    Ok((times.kernel_s / times.batches.max(1) as f64, bytes as f64))
}

/// Compares the first sample of a batch with the oracle.
fn check<B: Backend>(
    batch: &gpufeed::Batch<B>,
    source: &dyn Source,
    layout: &SampleLayout,
    preprocess: &Preprocess,
) -> Result<(), Box<dyn Error>> {
    let (Preprocess::Pipeline(pipeline), Some(geometry)) = (preprocess, batch.geometry(0)) else { return Ok(()) };
    let mut sample = SampleBuffer::new(layout.clone())?;
    source
        .read(&SampleContext::of(batch.indices()[0]), &mut sample.writer())
        .map_err(|error| -> Box<dyn Error> { error })?;
    let tensor = batch.read()?;
    let frame = sample.bytes(0).ok_or("the first field is read")?;
    let worst =
        PipelineOracle::new(pipeline, layout)?.worst(&geometry, frame, &tensor[..tensor.len() / batch.len()])?;
    if worst <= 1.0 { Ok(()) } else { Err(format!("a tensor is off by {worst} of its bound").into()) }
}
