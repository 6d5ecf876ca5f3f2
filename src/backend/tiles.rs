//! How the kernels of pipelines divide a tensor among groups of threads, in WGSL and CUDA alike. Pure arithmetic.

use crate::preprocess::PipelinePlan;

/// Threads of a group, columns of a tile and the most rows, and the words of a frame that a tile has room for, as the shaders have them.
const GROUP: usize = 256;
const COLUMNS: usize = 32;
const MOST_ROWS: usize = 64;
const ROOM: f64 = 3072.0;
/// Groups that give every processor of a large device several.
const MANY: usize = 1024;
/// Threads that share each pixel, where they do.
const SHARERS: usize = 4;

/// The tiles of one sample's tensor, one for each group of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiles {
    /// Beside each other, and below each other.
    pub across: usize,
    pub down: usize,
    /// Rows of one.
    pub rows: usize,
    /// Threads that share each pixel. Where they are several, all of a tile's rows are made at once.
    pub sharers: usize,
}

impl Tiles {
    /// Those of batches of so many samples, a thread of which makes `each` neighbours at once: the largest of which there are many, so that
    /// what a tile is computed with is computed once for most pixels. Pixels that are made of many are shared by threads where they are few.
    pub fn of(plan: &PipelinePlan, batch: usize, each: usize) -> Self {
        let (height, width) = plan.size;
        let at_once = GROUP / (COLUMNS / each);
        let of = |rows: usize, sharers: usize| {
            let (across, down) = (width.div_ceil(COLUMNS), height.div_ceil(rows));
            Self { across, down, rows, sharers }
        };
        let shrinks = plan.pipeline.antialias && plan.frame.width() * plan.frame.height() >= 4 * width * height;
        let fewest = if shrinks { of(at_once / SHARERS, SHARERS) } else { of(at_once, 1) };
        // As even as they can be.
        let tall = height.div_ceil(height.div_ceil(MOST_ROWS)).next_multiple_of(at_once).min(MOST_ROWS);
        let tall = if has_room(plan, tall) || !has_room(plan, COLUMNS) { tall } else { COLUMNS };
        let are_many = |tiles: &Self| batch.saturating_mul(tiles.count()) >= MANY;
        [of(tall, 1), of(COLUMNS, 1), of(at_once, 1)].into_iter().find(are_many).unwrap_or(fewest)
    }

    /// Of a sample.
    pub fn count(&self) -> usize {
        self.across * self.down
    }
}

/// Whether a tile of so many rows has room for what it is made of where the whole frame is shrunk to the tensor. Crops are shrunk less.
#[allow(clippy::cast_precision_loss)] // Sides are far below 2^52.
fn has_room(plan: &PipelinePlan, rows: usize) -> bool {
    let ((height, width), frame) = (plan.size, &plan.frame);
    // What its windows reach beyond it on both sides.
    let of = |pixels: usize, from: usize, to: usize| pixels as f64 * (from as f64 / to as f64).max(1.0) + 4.0;
    let (lines, columns) = (of(rows, frame.height(), height), of(COLUMNS, frame.width(), width));
    let bytes = frame.format().pixel_bytes().unwrap_or(1) as f64;
    lines * (columns * bytes / 4.0 + 2.0) <= ROOM
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SampleLayout;
    use crate::preprocess::{Pipeline, Resize};

    fn tiles(frame: usize, side: usize, batch: usize, each: usize) -> (usize, usize) {
        let sample = SampleLayout::image(frame, frame, 3).expect("an image");
        let pipeline = Pipeline::new().with_resize(Resize::Exact { height: side, width: side });
        let tiles = Tiles::of(&PipelinePlan::new(&pipeline, &sample).expect("it fits"), batch, each);
        assert_eq!((tiles.across, tiles.down), (side.div_ceil(32), side.div_ceil(tiles.rows)));
        (tiles.rows, tiles.sharers)
    }

    #[test]
    fn many_pixels_are_cut_into_even_tiles_that_are_large() {
        assert_eq!(
            [tiles(256, 224, 64, 1), tiles(256, 224, 64, 2), tiles(256, 224, 64, 4)],
            [(56, 1), (64, 1), (64, 1)]
        );
        assert_eq!([tiles(64, 64, 1024, 1), tiles(64, 65, 1024, 1)], [(64, 1), (40, 1)]);
    }

    #[test]
    fn what_a_large_tile_has_no_room_for_is_cut_into_smaller_ones() {
        assert_eq!([tiles(336, 224, 64, 1), tiles(450, 224, 64, 1)], [(32, 1), (56, 1)]);
    }

    #[test]
    fn few_pixels_are_cut_into_smaller_tiles_and_shared_by_threads_where_each_is_made_of_many() {
        assert_eq!([tiles(448, 225, 8, 1), tiles(448, 225, 1, 1)], [(8, 1), (8, 1)]);
        assert_eq!([tiles(448, 224, 8, 1), tiles(448, 224, 1, 1), tiles(448, 224, 1, 2)], [(8, 1), (2, 4), (4, 4)]);
    }
}
