//! The components of a frame's pixels.

use crate::layout::{ChromaSiting, FrameLayout, PixelFormat, Yuv};

/// A frame's bytes, and where its pixels lie in them.
pub(super) struct Pixels<'a> {
    layout: &'a FrameLayout,
    planes: [usize; 3],
    bytes: &'a [u8],
}

impl<'a> Pixels<'a> {
    pub(super) fn new(layout: &'a FrameLayout, bytes: &'a [u8]) -> Self {
        Self { planes: layout.plane_offsets(), layout, bytes }
    }

    fn at(&self, offset: usize) -> f32 {
        f32::from(self.bytes[offset])
    }

    /// As they are stored: luma before chroma, which is interpolated to the pixel's centre. What a format lacks is zero.
    pub(super) fn components(&self, x: usize, y: usize) -> [f32; 3] {
        let row = y * self.layout.pitch();
        match self.layout.format() {
            PixelFormat::Gray8 => [self.at(row + x), 0.0, 0.0],
            PixelFormat::Rgb8 | PixelFormat::Bgr8 => self.three(row + 3 * x),
            PixelFormat::Rgba8 | PixelFormat::Bgra8 => self.three(row + 4 * x),
            PixelFormat::Nv12(yuv) | PixelFormat::I420(yuv) => {
                let [cb, cr] = self.chroma(yuv, x, y);
                [self.at(row + x), cb, cr]
            }
        }
    }

    fn three(&self, first: usize) -> [f32; 3] {
        [self.at(first), self.at(first + 1), self.at(first + 2)]
    }

    fn chroma(&self, yuv: Yuv, x: usize, y: usize) -> [f32; 2] {
        let (x0, x1, across) = between(x, self.layout.width(), yuv.siting == ChromaSiting::Left);
        let (y0, y1, down) = between(y, self.layout.height(), false);
        [0, 1].map(|component| {
            let line = |y| {
                let (left, right) = (self.chroma_sample(component, x0, y), self.chroma_sample(component, x1, y));
                left + (right - left) * across
            };
            let (above, below) = (line(y0), line(y1));
            above + (below - above) * down
        })
    }

    fn chroma_sample(&self, component: usize, x: usize, y: usize) -> f32 {
        let pitch = self.layout.pitch();
        match self.layout.format() {
            PixelFormat::Nv12(_) => self.at(self.planes[1] + y * pitch + 2 * x + component),
            _ => self.at(self.planes[1 + component] + y * (pitch / 2) + x),
        }
    }
}

/// The chroma samples before and behind a pixel's centre, and the weight of the one behind.
fn between(pixel: usize, length: usize, left: bool) -> (usize, usize, f32) {
    let (last, is_odd) = (length.div_ceil(2) - 1, pixel % 2 == 1);
    let (behind, weight) = match (left, is_odd) {
        (true, _) => (pixel / 2 + 1, if is_odd { 0.5 } else { 0.0 }),
        (false, true) => (pixel.div_ceil(2), 0.25),
        (false, false) => (pixel / 2, 0.75),
    };
    (behind.saturating_sub(1).min(last), behind.min(last), weight)
}
