//! Half an epoch here, the other half elsewhere: a token of a few hundred bytes carries the place.
//!
//! ```sh
//! cargo run --release --example 08-resume
//! ```

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;
use std::sync::Arc;

use gpufeed::source::random_images;
use gpufeed::{BadSamples, LoaderOptions, Normalize, ResumeToken, SampleLayout, Tolerance};

fn main() -> Result<(), Box<dyn Error>> {
    let images = Arc::new(random_images(SampleLayout::image(64, 64, 3)?, 1000, 1)?);
    let options = LoaderOptions {
        batch_size: 32,
        seed: Some(42),
        // At most one image in a hundred may be unreadable; its batch is shorter then.
        bad_samples: BadSamples::Skip(Tolerance::Rate(0.01)),
        preprocess: Normalize::imagenet().into(),
        ..LoaderOptions::default()
    };

    let mut seen = Vec::new();
    let mut loader = gpufeed::open("auto", images.clone(), options.clone())?;
    let mut epoch = loader.epoch(3);
    while epoch.remaining() > 16 {
        let Some(batch) = epoch.next() else { break };
        seen.extend_from_slice(batch?.indices());
    }
    let token = serde_json::to_string(&epoch.resume_token()?)?;
    drop(epoch);
    println!("{} images on {}; then {token}", seen.len(), loader.info().name);
    drop(loader);

    // Another device and another number of workers; what fixes the batches must be the same, or the error names what is not.
    let token: ResumeToken = serde_json::from_str(&token)?;
    let mut loader = gpufeed::open("host", images, LoaderOptions { workers: 1, ..options })?;
    for batch in loader.resume(&token)? {
        seen.extend_from_slice(batch?.indices());
    }
    println!("{} images in all, {:?} unreadable", seen.len(), loader.bad_samples().skipped);

    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..1000), "nothing is lost, and nothing comes twice");
    Ok(())
}
