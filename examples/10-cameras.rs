//! Several cameras, one device: their frames share batches, and what the app shows is frames a second, latency, and what holds it back.
//!
//! ```sh
//! cargo run --release --example 10-cameras -- 4 60
//! ```
//!
//! The arguments are the number of cameras and the frames a second of each. A camera here is a thread that makes pictures; a frame that
//! comes while two of its camera are waiting drives the older out, since the newest is what matters.

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::loader::BatcherStats;
use gpufeed::{
    BatcherOptions, Feeder, FeederOptions, FrameBatcher, FrameStream, Normalize, OpenError, Overflow, SampleLayout,
};

const SIDE: usize = 224;
const FRAME: usize = SIDE * SIDE * 3;
const RUN: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let (cameras, rate) = (arguments.next().unwrap_or(Ok(3))?, arguments.next().unwrap_or(Ok(30))?.max(1));
    let backend = match WgpuBackend::open("auto") {
        Err(OpenError::NoDevice { .. }) => {
            println!("no GPU driver here");
            return Ok(());
        }
        opened => opened?,
    };
    let options = FeederOptions { batch_size: 8, preprocess: Normalize::imagenet().into(), ..FeederOptions::default() };
    let feeder = Feeder::new(&backend, SampleLayout::image(SIDE, SIDE, 3)?, options)?;
    let options = BatcherOptions { max_wait: Duration::from_millis(5), queue: 2, overflow: Overflow::DropOldest };
    let mut batcher = FrameBatcher::new(feeder, options)?;
    let threads: Vec<_> = (0..cameras).map(|_| film(batcher.stream(), rate)).collect();

    let (start, mut latencies, mut computing) = (Instant::now(), Vec::new(), Duration::ZERO);
    for batch in batcher.by_ref() {
        let (batch, queued) = (batch?, Instant::now());
        batch.wait()?; // Here a model over `batch.binding()` would be submitted, and its result awaited.
        computing += queued.elapsed();
        latencies.extend(batch.origins().iter().map(|origin| origin.arrived.elapsed()));
    }
    let took = start.elapsed();
    for thread in threads {
        thread.join().map_err(|_| "a camera panicked")?;
    }
    println!("{}: {cameras} cameras of {rate} frames a second", backend.info().name);
    report(&batcher.stats(), latencies, computing, took);
    Ok(())
}

/// Frames a second, latency, and whatever takes the most of the loop's time.
fn report(stats: &BatcherStats, mut latencies: Vec<Duration>, computing: Duration, took: Duration) {
    latencies.sort_unstable();
    if let Some(last) = latencies.len().checked_sub(1) {
        let milliseconds = |quantile: f64| latencies[(last as f64 * quantile) as usize].as_secs_f64() * 1e3;
        let (frames, batches) = (latencies.len() as f64, stats.batches as f64);
        println!("{:.0} frames/s in batches of {:.1}", frames / took.as_secs_f64(), frames / batches);
        let (p50, p99) = (milliseconds(0.5), milliseconds(0.99));
        println!("latency p50 {p50:.2} ms, p99 {p99:.2} ms; {} dropped", stats.dropped());
    }
    let shares = [("the cameras", stats.idle), ("filling slots", stats.feeding), ("the device", computing)];
    if let Some((what, time)) = shares.into_iter().max_by_key(|(_, time)| *time) {
        println!("held back by {what}: {:.0}% of the time", 100.0 * time.as_secs_f64() / took.as_secs_f64());
    }
}

/// A camera: a picture now and then, until the run is over.
fn film(mut stream: FrameStream<Vec<u8>>, rate: u32) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let (start, mut spare) = (Instant::now(), None);
        for number in 0.. {
            std::thread::sleep(
                (start + Duration::from_secs(1) * number / rate).saturating_duration_since(Instant::now()),
            );
            if start.elapsed() >= RUN {
                return;
            }
            // What was driven out is used again.
            let mut picture: Vec<u8> = spare.take().unwrap_or_else(|| vec![0; FRAME]);
            picture.fill(number as u8);
            match stream.push(picture, number.into()) {
                Ok(dropped) => spare = dropped.map(|dropped| dropped.frame),
                Err(_) => return, // The app has ended.
            }
        }
    })
}
