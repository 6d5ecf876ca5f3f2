//! Which of a frame's pixels each of the tensor's is made of, from a sample's record.

use std::ops::Range;

use crate::layout::FrameLayout;
use crate::preprocess::{Filter, GEOMETRY_LIMIT, Geometry};

const LIMIT: i32 = GEOMETRY_LIMIT as i32;

/// One axis of the tensor.
pub(super) struct Axis {
    /// The first pixel of the source rectangle along the frame's axis that this one lies on, and how many there are.
    start: i32,
    length: i32,
    /// How many they become, and where those begin in the tensor.
    resized: i32,
    offset: i32,
    /// 0.5 / `resized`.
    half_step: f32,
    mirrored: bool,
}

/// A record, read as kernels read it.
pub(super) struct Record {
    pub(super) axes: [Axis; 2],
    pub(super) transposed: bool,
    /// None of a mask, whose pixels stay what they are.
    color: Option<[[f32; 4]; 3]>,
}

impl Record {
    /// A record that is right is taken as it is; no other one reads outside of the frame.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Whole numbers below 2^15.
    pub(super) fn new(words: &[f32; Geometry::WORDS], frame: &FrameLayout, is_mask: bool) -> Self {
        let sides = [frame.width(), frame.height()].map(|side| i32::try_from(side).unwrap_or(i32::MAX));
        let code = words[8] as u32;
        let transposed = code & 4 != 0;
        let axis = |axis: usize| {
            let stored = if transposed { 1 - axis } else { axis };
            let start = (words[stored] as i32).clamp(0, sides[stored] - 1);
            Axis {
                start,
                length: (words[2 + stored] as i32).clamp(1, sides[stored] - start),
                resized: (words[4 + axis] as i32).clamp(1, LIMIT),
                offset: (words[6 + axis] as i32).clamp(-LIMIT, LIMIT),
                half_step: words[9 + axis],
                mirrored: code & (1 << axis) != 0,
            }
        };
        let row = |row: usize| std::array::from_fn(|column| words[12 + 4 * row + column]);
        let color = (!is_mask).then(|| std::array::from_fn(row));
        Self { axes: [axis(0), axis(1)], transposed, color }
    }

    /// A pixel's channels from 0 to 255.
    pub(super) fn mix(&self, [a, b, c]: [f32; 3]) -> [f32; 3] {
        let Some(color) = self.color else { return [a, b, c] };
        color.map(|row| (row[0] * a + row[1] * b + row[2] * c + row[3]).clamp(0.0, 255.0))
    }
}

/// The weighted pixels of each of the tensor's along one axis; used again.
#[derive(Default)]
pub(super) struct Windows {
    /// The first pixel of the frame and the end of the weights, by pixel of the tensor; no weights where it is filled.
    windows: Vec<(usize, usize)>,
    weights: Vec<f32>,
    reach: Range<usize>,
}

impl Windows {
    /// Those of `pixels` pixels of the tensor.
    pub(super) fn set(&mut self, pixels: usize, axis: &Axis, filter: Filter, antialias: bool) {
        self.windows.clear();
        self.weights.clear();
        let mut reach = (usize::MAX, 0);
        for position in 0..pixels {
            let before = self.weights.len();
            let at = i32::try_from(position).unwrap_or(i32::MAX) - axis.offset;
            let first = if (0..axis.resized).contains(&at) { self.add(at, axis, filter, antialias) } else { 0 };
            let count = self.weights.len() - before;
            if count > 0 {
                reach = (reach.0.min(first), reach.1.max(first + count));
            }
            self.windows.push((first, self.weights.len()));
        }
        self.reach = reach.0.min(reach.1)..reach.1;
    }

    /// Adds the weights of one pixel, and returns the first that they are for.
    fn add(&mut self, at: i32, axis: &Axis, filter: Filter, antialias: bool) -> usize {
        let at = if axis.mirrored { axis.resized - 1 - at } else { at };
        // The centre in whole numbers, so that it is as exact in a large frame as in a small one.
        let (number, whole) = (i64::from(2 * at + 1) * i64::from(axis.length), i64::from(2 * axis.resized));
        let (base, part) = ((number / whole) as i32, (number % whole) as f32 * axis.half_step);
        if filter == Filter::Nearest {
            self.weights.push(1.0);
            return (axis.start + base) as usize;
        }
        let mut stretch = 1.0;
        if antialias && axis.length > axis.resized {
            stretch = (2 * axis.length) as f32 * axis.half_step;
        }
        let reach = filter.support() as f32 * stretch;
        let first = (((part - 0.5 - reach).floor()) as i32 + 1).max(-base);
        let last = (((part - 0.5 + reach).ceil()) as i32 - 1).min(axis.length - 1 - base);
        let before = self.weights.len();
        self.weights.extend((first..=last).map(|tap| weight(filter, (tap as f32 + 0.5 - part).abs() / stretch)));
        let sum: f32 = self.weights[before..].iter().sum();
        self.weights[before..].iter_mut().for_each(|weight| *weight /= sum);
        (axis.start + base + first) as usize
    }

    /// All pixels of the frame's axis that are read.
    pub(super) fn reach(&self) -> Range<usize> {
        self.reach.clone()
    }

    /// Whether a pixel of the tensor lies in the image.
    pub(super) fn covers(&self, position: usize) -> bool {
        let start = position.checked_sub(1).map_or(0, |before| self.windows[before].1);
        self.windows[position].1 > start
    }

    /// The weighted mean of a tensor's pixel; `None` where it is filled.
    pub(super) fn mean(&self, position: usize, pixel: impl Fn(usize) -> [f32; 3]) -> Option<[f32; 3]> {
        let start = position.checked_sub(1).map_or(0, |before| self.windows[before].1);
        let (first, end) = self.windows[position];
        let mut sum = [0.0; 3];
        for (place, weight) in (first..).zip(&self.weights[start..end]) {
            sum.iter_mut().zip(pixel(place)).for_each(|(sum, value)| *sum += weight * value);
        }
        (end > start).then_some(sum)
    }
}

fn weight(filter: Filter, d: f32) -> f32 {
    match filter {
        Filter::Bicubic if d < 1.0 => (1.5 * d - 2.5) * d * d + 1.0,
        Filter::Bicubic if d < 2.0 => ((-0.5 * d + 2.5) * d - 4.0) * d + 2.0,
        Filter::Bicubic => 0.0,
        _ => (1.0 - d).max(0.0),
    }
}
