//! Samples with several fields: an image and its mask on the device, and on the host as many boxes and labels as there are squares.
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
const MOST: usize = 4;

/// Up to four squares somewhere in an image, with what a detector and a segmenter learn from.
struct Squares(SampleLayout);

impl Squares {
    fn new() -> Result<Self, LayoutError> {
        Ok(Self(SampleLayout::new([
            Field::image("image", SIDE, SIDE, 3)?, // the first field is what preprocessing is for
            Field::array("mask", Element::Bool, &[SIDE, SIDE])?, // others arrive on the device as they are written
            // Others stay on the host. Of a ragged field each sample has its own number of rows.
            Field::ragged("boxes", Element::F32, MOST, &[4])?.on_host(),
            Field::ragged("classes", Element::I64, MOST, &[])?.on_host(),
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
        let draw = sample.random_seed() as usize;
        let squares: Vec<_> = (0..draw % (MOST + 1)).map(|number| square(draw >> (8 * number))).collect();
        for row in 0..SIDE {
            let inside =
                |at| squares.iter().any(|&(side, x, y)| (y..y + side).contains(&row) && (x..x + side).contains(&at));
            let mask: Vec<u8> = (0..SIDE).map(|at| u8::from(inside(at))).collect();
            let pixels: Vec<u8> = mask.iter().flat_map(|&inside| [inside * 200, 40, 90]).collect();
            out.field("mask")?.write(&mask)?;
            out.field("image")?.write(&pixels)?;
        }
        for (side, x, y) in squares {
            out.field("boxes")?.values(&[x, y, x + side, y + side].map(|edge| edge as f32))?;
            out.field("classes")?.value(i64::from(side >= 16))?;
        }
        Ok(())
    }
}

/// Side, left and top.
fn square(draw: usize) -> (usize, usize, usize) {
    (8 + draw % 16, draw / 16 % 40, draw / 640 % 40)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = LoaderOptions { preprocess: Normalize::imagenet().into(), seed: Some(1), ..LoaderOptions::default() };
    let mut loader = gpufeed::open("auto", Arc::new(Squares::new()?), options)?;
    for batch in loader.epoch(0) {
        let batch = batch?;
        // On a device, `Batch::field_binding` binds a field's tensor; here it is read back.
        let mask = batch.field("mask").ok_or("the mask is on the device")?;
        let inside = batch.read_field("mask")?.unwrap_or_default().iter().filter(|&&inside| inside == 1).count();
        // The rows of all samples follow each other; the offsets say where those of each begin.
        let offsets = batch.offsets("boxes").ok_or("they are ragged")?;
        let boxes: &[f32] = batch.ragged("boxes", 0).ok_or("the boxes are on the host")?;
        let classes: &[i64] = batch.ragged("classes", 0).ok_or("so are their classes")?;
        println!(
            "batch {}: images {:?}, masks {:?} of {} with {inside} pixels inside, {} boxes, of the first image {:?} of classes {classes:?}",
            batch.number(),
            batch.shape(),
            mask.shape,
            mask.dtype,
            offsets[batch.len()],
            boxes.chunks(4).collect::<Vec<_>>(),
        );
    }
    Ok(())
}
