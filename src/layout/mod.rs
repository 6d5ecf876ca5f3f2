//! Sample and batch layouts, and all alignment arithmetic: pure, overflow-checked, in one place.
//!
//! A sample is a list of [`Field`]s. A batch in staging memory is field after field, and within a field sample after sample, with no
//! padding between them. Ragged fields have room for their largest sample.

#![deny(clippy::arithmetic_side_effects, clippy::unwrap_used)]

mod batch;
mod binding;
mod element;
mod field;
mod field_key;
mod frame;
mod image;
mod pixel_format;
mod pushed;
mod ragged;
mod sample;

pub use batch::{BatchLayout, FieldSpan};
pub use binding::samples_per_binding;
pub use element::{Element, Scalar};
pub use field::{Field, FieldKind, Placement};
pub use field_key::FieldKey;
pub use frame::FrameLayout;
pub use image::ImageLayout;
pub use pixel_format::{ChromaSiting, PixelFormat, Yuv, YuvMatrix, YuvRange};
pub use ragged::RaggedSpan;
pub use sample::{LABEL, SampleLayout};

use std::fmt;

use crate::error::LayoutError;

/// Copies between device buffers move whole words of this many bytes.
pub const COPY_ALIGN: usize = 4;
/// Buffers are padded to this many bytes, so that kernels may load and store vectors of four words.
pub const VECTOR_ALIGN: usize = 16;
/// A field behind the first starts at a multiple of this many bytes: the largest alignment that WebGPU lets a device ask of a binding.
pub const FIELD_ALIGN: usize = 256;
/// A field in host memory starts at a multiple of this many bytes: the largest element.
pub const HOST_ALIGN: usize = 8;
/// The largest number of dimensions of one field.
pub const MAX_RANK: usize = 5;

/// Rounds `bytes` up to a multiple of `align` (a power of two), or `None` on overflow.
#[must_use]
pub const fn align_up(bytes: usize, align: usize) -> Option<usize> {
    debug_assert!(align.is_power_of_two());
    match bytes.checked_add(align.wrapping_sub(1)) {
        Some(sum) => Some(sum & !align.wrapping_sub(1)),
        None => None,
    }
}

/// The dimensions of one sample's field, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims {
    rank: usize,
    dims: [usize; MAX_RANK],
}

impl Dims {
    /// Dimensions from a slice. An empty slice is a single element.
    ///
    /// # Errors
    /// [`LayoutError::Rank`] above [`MAX_RANK`], [`LayoutError::Zero`] for an empty dimension,
    /// [`LayoutError::Overflow`] where the product does not fit.
    pub fn new(dims: &[usize]) -> Result<Self, LayoutError> {
        if dims.len() > MAX_RANK {
            return Err(LayoutError::Rank { rank: dims.len(), max: MAX_RANK });
        }
        if dims.contains(&0) {
            return Err(LayoutError::Zero { what: "a sample's dimension" });
        }
        dims.iter()
            .try_fold(1usize, |product, &dim| product.checked_mul(dim))
            .ok_or(LayoutError::Overflow { what: "a sample's element count" })?;
        let mut all = [1; MAX_RANK];
        all.iter_mut().zip(dims).for_each(|(slot, &dim)| *slot = dim);
        Ok(Self { rank: dims.len(), dims: all })
    }

    /// The dimensions, outermost first.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        self.dims.get(..self.rank).unwrap_or(&[])
    }

    /// The product of the dimensions.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.as_slice().iter().fold(1, |product, &dim| product.saturating_mul(dim))
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_up_does_not_overflow_silently() {
        assert_eq!((align_up(17, 16), align_up(0, 16)), (Some(32), Some(0)));
        assert_eq!(align_up(usize::MAX - 2, 16), None);
    }
}
