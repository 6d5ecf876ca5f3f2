//! What the kernels of `shaders/pipeline.cu` are given for a lane.

use super::driver::{PipelineLane, PipelineVariant};
use crate::backend::tiles::Tiles;
use crate::layout::{ChromaSiting, FrameLayout, PixelFormat};
use crate::preprocess::{Filter, PipelinePlan, TensorLayout, TensorType};

/// Rows of a tile that a block makes at once.
const LINES: u32 = 8;

/// Which kernel it is.
pub(super) fn variant(plan: &PipelinePlan) -> PipelineVariant {
    let format = match plan.frame.format() {
        PixelFormat::Gray8 => "one",
        PixelFormat::Rgb8 | PixelFormat::Bgr8 => "three",
        PixelFormat::Rgba8 | PixelFormat::Bgra8 => "four",
        PixelFormat::Nv12(_) => "nv12",
        PixelFormat::I420(_) => "i420",
    };
    let filter = match plan.pipeline.filter {
        Filter::Nearest => "nearest",
        Filter::Bilinear => "bilinear",
        Filter::Bicubic => "bicubic",
    };
    PipelineVariant { format, filter }
}

/// Its parameters for batches of so many samples, and the tiles of a sample beside and below each other.
pub(super) fn lane(plan: &PipelinePlan, batch: usize) -> (PipelineLane, (u32, u32)) {
    let tiles = Tiles::of(plan, batch, 1);
    let (pipeline, frame, affine) = (&plan.pipeline, &plan.frame, plan.affine());
    let [_, plane1, plane2] = frame.plane_offsets().map(count);
    let (height, width) = (count(plan.size.0), count(plan.size.1));
    let (least, most) = pipeline.dtype.range();
    let zero_point = pipeline.dtype.quantization().map_or(0, |quantization| quantization.zero_point);
    let lane = PipelineLane {
        sample_bytes: frame.byte_len() as u64,
        pitch: count(frame.pitch()),
        frame_width: count(frame.width()),
        frame_height: count(frame.height()),
        plane1,
        plane2,
        left_sited: frame.format().yuv().is_some_and(|yuv| yuv.siting == ChromaSiting::Left).into(),
        whole_words: has_whole_words(frame).into(),
        antialias: pipeline.antialias.into(),
        keeps_values: plan.is_mask.into(),
        width,
        height,
        channels: count(pipeline.channels.count()),
        planar: (pipeline.layout == TensorLayout::Nchw).into(),
        dtype: match pipeline.dtype {
            TensorType::F32 => 0,
            TensorType::F16 => 1,
            TensorType::Bf16 => 2,
            TensorType::U8(_) | TensorType::I8(_) => 3,
        },
        rows: count(tiles.rows),
        rows_each: if tiles.sharers > 1 { 0 } else { count(tiles.rows) / LINES },
        sharers: tiles.sharers.ilog2(),
        zero_point,
        least: (least - zero_point) as f32,
        most: (most - zero_point) as f32,
        scale: affine.map(|(scale, ..)| scale),
        bias: affine.map(|(_, bias, _)| bias),
        fill: affine.map(|(.., fill)| fill),
    };
    (lane, (count(tiles.across), count(tiles.down)))
}

/// Whether each pixel of four bytes is a word of its own.
fn has_whole_words(frame: &FrameLayout) -> bool {
    frame.format().pixel_bytes() == Some(4) && frame.pitch().is_multiple_of(4)
}

/// Sides and bytes of a frame are within 32 bits, as the backend has checked.
fn count(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{SampleLayout, Yuv};
    use crate::preprocess::Pipeline;

    #[test]
    fn every_kernel_that_can_be_asked_for_is_in_the_module() {
        let module = include_str!("../../../shaders/pipeline.ptx");
        let yuv = Yuv::BT709;
        for format in
            [PixelFormat::Gray8, PixelFormat::Bgr8, PixelFormat::Bgra8, PixelFormat::Nv12(yuv), PixelFormat::I420(yuv)]
        {
            let sample = SampleLayout::frame(format, 4, 6).expect("a frame");
            for filter in [Filter::Nearest, Filter::Bilinear, Filter::Bicubic] {
                let plan = PipelinePlan::new(&Pipeline::new().with_filter(filter, true), &sample).expect("it fits");
                let name = variant(&plan).name();
                assert!(module.contains(&format!(".entry {name}(")), "{name} is in no module");
            }
        }
    }
}
