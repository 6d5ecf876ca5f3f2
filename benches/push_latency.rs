//! How long a pushed frame takes to a normalised tensor on the device, waited for: from host memory (`copied`), and from the moment at
//! which it is complete in its slot, where the application writes it there itself (`in place`).
//!
//! ```sh
//! cargo bench --bench push_latency -- vulkan
//! ```
//!
//! Every tensor of a run's last frame is checked against the formula before its figures are printed.

#![allow(clippy::print_stdout)] // It is a report.

use std::error::Error;
use std::time::{Duration, Instant};

use gpufeed::backend::host::HostBackend;
#[cfg(feature = "wgpu")]
use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::preprocess::{error_bound, expected};
use gpufeed::{Backend, Feeder, FeederOptions, Normalize, SampleLayout, Strategy};

const FRAMES: usize = 3000;
const WARM_UP: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_else(|| "host".to_owned());
    match wanted.as_str() {
        "host" => report(&HostBackend::new()),
        #[cfg(feature = "wgpu")]
        other => report(&WgpuBackend::open(other)?),
        #[cfg(not(feature = "wgpu"))]
        other => Err(format!("{other} needs the feature wgpu").into()),
    }
}

fn report<B: Backend>(backend: &B) -> Result<(), Box<dyn Error>> {
    let info = backend.info();
    println!("{} ({}), {} {}: microseconds a frame", info.name, info.id, info.driver, info.driver_info);
    println!("{:24} {:>8} {:>6} {:>8} {:>8} {:>8} {:>8}", "strategy", "frames", "batch", "p50", "p95", "p99", "max");
    for &strategy in
        Strategy::ALL.iter().filter(|&&strategy| backend.supports(strategy).is_ok() && !strategy.is_direct())
    {
        for (batch, way) in [(1, Way::Copied), (1, Way::InPlace), (8, Way::Copied), (8, Way::InPlace)] {
            let mut times = push(backend, strategy, batch, way)?;
            times.sort_unstable();
            let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize].as_nanos() as f64 / 1e3;
            let (p50, p95, p99, max) = (at(0.5), at(0.95), at(0.99), at(1.0));
            let way = if way == Way::Copied { "copied" } else { "in place" };
            println!("{strategy:24} {way:>8} {batch:>6} {p50:>8.1} {p95:>8.1} {p99:>8.1} {max:>8.1}");
        }
    }
    Ok(())
}

/// Where the time of a frame begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In host memory.
    Copied,
    /// In the slot, written by the application.
    InPlace,
}

fn push<B: Backend>(backend: &B, strategy: Strategy, batch: usize, way: Way) -> Result<Vec<Duration>, Box<dyn Error>> {
    let layout = SampleLayout::image(224, 224, 3)?;
    let normalize = Normalize::imagenet();
    let options = FeederOptions {
        batch_size: batch,
        strategy: Some(strategy),
        preprocess: normalize.clone().into(),
        ..FeederOptions::default()
    };
    let mut feeder = Feeder::new(backend, layout.clone(), options)?;
    let bytes = layout.byte_len();
    let memory: Vec<u8> = (0..bytes * 64).map(|i| (i * 7 + i / 1021) as u8).collect();
    let frames: Vec<&[u8]> = memory.chunks_exact(bytes).collect();
    let mut times = Vec::with_capacity(FRAMES);
    for number in 0..WARM_UP + FRAMES {
        let pushed = &frames[number * 5 % (64 - batch)..][..batch];
        let mut start = Instant::now();
        let tensor = match way {
            Way::Copied => feeder.feed(pushed)?,
            Way::InPlace => feeder.feed_with(batch, |frame| {
                let written = frame.write(pushed[frame.position()]);
                start = Instant::now();
                written
            })?,
        };
        tensor.wait()?;
        if number >= WARM_UP {
            times.push(start.elapsed());
        }
        if number + 1 == WARM_UP + FRAMES {
            check(&normalize, &layout, &pushed.concat(), &tensor.read_f32()?)?;
        }
    }
    Ok(times)
}

fn check(normalize: &Normalize, layout: &SampleLayout, bytes: &[u8], tensor: &[f32]) -> Result<(), Box<dyn Error>> {
    let image = layout.as_image().ok_or("images are pushed")?;
    let bound = (0..3).map(|channel| error_bound(normalize, channel, 255)).fold(0.0, f64::max);
    let right = expected(normalize, image, bytes)?;
    match right.iter().zip(tensor).find(|(right, got)| (f64::from(**got) - **right).abs() > bound) {
        Some((right, got)) => Err(format!("{got} was delivered instead of {right}").into()),
        None => Ok(()),
    }
}
