//! The same in a small asynchronous server loop: requests arrive on a channel, and no thread ever blocks on the GPU.
//!
//! ```sh
//! cargo run --release --example 06-async-server
//! ```
//!
//! Any runtime will do; this one is `pollster`, and the "network" is another thread.

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;
use std::time::Instant;

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::{Feeder, FeederOptions, Normalize, OpenError, SampleLayout};

const SIDE: usize = 64;

/// A request: a frame, and where the answer goes.
struct Request {
    frame: Vec<u8>,
    answer: flume::Sender<f32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let backend = match WgpuBackend::open("auto") {
        Err(OpenError::NoDevice { .. }) => {
            println!("no GPU driver here");
            return Ok(());
        }
        opened => opened?,
    };
    let (requests, inbox) = flume::bounded(8);
    let client = std::thread::spawn(move || ask(&requests));
    pollster::block_on(serve(&backend, &inbox))?;
    client.join().map_err(|_| "the client panicked")?;
    Ok(())
}

/// Serves until every client is gone. Requests that are there together share a batch.
async fn serve(backend: &WgpuBackend, inbox: &flume::Receiver<Request>) -> Result<(), Box<dyn Error>> {
    let options = FeederOptions { batch_size: 4, preprocess: Normalize::unit(3).into(), ..FeederOptions::default() };
    let mut feeder = Feeder::new(backend, SampleLayout::image(SIDE, SIDE, 3)?, options)?;
    while let Ok(first) = inbox.recv_async().await {
        let mut together = vec![first];
        while together.len() < 4
            && let Ok(more) = inbox.try_recv()
        {
            together.push(more);
        }
        let frames: Vec<&[u8]> = together.iter().map(|request| request.frame.as_slice()).collect();
        let batch = feeder.feed_async(&frames).await?; // Waits for a slot, if need be, without a thread.
        batch.ready().await?; // Here a model over `batch.binding()` would be submitted, and its result awaited.
        let values = batch.read_f32()?;
        for (request, tensor) in together.iter().zip(values.chunks_exact(SIDE * SIDE * 3)) {
            let mean = tensor.iter().sum::<f32>() / tensor.len() as f32;
            // A client that has hung up wants no answer.
            let _ = request.answer.send(mean);
        }
    }
    Ok(())
}

/// A client with ten requests.
fn ask(requests: &flume::Sender<Request>) {
    for number in 0..10u8 {
        let (answer, reply) = flume::bounded(1);
        let start = Instant::now();
        let request = Request { frame: vec![number * 25; SIDE * SIDE * 3], answer };
        if requests.send(request).is_err() {
            return;
        }
        if let Ok(mean) = reply.recv() {
            println!("request {number}: mean {mean:.3} after {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
        }
    }
}
