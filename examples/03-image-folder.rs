//! A folder of images, one sub-folder a class: decoded and resized on the workers, normalised on the device.
//!
//! ```sh
//! cargo run --release --example 03-image-folder -- path/to/folder
//! ```
//!
//! Without a folder it draws a small one.

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpufeed::source::{Fit, FolderSource, ImageOptions};
use gpufeed::{LoaderOptions, Normalize};

fn main() -> Result<(), Box<dyn Error>> {
    let drawn = tempfile::tempdir()?;
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => draw(drawn.path())?,
    };
    let size = ImageOptions { height: 96, width: 96, fit: Fit::Crop, ..ImageOptions::default() };
    let images = Arc::new(FolderSource::open(folder, size.into())?);
    for (label, class) in images.classes().iter().enumerate() {
        println!("class {label}: {}, {} images", class.name, class.samples);
    }

    let options = LoaderOptions {
        batch_size: 8,
        seed: Some(1),
        preprocess: Normalize::imagenet().into(),
        ..LoaderOptions::default()
    };
    let mut loader = gpufeed::open("auto", images.clone(), options)?;
    for batch in loader.epoch(0) {
        let batch = batch?;
        let first = batch.indices().first().and_then(|&index| images.path(index)).unwrap_or_default();
        println!(
            "{:?} {} labels {:?}, the first is {}",
            batch.shape(),
            batch.dtype(),
            batch.labels().unwrap_or_default(),
            first.display()
        );
    }
    Ok(())
}

/// Two classes of ten images each.
fn draw(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    for (class, tint) in [("dark", 40u8), ("light", 200)] {
        std::fs::create_dir(folder.join(class))?;
        for number in 0..10u8 {
            let image = image::RgbImage::from_fn(120, 100, |x, y| {
                image::Rgb([tint, tint.wrapping_add((x / 3) as u8), tint.wrapping_add((y / 3) as u8 + number)])
            });
            image.save(folder.join(class).join(format!("{number:02}.png")))?;
        }
    }
    Ok(folder.to_owned())
}
