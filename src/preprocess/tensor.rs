//! What a delivered tensor is: shape, element type and size.

use std::fmt;

use serde::Serialize;

use super::normalize::{FloatType, Normalize, TensorLayout};
use crate::layout::{MAX_RANK, SampleLayout, VECTOR_ALIGN, align_up};

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// Unsigned bytes.
    U8,
    /// 16-bit floats.
    F16,
    /// 32-bit floats.
    F32,
}

impl DType {
    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U8 => "u8",
            Self::F16 => "f16",
            Self::F32 => "f32",
        })
    }
}

/// The dimensions of a tensor, the batch first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: usize,
    dims: [usize; MAX_RANK + 1],
}

impl Shape {
    fn of_batch(samples: usize, sample: &[usize]) -> Self {
        let mut dims = [1; MAX_RANK + 1];
        dims[0] = samples;
        dims[1..=sample.len()].copy_from_slice(sample);
        Self { rank: sample.len() + 1, dims }
    }

    /// The dimensions, the batch first.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        &self.dims[..self.rank]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// Shape, element type and size of a delivered tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorDesc {
    /// The dimensions, the batch first.
    pub shape: Shape,
    /// The element type.
    pub dtype: DType,
}

impl TensorDesc {
    /// The samples as they are: images stay HWC.
    pub(crate) fn raw(sample: SampleLayout, samples: usize) -> Self {
        match sample {
            SampleLayout::Image(image) => Self {
                shape: Shape::of_batch(samples, &[image.height(), image.width(), image.channels()]),
                dtype: DType::U8,
            },
            SampleLayout::F32(dims) => Self { shape: Shape::of_batch(samples, dims.as_slice()), dtype: DType::F32 },
            SampleLayout::Bytes(dims) => Self { shape: Shape::of_batch(samples, dims.as_slice()), dtype: DType::U8 },
        }
    }

    /// Normalised images. Samples that are no images are described as raw; `validate` refuses them first.
    pub(crate) fn normalized(normalize: &Normalize, sample: SampleLayout, samples: usize) -> Self {
        let Some(image) = sample.as_image() else { return Self::raw(sample, samples) };
        let (h, w, c) = (image.height(), image.width(), image.channels());
        let dims = match normalize.layout {
            TensorLayout::Nchw => [c, h, w],
            TensorLayout::Nhwc => [h, w, c],
        };
        let dtype = match normalize.dtype {
            FloatType::F32 => DType::F32,
            FloatType::F16 => DType::F16,
        };
        Self { shape: Shape::of_batch(samples, &dims), dtype }
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.as_slice().iter().fold(1, |product, &dim| product.saturating_mul(dim))
    }

    /// Bytes of the elements, without padding.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.elements().saturating_mul(self.dtype.size())
    }

    /// Bytes of the device buffer that holds the tensor, or `None` on overflow.
    #[must_use]
    pub fn buffer_bytes(&self) -> Option<usize> {
        let elements = self.shape.as_slice().iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))?;
        align_up(elements.checked_mul(self.dtype.size())?, VECTOR_ALIGN)
    }
}
