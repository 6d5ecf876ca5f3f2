//! A source of your own: anything that can write sample number `i`.
//!
//! ```sh
//! cargo run --release --example 02-custom-source
//! ```

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;
use std::sync::Arc;

use gpufeed::{Element, LoaderOptions, Normalize, SampleContext, SampleLayout, SampleWriter, Source, SourceError};

/// Drawn discs: sample `i` is a disc whose radius grows with `i`. Several workers draw at once, straight into staging memory.
struct Discs {
    layout: SampleLayout,
    side: u64,
}

impl Source for Discs {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        256
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = sample.index;
        if index == 200 {
            return Err("disc 200 is missing".into());
        }
        let mut row = vec![0u8; self.side as usize];
        for y in 0..self.side {
            for (x, pixel) in (0..).zip(row.iter_mut()) {
                let (dx, dy) = (2 * x as i64 - self.side as i64, 2 * y as i64 - self.side as i64);
                *pixel = if dx * dx + dy * dy < (index * index / 16) as i64 { 255 } else { 0 };
            }
            out.write(&row)?; // From front to back, and all of it: a short sample is an error.
        }
        out.label(i64::from(index >= 128))?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let side = 32;
    let discs =
        Arc::new(Discs { layout: SampleLayout::image(side, side, 1)?.with_label(Element::I64)?, side: side as u64 });
    let options = LoaderOptions { batch_size: 32, preprocess: Normalize::unit(1).into(), ..LoaderOptions::default() };
    let mut loader = gpufeed::open("auto", discs, options)?;
    for batch in loader.epoch(0) {
        match batch {
            Ok(batch) => {
                let covered = batch.read_f32()?.iter().sum::<f32>() / batch.desc().elements() as f32;
                let large = batch.labels().unwrap_or_default().iter().sum::<i64>();
                println!(
                    "batch {}: {:.0}% covered, {large} of {} are large",
                    batch.number(),
                    covered * 100.0,
                    batch.len()
                );
            }
            // An error names the sample, keeps its cause and takes the place of its batch; the next one follows.
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
