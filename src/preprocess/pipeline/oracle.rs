//! What a pipeline's tensor must hold, in f64, pixel by pixel and as directly as it can be said; and how far a kernel may be from it.

use half::{bf16, f16};

use super::{Filter, Geometry, Pipeline, PipelinePlan, TensorType};
use crate::error::LayoutError;
use crate::layout::{ChromaSiting, Element, FrameLayout, PixelFormat, SampleLayout};
use crate::preprocess::TensorLayout;

/// The exact values of a pipeline for frames of one layout.
#[derive(Clone, Debug)]
pub struct PipelineOracle {
    plan: PipelinePlan,
}

/// What one element of the tensor should be before it is rounded to the element type, zero point included, and how far from that a kernel
/// may be, its own rounding included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PipelineValue {
    /// The exact value; integers are cut to their type's range.
    pub value: f64,
    /// The largest error.
    pub bound: f64,
}

/// What a mask's channel is made of.
const ITSELF: [f64; 4] = [1.0, 0.0, 0.0, 0.0];

/// A weighted stored pixel.
type Tap = (usize, f64);

impl PipelineOracle {
    /// For samples of this layout.
    ///
    /// # Errors
    /// As [`Pipeline::validate`].
    pub fn new(pipeline: &Pipeline, sample: &SampleLayout) -> Result<Self, LayoutError> {
        PipelinePlan::new(pipeline, sample).map(|plan| Self { plan })
    }

    /// For the masks of samples of this layout: the number of each one's field, and its oracle.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn masks(pipeline: &Pipeline, sample: &SampleLayout) -> Result<Vec<(usize, Self)>, LayoutError> {
        let plans = PipelinePlan::new(pipeline, sample)?.masks(sample)?;
        Ok(plans.into_iter().map(|plan| (plan.field, Self { plan })).collect())
    }

    /// The tensor of one frame, in the order of its elements.
    ///
    /// # Errors
    /// [`LayoutError::Length`] for a frame of another size.
    pub fn expected(&self, geometry: &Geometry, frame: &[u8]) -> Result<Vec<PipelineValue>, LayoutError> {
        let expected = self.plan.frame.byte_len();
        if frame.len() != expected {
            return Err(LayoutError::Length { what: "a frame", got: frame.len(), expected });
        }
        let (height, width) = self.plan.size;
        let pixels: Vec<_> =
            (0..height * width).map(|at| self.pixel(geometry, frame, [at % width, at / width])).collect();
        let channels = self.plan.pipeline.channels.count();
        Ok(match self.plan.pipeline.layout {
            TensorLayout::Nhwc => pixels.iter().flat_map(|pixel| &pixel[..channels]).copied().collect(),
            TensorLayout::Nchw => (0..channels).flat_map(|c| pixels.iter().map(move |pixel| pixel[c])).collect(),
        })
    }

    /// Compares a tensor's bytes with what they should be: the largest error in parts of the bound, at most 1 where it is right.
    ///
    /// # Errors
    /// As [`expected`](Self::expected), and [`LayoutError::Length`] for a tensor of another size.
    pub fn worst(&self, geometry: &Geometry, frame: &[u8], tensor: &[u8]) -> Result<f64, LayoutError> {
        let pairs = self.pairs(geometry, frame, tensor)?;
        Ok(pairs.iter().map(|(want, got)| share(want, *got)).fold(0.0, f64::max))
    }

    /// The first element that is off by more than its bound: its number, what it should be and what it is.
    ///
    /// # Errors
    /// As [`worst`](Self::worst).
    pub(crate) fn wrong(
        &self,
        geometry: &Geometry,
        frame: &[u8],
        tensor: &[u8],
    ) -> Result<Option<(usize, PipelineValue, f64)>, LayoutError> {
        let pairs = self.pairs(geometry, frame, tensor)?;
        let wrong = pairs.iter().position(|(want, got)| share(want, *got) > 1.0);
        Ok(wrong.map(|element| (element, pairs[element].0, pairs[element].1)))
    }

    /// What each element should be, and what it is.
    fn pairs(
        &self,
        geometry: &Geometry,
        frame: &[u8],
        tensor: &[u8],
    ) -> Result<Vec<(PipelineValue, f64)>, LayoutError> {
        let (expected, element) = (self.expected(geometry, frame)?, self.plan.pipeline.dtype.element());
        let bytes = expected.len() * element.size();
        if tensor.len() != bytes {
            return Err(LayoutError::Length { what: "a tensor", got: tensor.len(), expected: bytes });
        }
        let got = tensor.chunks_exact(element.size()).map(|bytes| decode(element, bytes));
        Ok(expected.into_iter().zip(got).collect())
    }

    /// One pixel's channels.
    fn pixel(&self, geometry: &Geometry, frame: &[u8], [x, y]: [usize; 2]) -> [PipelineValue; 3] {
        let pipeline = &self.plan.pipeline;
        let taps = [0, 1].map(|axis| taps(pipeline, geometry, axis, [x, y][axis]));
        let [Some(along_x), Some(along_y)] = taps else {
            return std::array::from_fn(|channel| self.value(channel, pipeline.fill[channel], 0.0));
        };
        let (mut sums, mut count) = ([0.0; 3], 0.0);
        for &(v, weight_v) in &along_y {
            for &(u, weight_u) in &along_x {
                let [column, row] = if geometry.transposed { [v, u] } else { [u, v] };
                let stored = components(&self.plan.frame, frame, column, row);
                sums.iter_mut().zip(stored).for_each(|(sum, value)| *sum += weight_u * weight_v * value);
                count += 1.0;
            }
        }
        std::array::from_fn(|channel| {
            let row = if self.plan.is_mask { ITSELF } else { geometry.color[channel].map(f64::from) };
            let mixed = row[0] * sums[0] + row[1] * sums[1] + row[2] * sums[2] + row[3];
            // Weights, sums and the map in f32: some units of 2^-23 of the largest value for each tap that is added up.
            let gain = row[..3].iter().map(|factor| factor.abs()).sum::<f64>() + row[3].abs() / 255.0;
            let error = 255.0 * gain * 2f64.powi(-23) * (64.0 + count);
            self.value(channel, mixed.clamp(0.0, 255.0), error)
        })
    }

    /// A channel's value of 0 to 255, known up to an error, as an element.
    fn value(&self, channel: usize, pixel: f64, error: f64) -> PipelineValue {
        let pipeline = &self.plan.pipeline;
        if channel >= pipeline.channels.count() {
            return PipelineValue { value: 0.0, bound: 0.0 };
        }
        let (scale, bias) = pipeline.affine(channel);
        let value = pixel * scale + bias;
        let bound = error * scale.abs() + 2f64.powi(-22) * ((pixel * scale).abs() + bias.abs());
        // Half a unit in the last place of the element.
        let rounding = |digits: i32, least: f64| ((value.abs() + bound) * 2f64.powi(-digits)).max(least);
        match pipeline.dtype {
            TensorType::F32 => PipelineValue { value, bound: bound.max(f64::MIN_POSITIVE) },
            TensorType::F16 => PipelineValue { value, bound: bound + rounding(11, 2f64.powi(-25)) },
            TensorType::Bf16 => PipelineValue { value, bound: bound + rounding(8, f64::from(f32::MIN_POSITIVE)) },
            TensorType::U8(quantization) | TensorType::I8(quantization) => {
                let (least, most) = pipeline.dtype.range();
                let shifted = value + f64::from(quantization.zero_point);
                PipelineValue { value: shifted.clamp(f64::from(least), f64::from(most)), bound: bound + 0.5 }
            }
        }
    }
}

/// An error in parts of its bound.
fn share(want: &PipelineValue, got: f64) -> f64 {
    let share = (got - want.value).abs() / want.bound;
    if share.is_nan() { f64::INFINITY } else { share }
}

fn decode(element: Element, bytes: &[u8]) -> f64 {
    match (element, bytes) {
        (Element::F32, &[a, b, c, d]) => f64::from(f32::from_ne_bytes([a, b, c, d])),
        (Element::F16, &[a, b]) => f16::from_ne_bytes([a, b]).to_f64(),
        (Element::Bf16, &[a, b]) => bf16::from_ne_bytes([a, b]).to_f64(),
        (Element::I8, &[a]) => f64::from(a.cast_signed()),
        (_, &[a]) => f64::from(a),
        _ => f64::NAN,
    }
}

/// The pixels of the frame's axis that a tensor's pixel is made of, their weights adding up to one; `None` where it is filled.
fn taps(pipeline: &Pipeline, geometry: &Geometry, axis: usize, position: usize) -> Option<Vec<Tap>> {
    let (start, length) = geometry.source_along(axis);
    let (start, length) = (start as usize, length as usize);
    let resized = geometry.resized[axis] as usize;
    let inside = usize::try_from(position as i64 - i64::from(geometry.offset[axis])).ok()?;
    let inside = if inside >= resized { return None } else { inside };
    let inside = if geometry.mirrored[axis] { resized - 1 - inside } else { inside };
    let scale = length as f64 / resized as f64;
    if pipeline.filter == Filter::Nearest {
        return Some(vec![(start + (2 * inside + 1) * length / (2 * resized), 1.0)]);
    }
    let (center, stretch) = ((inside as f64 + 0.5) * scale, if pipeline.antialias { scale.max(1.0) } else { 1.0 });
    let weight = |pixel: usize| pipeline.filter.weight((pixel as f64 + 0.5 - center) / stretch);
    let reach = pipeline.filter.support() * stretch;
    let from = (center - reach - 1.0).max(0.0) as usize;
    let to = ((center + reach + 1.0) as usize).min(length - 1);
    let weights: Vec<Tap> = (from..=to).map(|pixel| (pixel, weight(pixel))).filter(|tap| tap.1 != 0.0).collect();
    let sum: f64 = weights.iter().map(|tap| tap.1).sum();
    Some(weights.into_iter().map(|(pixel, weight)| (start + pixel, weight / sum)).collect())
}

/// The components of one stored pixel, in the order in which they are stored; chroma is interpolated from where its samples lie.
fn components(frame: &FrameLayout, bytes: &[u8], x: usize, y: usize) -> [f64; 3] {
    let (pitch, planes) = (frame.pitch(), frame.plane_offsets());
    let at = |offset: usize| f64::from(bytes[offset]);
    let Some(yuv) = frame.format().yuv() else {
        let pixel = frame.format().pixel_bytes().unwrap_or(1);
        let first = y * pitch + x * pixel;
        return std::array::from_fn(|component| if component < pixel { at(first + component) } else { 0.0 });
    };
    let chroma = |component: usize, column: usize, row: usize| match frame.format() {
        PixelFormat::Nv12(_) => at(planes[1] + row * pitch + 2 * column + component),
        _ => at(planes[1 + component] + row * (pitch / 2) + column),
    };
    // Samples lie at 2k + 1 where they are centred, and at 2k + 0.5 where they are to the left.
    let columns = neighbours(x, frame.width(), yuv.siting == ChromaSiting::Left);
    let rows = neighbours(y, frame.height(), false);
    let mixed = |component| {
        let row =
            |row: usize| columns.iter().map(|&(column, weight)| weight * chroma(component, column, row)).sum::<f64>();
        rows.iter().map(|&(at, weight)| weight * row(at)).sum::<f64>()
    };
    [at(y * pitch + x), mixed(0), mixed(1)]
}

/// The chroma samples next to a pixel's centre, and their weights; those at the edge repeat.
fn neighbours(pixel: usize, length: usize, left: bool) -> [Tap; 2] {
    let position = pixel as f64 / 2.0 - if left { 0.0 } else { 0.25 };
    let part = position - position.floor();
    let last = length.div_ceil(2) - 1;
    let at = |sample: f64| (sample.max(0.0) as usize).min(last);
    [(at(position.floor()), 1.0 - part), (at(position.floor() + 1.0), part)]
}
