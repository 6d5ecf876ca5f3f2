//! How the kernels of `shaders/pipeline.wgsl` divide a tensor among threads. Pure arithmetic.

use super::program::Grid;
use crate::backend::tiles::Tiles;
use crate::preprocess::PipelinePlan;

/// How a tensor is divided among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A tile of a sample a workgroup.
    Tiles(Tiles),
    /// A word each: elements of a sample, and of a word.
    Words(usize, usize),
}

impl Work {
    pub fn of(plan: &PipelinePlan, batch: usize, most_groups: u32) -> Self {
        let each = 4 / plan.pipeline.dtype.element().size();
        let ((height, width), channels) = (plan.size, plan.pipeline.channels.count());
        match Tiles::of(plan, batch, each) {
            // A sample's workgroups are counted in one dimension.
            tiles if width.is_multiple_of(each) && tiles.count() <= most_groups as usize => Self::Tiles(tiles),
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
            Self::Tiles(tiles) => (tiles.rows, tiles.sharers),
            Self::Words(..) => (1, 1),
        };
        [("tile_rows", rows as f64), ("threads", threads as f64)]
    }

    pub fn grid(self, samples: usize, most_groups: u32) -> Grid {
        match self {
            Self::Tiles(tiles) => Grid::per_sample(tiles.count(), samples, most_groups),
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
        let tiles = |rows| Work::Tiles(Tiles { across: 7, down: 4, rows, sharers: 1 });
        assert_eq!(work(224, 224, TensorType::F32, 65_535), tiles(56));
        assert_eq!(work(224, 224, TensorType::F16, 65_535), tiles(64));
        assert_eq!(work(6, 5, TensorType::F16, 65_535), Work::Words(90, 2));
        assert_eq!(work(224, 224, TensorType::F32, 27), Work::Words(3 * 224 * 224, 1));
    }
}
