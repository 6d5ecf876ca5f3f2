//! What a delivered tensor is: shape, element type and size.

use std::fmt;

use super::normalize::{FloatType, Normalize, TensorLayout};
use super::pipeline::{PipelinePlan, Quantization};
use crate::layout::{Element, Field, MAX_RANK, VECTOR_ALIGN, align_up};

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
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorDesc {
    /// The dimensions, the batch first.
    pub shape: Shape,
    /// The element type.
    pub dtype: Element,
    /// What integers stand for, where a pipeline made them of other values.
    pub quantization: Option<Quantization>,
    /// The first byte in the output, which holds the tensors of all of a sample's fields on the device. Zero for the first field.
    pub offset: usize,
}

impl TensorDesc {
    /// A field as it is: images stay HWC.
    pub(crate) fn raw(field: &Field, samples: usize) -> Self {
        Self { shape: Shape::of_batch(samples, field.dims()), dtype: field.element(), quantization: None, offset: 0 }
    }

    /// Normalised images. A field that is no image is described as raw; `validate` refuses it first.
    pub(crate) fn normalized(normalize: &Normalize, field: &Field, samples: usize) -> Self {
        let Some(image) = field.as_image() else { return Self::raw(field, samples) };
        let (h, w, c) = (image.height(), image.width(), image.channels());
        let dims = match normalize.layout {
            TensorLayout::Nchw => [c, h, w],
            TensorLayout::Nhwc => [h, w, c],
        };
        let dtype = match normalize.dtype {
            FloatType::F32 => Element::F32,
            FloatType::F16 => Element::F16,
        };
        Self { shape: Shape::of_batch(samples, &dims), dtype, quantization: None, offset: 0 }
    }

    /// What a pipeline makes of frames.
    pub(crate) fn of_pipeline(plan: &PipelinePlan, samples: usize) -> Self {
        let dtype = plan.pipeline.dtype;
        let shape = Shape::of_batch(samples, &plan.dims());
        // A mask's elements stand for themselves.
        let quantization = dtype.quantization().filter(|_| !plan.is_mask);
        Self { shape, dtype: dtype.element(), quantization, offset: 0 }
    }

    /// The same tensor of another number of samples.
    #[must_use]
    pub(crate) fn of(mut self, samples: usize) -> Self {
        self.shape.dims[0] = samples;
        self
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
