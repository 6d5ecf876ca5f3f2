//! One sample's own geometry and colours: what its pixels are made of, and the way from the tensor to the frame and back.

/// How one sample's tensor was made of its frame.
///
/// The source rectangle of the frame is resized, mirrored and turned, and lies in the tensor at an offset; what of the tensor it does
/// not cover is filled, and what does not fit is cut off. Points and boxes are in pixels, x before y, the first pixel reaching from 0 to
/// 1: the corners of a frame of 1280x720 are (0, 0) and (1280, 720).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Left, top, width and height of what is read, in the frame as it is stored.
    pub(super) source: [u32; 4],
    /// Width and height that it becomes, in the tensor's axes.
    pub(super) resized: [u32; 2],
    /// Where that lies in the tensor: x and y.
    pub(super) offset: [i32; 2],
    /// Whether the tensor's x runs along the frame's y.
    pub(super) transposed: bool,
    /// Whether the tensor's x and y run backwards along the frame's axis.
    pub(super) mirrored: [bool; 2],
    /// From stored components to channels, before scale and mean.
    pub(super) color: [[f32; 4]; 3],
}

impl Geometry {
    /// The words of [`words`](Self::words).
    pub const WORDS: usize = 24;

    /// Left, top, width and height of what is read of the frame, in pixels of the frame as it is stored.
    #[must_use]
    pub const fn source(&self) -> [u32; 4] {
        self.source
    }

    /// Width and height that it becomes in the tensor.
    #[must_use]
    pub const fn resized(&self) -> [u32; 2] {
        self.resized
    }

    /// The tensor's x and y at which it begins; negative where some of it is cut off.
    #[must_use]
    pub const fn offset(&self) -> [i32; 2] {
        self.offset
    }

    /// The rows of the linear map from stored components to the tensor's channels, with values from 0 to 255: three factors and a sum.
    #[must_use]
    pub const fn color(&self) -> [[f32; 4]; 3] {
        self.color
    }

    /// The record that kernels read, which also is the batch's field `geometry` on the device.
    ///
    /// Words 0 to 3 are left, top, width and height of the source rectangle; 4 and 5 width and height in the tensor; 6 and 7 its offset
    /// there; 8 the sum of 1 where x is mirrored, 2 where y is, and 4 where x runs along the frame's y; 9 and 10 are 0.5 over words 4
    /// and 5; 11 is zero; 12 to 23 are the rows of [`color`](Self::color). Whole numbers are exact: all are below 2^24.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // They are below 2^15.
    pub fn words(&self) -> [f32; Self::WORDS] {
        let mut words = [0.0; Self::WORDS];
        let code = u8::from(self.mirrored[0]) + 2 * u8::from(self.mirrored[1]) + 4 * u8::from(self.transposed);
        for (word, side) in words.iter_mut().zip(self.source) {
            *word = side as f32;
        }
        for axis in 0..2 {
            words[4 + axis] = self.resized[axis] as f32;
            words[6 + axis] = self.offset[axis] as f32;
            words[9 + axis] = 0.5 / self.resized[axis] as f32;
        }
        words[8] = f32::from(code);
        for (row, values) in self.color.iter().enumerate() {
            words[12 + 4 * row..][..4].copy_from_slice(values);
        }
        words
    }

    /// The source rectangle's first pixel and length along the frame's axis that a tensor's axis (0 for x) lies on.
    pub(super) fn source_along(&self, axis: usize) -> (f64, f64) {
        let stored = if self.transposed { 1 - axis } else { axis };
        (f64::from(self.source[stored]), f64::from(self.source[2 + stored]))
    }

    /// The point of the frame that a point of the tensor shows. Points outside of the resized rectangle have one too, further out.
    #[must_use]
    pub fn to_frame(&self, point: [f64; 2]) -> [f64; 2] {
        let along = |axis: usize| {
            let (start, length) = self.source_along(axis);
            let part = (point[axis] - f64::from(self.offset[axis])) / f64::from(self.resized[axis]);
            start + length * if self.mirrored[axis] { 1.0 - part } else { part }
        };
        let (x, y) = (along(0), along(1));
        if self.transposed { [y, x] } else { [x, y] }
    }

    /// The point of the tensor that shows a point of the frame: the inverse of [`to_frame`](Self::to_frame).
    #[must_use]
    pub fn to_tensor(&self, point: [f64; 2]) -> [f64; 2] {
        let along = |axis: usize| {
            let (start, length) = self.source_along(axis);
            let part = (point[if self.transposed { 1 - axis } else { axis }] - start) / length;
            let part = if self.mirrored[axis] { 1.0 - part } else { part };
            f64::from(self.offset[axis]) + part * f64::from(self.resized[axis])
        };
        [along(0), along(1)]
    }

    /// A box of the tensor, `[x0, y0, x1, y1]`, in the frame: what a detector found.
    #[must_use]
    pub fn box_to_frame(&self, corners: [f64; 4]) -> [f64; 4] {
        map_box(corners, |point| self.to_frame(point))
    }

    /// A box of the frame, `[x0, y0, x1, y1]`, in the tensor: what a network is trained with. It is not cut to the tensor.
    #[must_use]
    pub fn box_to_tensor(&self, corners: [f64; 4]) -> [f64; 4] {
        map_box(corners, |point| self.to_tensor(point))
    }
}

/// Mirrors change which corner is the first.
fn map_box([x0, y0, x1, y1]: [f64; 4], map: impl Fn([f64; 2]) -> [f64; 2]) -> [f64; 4] {
    let ([a, b], [c, d]) = (map([x0, y0]), map([x1, y1]));
    [a.min(c), b.min(d), a.max(c), b.max(d)]
}
