//! Pipelines on the CPU, in f32: the lines that a tensor needs are resampled along one axis, and then along the other.

mod pixels;
mod windows;

use std::sync::{Mutex, MutexGuard};

use half::{bf16, f16};

use crate::preprocess::{Geometry, PipelinePlan, TensorLayout, TensorType};
use pixels::Pixels;
use windows::{Record, Windows};

/// What turns frames and their records into a tensor's bytes.
pub(super) struct PipelineKernel {
    plan: PipelinePlan,
    /// Scale, sum, and what is around the image, by channel.
    affine: [(f32, f32, f32); 3],
    /// Used again for every sample.
    scratch: Mutex<Scratch>,
}

#[derive(Default)]
struct Scratch {
    columns: Windows,
    rows: Windows,
    /// By line of the frame's axis that the tensor's y lies on: the tensor's pixels of that line.
    lines: Vec<[f32; 3]>,
}

impl PipelineKernel {
    pub(super) fn new(plan: PipelinePlan) -> Self {
        Self { affine: plan.affine(), plan, scratch: Mutex::default() }
    }

    /// Computes the tensors of whole frames. `records` holds the words of as many samples or more, `out` is at least as long as the tensor.
    pub(super) fn run(&self, frames: &[u8], records: &[f32], out: &mut [u8]) {
        let elements: usize = self.plan.dims().iter().product();
        let bytes = elements * self.plan.pipeline.dtype.element().size();
        let samples = frames.chunks_exact(self.plan.frame.byte_len()).zip(records.as_chunks().0);
        let mut scratch = self.scratch();
        for ((frame, words), tensor) in samples.zip(out.chunks_exact_mut(bytes)) {
            self.sample(frame, words, tensor, &mut scratch);
        }
    }

    fn scratch(&self) -> MutexGuard<'_, Scratch> {
        self.scratch.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn sample(&self, frame: &[u8], words: &[f32; Geometry::WORDS], tensor: &mut [u8], scratch: &mut Scratch) {
        let record = Record::new(words, &self.plan.frame, self.plan.is_mask);
        let (height, width) = self.plan.size;
        let Scratch { columns, rows, lines } = scratch;
        let pipeline = &self.plan.pipeline;
        columns.set(width, &record.axes[0], pipeline.filter, pipeline.antialias);
        rows.set(height, &record.axes[1], pipeline.filter, pipeline.antialias);
        let pixels = Pixels::new(&self.plan.frame, frame);
        lines.clear();
        for line in rows.reach() {
            let pixel = |column| match record.transposed {
                true => pixels.components(line, column),
                false => pixels.components(column, line),
            };
            lines.extend((0..width).map(|x| columns.mean(x, pixel).unwrap_or_default()));
        }
        let first = rows.reach().start;
        for y in 0..height {
            for x in 0..width {
                let mean = rows.mean(y, |line| lines[(line - first) * width + x]);
                let pixel = mean.filter(|_| columns.covers(x)).map(|mean| record.mix(mean));
                self.store(tensor, (x, y), pixel);
            }
        }
    }

    /// Writes a pixel's channels; `None` for one around the image.
    fn store(&self, tensor: &mut [u8], (x, y): (usize, usize), pixel: Option<[f32; 3]>) {
        let (pipeline, (height, width)) = (&self.plan.pipeline, self.plan.size);
        let (channels, at) = (pipeline.channels.count(), y * width + x);
        for channel in 0..channels {
            let (scale, bias, fill) = self.affine[channel];
            let value = pixel.map_or(fill, |pixel| pixel[channel] * scale + bias);
            let element = match pipeline.layout {
                TensorLayout::Nchw => channel * height * width + at,
                TensorLayout::Nhwc => at * channels + channel,
            };
            write(tensor, element, value, pipeline.dtype);
        }
    }
}

fn write(tensor: &mut [u8], element: usize, value: f32, dtype: TensorType) {
    match dtype {
        TensorType::F16 => tensor[2 * element..][..2].copy_from_slice(&f16::from_f32(value).to_ne_bytes()),
        TensorType::Bf16 => tensor[2 * element..][..2].copy_from_slice(&bf16::from_f32(value).to_ne_bytes()),
        TensorType::U8(quantization) | TensorType::I8(quantization) => {
            let (least, most) = dtype.range();
            // Cut before it is made an integer, which it may be too large for.
            let (least, most) = (least - quantization.zero_point, most - quantization.zero_point);
            let whole = value.clamp(least as f32, most as f32).round_ties_even() as i32 + quantization.zero_point;
            tensor[element] = whole.to_le_bytes()[0];
        }
        _ => tensor[4 * element..][..4].copy_from_slice(&value.to_ne_bytes()),
    }
}
