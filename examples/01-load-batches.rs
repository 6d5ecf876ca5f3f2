//! Loads batches onto whatever device is there and looks at them.
//!
//! ```sh
//! cargo run --release --example 01-load-batches            # the best device
//! cargo run --release --example 01-load-batches -- host    # or one by name
//! ```

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;
use std::sync::Arc;

use gpufeed::{LoaderOptions, Normalize, SampleLayout, source::random_images};

fn main() -> Result<(), Box<dyn Error>> {
    let device = std::env::args().nth(1).unwrap_or_else(|| "auto".to_owned());

    // 512 RGB images of 64x64 in memory; folders, `.npy` files and sources of your own work the same way.
    let images = Arc::new(random_images(SampleLayout::image(64, 64, 3)?, 512, 1)?);
    let options = LoaderOptions {
        batch_size: 64,
        seed: Some(42),                           // shuffled; every epoch differently
        preprocess: Normalize::imagenet().into(), // u8 HWC to f32 NCHW, on the device
        ..LoaderOptions::default()
    };
    let mut loader = gpufeed::open(&device, images, options)?;
    println!("{} ({}), strategy {}", loader.info().name, loader.info().id, loader.strategy());

    for epoch in 0..2 {
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            if batch.number() == 0 {
                // Reading back is for looking; a program uses the tensor where it is.
                let values = batch.read_f32()?;
                let mean = values.iter().sum::<f32>() / values.len() as f32;
                println!(
                    "epoch {epoch}: {:?} {}, first indices {:?}, mean {mean:.3}",
                    batch.shape(),
                    batch.dtype(),
                    &batch.indices()[..4]
                );
            }
        } // Dropping a batch gives its tensor back to the loader.
    }
    let stats = loader.stats();
    println!("{} samples, waited {:.0} us a batch (median)", stats.samples, stats.wait.p50_us);
    Ok(())
}
