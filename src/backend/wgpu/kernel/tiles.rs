//! How the kernels of `shaders/pipeline.wgsl` divide a tensor among workgroups and threads. Pure arithmetic.

use super::program::{GROUP, Grid};
use crate::preprocess::PipelinePlan;

/// Columns of a tile, and the most rows, as the shader has it.
const COLUMNS: usize = 32;
/// Workgroups that give every processor of a large device several.
const MANY: usize = 1024;

/// How a tensor is divided among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A tile of a sample a workgroup.
    Tiles(Tiles),
    /// A word each: elements of a sample, and of a word.
    Words(usize, usize),
}

/// How a sample's tensor is divided among workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    /// Of a sample.
    count: usize,
    rows: usize,
    /// Threads of a pixel.
    threads: usize,
}

impl Tiles {
    /// Those of batches of so many samples: the largest of which there are many, so that what a tile is computed with is computed once for
    /// most pixels. Pixels that are made of many are shared by threads where they are few.
    fn of(plan: &PipelinePlan, batch: usize) -> Self {
        let ((height, width), each) = (plan.size, 4 / plan.pipeline.dtype.element().size());
        let of = |rows: usize, threads: usize| {
            let count = width.div_ceil(COLUMNS) * height.div_ceil(rows);
            Self { count, rows, threads }
        };
        // Rows that are made at once, of words of `each` pixels.
        let at_once = GROUP / (COLUMNS / each);
        let shrinks = plan.pipeline.antialias && plan.frame.width() * plan.frame.height() >= 4 * width * height;
        let fewest = if shrinks { of(at_once / 4, 4) } else { of(at_once, 1) };
        let many = |tiles: &Self| batch.saturating_mul(tiles.count) >= MANY;
        [of(COLUMNS, 1), of(at_once, 1)].into_iter().find(many).unwrap_or(fewest)
    }
}

impl Work {
    pub fn of(plan: &PipelinePlan, batch: usize, most_groups: u32) -> Self {
        let each = 4 / plan.pipeline.dtype.element().size();
        let ((height, width), channels) = (plan.size, plan.pipeline.channels.count());
        match Tiles::of(plan, batch) {
            // A sample's workgroups are counted in one dimension.
            tiles if width.is_multiple_of(each) && tiles.count <= most_groups as usize => Self::Tiles(tiles),
            _ => Self::Words(height * width * channels, each),
        }
    }

    /// Its entry point in the shader.
    pub fn entry(self) -> &'static str {
        match self {
            Self::Tiles(_) => "pipeline",
            Self::Words(..) => "pipeline_any",
        }
    }

    /// What its entry point is made for.
    pub fn constants(self) -> [(&'static str, f64); 2] {
        let (rows, threads) = match self {
            Self::Tiles(tiles) => (tiles.rows, tiles.threads),
            Self::Words(..) => (1, 1),
        };
        [("tile_rows", rows as f64), ("threads", threads as f64)]
    }

    pub fn grid(self, samples: usize, most_groups: u32) -> Grid {
        match self {
            Self::Tiles(tiles) => Grid::per_sample(tiles.count, samples, most_groups),
            Self::Words(elements, each) => Grid::linear((samples * elements).div_ceil(each), most_groups),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SampleLayout;
    use crate::preprocess::{Pipeline, Resize, TensorType};

    fn plan(height: usize, width: usize, dtype: TensorType) -> PipelinePlan {
        let sample = SampleLayout::image(8, 8, 3).expect("an image");
        let pipeline = Pipeline::new().with_resize(Resize::Exact { height, width }).with_dtype(dtype);
        PipelinePlan::new(&pipeline, &sample).expect("it fits")
    }

    #[test]
    fn a_tensor_of_more_workgroups_than_a_dimension_has_or_rows_of_no_whole_words_is_divided_by_words() {
        let work = |height, width, dtype, most| Work::of(&plan(height, width, dtype), 64, most);
        let tiles = |count, rows| Work::Tiles(Tiles { count, rows, threads: 1 });
        assert_eq!(work(224, 224, TensorType::F32, 65_535), tiles(7 * 7, 32));
        assert_eq!(work(224, 224, TensorType::F16, 65_535), tiles(7 * 7, 32));
        assert_eq!(work(6, 5, TensorType::F16, 65_535), Work::Words(90, 2));
        assert_eq!(work(224, 224, TensorType::F32, 48), Work::Words(3 * 224 * 224, 1));
    }

    #[test]
    fn few_pixels_are_cut_into_smaller_tiles_and_shared_by_threads_where_each_is_made_of_many() {
        let tiles = |side, dtype, batch| {
            let Tiles { rows, threads, .. } = Tiles::of(&plan(side, side, dtype), batch);
            (rows, threads)
        };
        assert_eq!(tiles(224, TensorType::F32, 64), (32, 1));
        assert_eq!(tiles(224, TensorType::F32, 8), (8, 1));
        assert_eq!(tiles(224, TensorType::F32, 1), (8, 1));
        assert_eq!(tiles(4, TensorType::F32, 1), (2, 4));
        assert_eq!(tiles(4, TensorType::F16, 1), (4, 4));
    }
}
