//! From frames to a network's input on the device, by pipelines, beside the same bytes without one.
//!
//! ```sh
//! cargo bench --bench frames -- vulkan:0
//! ```
//!
//! *Pushed*: a frame of 1280x720 BGRA whose rows are padded, letterboxed to 224x224 in f32. The time starts when the frame is complete in the slot and ends
//! when its tensor has been waited for; in turn with it, the same bytes are copied and nothing else. *Loaded*: batches of 64 images of 256x256
//! through `RandomResizedCrop(224)` and `RandomHorizontalFlip`, in turn with batches that are normalised only. The kernel's rate counts whole
//! frames as read, though a crop reads a part. Tensors are checked against the oracle before their figures are printed.

#![allow(clippy::print_stdout)] // It is a report.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "cuda")]
use gpufeed::backend::cuda::CudaBackend;
use gpufeed::backend::host::HostBackend;
#[cfg(feature = "wgpu")]
use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::preprocess::PipelineOracle;
use gpufeed::source::random_images;
use gpufeed::{
    Anchor, Backend, Feeder, FeederOptions, Field, Loader, LoaderOptions, MemorySource, Normalize, Pipeline,
    PixelFormat, Preprocess, Resize, SampleContext, SampleLayout, SampleWriter, Source, Strategy,
};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const PUSHED: usize = 1000;
const WARM_UP: usize = 100;
const IMAGES: usize = 8192;
const BATCH: usize = 64;
const ROUNDS: usize = 7;

fn main() -> Result<()> {
    let mut wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if wanted.is_empty() {
        wanted.push("host".to_owned());
    }
    for device in &wanted {
        match device.split_once(':').map_or(device.as_str(), |(api, _)| api) {
            "host" => report(&HostBackend::new())?,
            #[cfg(feature = "cuda")]
            "cuda" => report(&CudaBackend::open(device)?)?,
            #[cfg(feature = "wgpu")]
            _ => report(&WgpuBackend::open(device)?)?,
            #[cfg(not(feature = "wgpu"))]
            _ => return Err(format!("{device} needs the feature wgpu").into()),
        }
    }
    Ok(())
}

fn report<B: Backend>(backend: &B) -> Result<()> {
    let info = backend.info();
    println!("{} ({}), {} {}", info.name, info.id, info.driver, info.driver_info);
    let strategies = Strategy::ALL.iter().copied();
    let strategies: Vec<Strategy> = strategies
        .filter(|&strategy| {
            backend.supports(strategy).is_ok() && !strategy.is_direct() && !strategy.allocates_per_batch()
        })
        .collect();
    println!("{:24} {:>34} {:>34}", "pushed, us a frame", "letterboxed, p50/p95/p99", "copied only, p50/p95/p99");
    for &strategy in &strategies {
        let [letterboxed, copied] = push(backend, strategy)?.map(percentiles);
        println!("{strategy:24} {letterboxed:>34} {copied:>34}");
    }
    let ceiling = backend.kernel_ceiling(Duration::from_millis(300))?;
    println!(
        "{:24} {:>20} {:>20} {:>8} {:>24}",
        "loaded, images/s", "random crops", "normalised only", "ratio", "crop kernel GB/s"
    );
    for &strategy in &strategies {
        load(backend, strategy, ceiling)?;
    }
    Ok(())
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize].as_nanos() as f64 / 1e3;
    format!("{:.1} / {:.1} / {:.1}", at(0.5), at(0.95), at(0.99))
}

/// The times of frames through the pipeline, and of the same ones copied.
fn push<B: Backend>(backend: &B, strategy: Strategy) -> Result<[Vec<Duration>; 2]> {
    let layout = SampleLayout::new([Field::frame("image", PixelFormat::Bgra8, 720, 1280)?.with_pitch(5376)?])?;
    let pipeline =
        Pipeline::imagenet().with_resize(Resize::Letterbox { height: 224, width: 224, anchor: Anchor::Center });
    let options =
        |preprocess: Preprocess| FeederOptions { strategy: Some(strategy), preprocess, ..FeederOptions::default() };
    let mut feeders = [
        Feeder::new(backend, layout.clone(), options(pipeline.clone().into()))?,
        Feeder::new(backend, layout.clone(), options(Preprocess::Raw))?,
    ];
    let frames: Vec<Vec<u8>> = (0..4usize)
        .map(|number| (0..layout.byte_len()).map(|i| (i * 7 + i / 1021 + number * 31) as u8).collect())
        .collect();
    let mut times = [Vec::with_capacity(PUSHED), Vec::with_capacity(PUSHED)];
    for number in 0..WARM_UP + PUSHED {
        for (feeder, times) in feeders.iter_mut().zip(&mut times) {
            let frame = &frames[number % frames.len()];
            let mut complete = Instant::now();
            let batch = feeder.feed_with(1, |slot| {
                slot.write(frame).expect("it fits");
                complete = Instant::now();
                Ok::<_, Infallible>(())
            })?;
            batch.wait()?;
            if number >= WARM_UP {
                times.push(complete.elapsed());
            }
            if number + 1 == WARM_UP + PUSHED
                && let Some(geometry) = batch.geometry(0)
            {
                let worst = PipelineOracle::new(&pipeline, &layout)?.worst(&geometry, frame, &batch.read()?)?;
                assert!(worst <= 1.0, "{strategy}: {worst} times the bound");
            }
        }
    }
    Ok(times)
}

/// Epochs with random crops and with images that are normalised only, in turn.
fn load<B: Backend>(backend: &B, strategy: Strategy, ceiling: Option<f64>) -> Result<()> {
    let source: Arc<MemorySource> = Arc::new(random_images(SampleLayout::image(256, 256, 3)?, IMAGES, 1)?);
    let pipeline = Pipeline::imagenet_train(224);
    let options = |preprocess: Preprocess| LoaderOptions {
        batch_size: BATCH,
        strategy: Some(strategy),
        preprocess,
        outputs: 6,
        seed: Some(1),
        timing: true,
        ..LoaderOptions::default()
    };
    let mut loaders = [
        Loader::new(backend, source.clone(), options(pipeline.clone().into()))?,
        Loader::new(backend, source.clone(), options(Normalize::imagenet().into()))?,
    ];
    check(&mut loaders[0], &source, &pipeline)?;
    let mut rates = [Vec::new(), Vec::new()];
    for epoch in 0..ROUNDS as u64 + 1 {
        for (loader, rates) in loaders.iter_mut().zip(&mut rates) {
            let start = Instant::now();
            let mut last = None;
            for batch in loader.epoch(epoch) {
                last = Some(batch?);
            }
            last.map_or(Ok(()), |batch| batch.wait())?;
            if epoch > 0 {
                rates.push(IMAGES as f64 / start.elapsed().as_secs_f64());
            }
        }
    }
    let [crops, normalised] = rates.each_mut().map(|rates| {
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    let kernel = rate(&loaders[0], ceiling);
    println!("{strategy:24} {crops:>20.0} {normalised:>20.0} {:>8.3} {kernel:>24}", crops / normalised);
    Ok(())
}

/// What the kernel of a loader moved in a second, beside what one that only copies does.
fn rate<B: Backend>(loader: &Loader<B>, ceiling: Option<f64>) -> String {
    let bytes = (BATCH * (256 * 256 * 3 + 224 * 224 * 3 * 4)) as f64;
    let kernel = loader.stats().gpu.filter(|gpu| gpu.batches > 0).map(|gpu| bytes * gpu.batches as f64 / gpu.kernel_s);
    kernel.zip(ceiling).map_or("-".to_owned(), |(rate, ceiling)| {
        format!("{:.0} of {:.0} = {:.2}", rate / 1e9, ceiling / 1e9, rate / ceiling)
    })
}

/// Holds one batch against the oracle.
fn check<B: Backend>(loader: &mut Loader<B>, source: &MemorySource, pipeline: &Pipeline) -> Result<()> {
    let layout = SampleLayout::image(256, 256, 3)?;
    let oracle = PipelineOracle::new(pipeline, &layout)?;
    let batch = loader.epoch(0).next().ok_or("a batch")??;
    let bytes = batch.read()?;
    for (position, tensor) in bytes.chunks_exact(bytes.len() / batch.len()).enumerate().step_by(16) {
        let mut frame = vec![0; layout.byte_len()];
        let sample = SampleContext::of(batch.indices()[position]);
        source.read(&sample, &mut SampleWriter::over(&mut frame))?;
        let geometry = batch.geometry(position).ok_or("a geometry")?;
        let worst = oracle.worst(&geometry, &frame, tensor)?;
        assert!(worst <= 1.0, "sample {position}: {worst} times the bound");
    }
    Ok(())
}
