//! Samples with several fields: an image and its mask on the device, boxes and a label on the host.
//!
//! ```sh
//! cargo run --release --example 09-several-fields
//! ```

#![allow(clippy::print_stdout)] // An example speaks.

use std::error::Error;
use std::sync::Arc;

use gpufeed::{
    Element, Field, LayoutError, LoaderOptions, Normalize, SampleContext, SampleLayout, SampleWriter, Source,
    SourceError,
};

const SIDE: usize = 64;

/// Squares somewhere in an image, with what a detector and a segmenter learn from.
struct Squares(SampleLayout);

impl Squares {
    fn new() -> Result<Self, LayoutError> {
        Ok(Self(SampleLayout::new([
            Field::image("image", SIDE, SIDE, 3)?, // the first field is what preprocessing is for
            Field::array("mask", Element::Bool, &[SIDE, SIDE])?, // others arrive on the device as they are written
            Field::array("box", Element::F32, &[4])?.on_host(), // or stay on the host
            Field::array("label", Element::I64, &[])?.on_host(),
        ])?))
    }
}

impl Source for Squares {
    fn layout(&self) -> SampleLayout {
        self.0.clone()
    }

    fn len(&self) -> u64 {
        256
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        // What is random follows from seed, epoch and index alone: it is the same on any device, and after resuming.
        let draw = sample.index.wrapping_mul(0x9E37_79B9).wrapping_add(sample.epoch ^ sample.seed);
        let (side, x, y) = (8 + draw as usize % 16, draw as usize / 16 % 40, draw as usize / 640 % 40);
        for row in 0..SIDE {
            let mask: Vec<u8> =
                (0..SIDE).map(|at| u8::from((y..y + side).contains(&row) && (x..x + side).contains(&at))).collect();
            let pixels: Vec<u8> = mask.iter().flat_map(|&inside| [inside * 200, 40, 90]).collect();
            out.field("mask")?.write(&mask)?;
            out.field("image")?.write(&pixels)?;
        }
        out.field("box")?.values(&[x, y, x + side, y + side].map(|edge| edge as f32))?;
        out.label(i64::from(side >= 16))?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = LoaderOptions { preprocess: Normalize::imagenet().into(), seed: Some(1), ..LoaderOptions::default() };
    let mut loader = gpufeed::open("auto", Arc::new(Squares::new()?), options)?;
    for batch in loader.epoch(0) {
        let batch = batch?;
        // On a device, `Batch::field_binding` binds a field's tensor; here it is read back.
        let mask = batch.field("mask").ok_or("the mask is on the device")?;
        let inside = batch.read_field("mask")?.unwrap_or_default().iter().filter(|&&inside| inside == 1).count();
        let boxes: &[f32] = batch.host_field("box").ok_or("the boxes are on the host")?;
        println!(
            "batch {}: images {:?}, masks {:?} of {} with {inside} pixels inside, first box {:?}, labels {:?} ..",
            batch.number(),
            batch.shape(),
            mask.shape,
            mask.dtype,
            &boxes[..4],
            &batch.labels().unwrap_or_default()[..3],
        );
    }
    Ok(())
}
