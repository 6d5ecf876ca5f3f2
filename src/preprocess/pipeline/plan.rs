//! A recipe for frames of one layout: what loaders and kernels are made of.

use super::{Geometry, Mask, Pipeline, TensorLayout};
use crate::error::LayoutError;
use crate::layout::{BatchLayout, Element, Field, FrameLayout, SampleLayout};

/// The name of the field that holds each sample's [`Geometry::words`].
pub const GEOMETRY: &str = "geometry";

/// A recipe that was found to fit, and the frames that it fits.
#[derive(Clone, Debug)]
pub(crate) struct PipelinePlan {
    pub(crate) pipeline: Pipeline,
    pub(crate) frame: FrameLayout,
    /// Rows and columns of the tensor.
    pub(crate) size: (usize, usize),
    /// The number of the frames' field.
    pub(crate) field: usize,
    /// Whether the field shares the image's geometry, and none of its colours.
    pub(crate) is_mask: bool,
}

impl PipelinePlan {
    /// # Errors
    /// As [`Pipeline::validate`].
    pub(crate) fn new(pipeline: &Pipeline, sample: &SampleLayout) -> Result<Self, LayoutError> {
        pipeline.validate(sample)?;
        let field = sample.first();
        let frame = field.as_frame().ok_or_else(|| LayoutError::NotAFrame { layout: field.to_string() })?;
        let size = pipeline.tensor_size(&frame)?;
        Ok(Self { size, pipeline: pipeline.clone(), frame, field: 0, is_mask: false })
    }

    /// What makes the tensors of the image's masks.
    ///
    /// # Errors
    /// As [`Pipeline::validate`].
    pub(crate) fn masks(&self, sample: &SampleLayout) -> Result<Vec<Self>, LayoutError> {
        let plan = |mask: &Mask| {
            let no_field = || LayoutError::Pipeline { step: "masks", reason: format!("there is no `{}`", mask.field) };
            let field = Pipeline::mask_field(sample, mask).ok_or_else(no_field)?;
            let layout = &sample.fields()[field];
            let frame = layout.as_frame().ok_or_else(|| LayoutError::NotAFrame { layout: layout.to_string() })?;
            Ok(Self { pipeline: self.pipeline.of_mask(mask), frame, size: self.size, field, is_mask: true })
        };
        self.pipeline.masks.iter().map(plan).collect()
    }

    /// The sample with this seed. The steps fit, as `new` found.
    ///
    /// # Errors
    /// As [`Pipeline::geometry`].
    pub(crate) fn geometry(&self, seed: u64) -> Result<Geometry, LayoutError> {
        self.pipeline.geometry(&self.frame, seed)
    }

    /// The dimensions of one sample's tensor.
    pub(crate) fn dims(&self) -> Vec<usize> {
        let ((h, w), c) = (self.size, self.pipeline.channels.count());
        match self.pipeline.layout {
            _ if self.is_mask => vec![h, w],
            TensorLayout::Nchw => vec![c, h, w],
            TensorLayout::Nhwc => vec![h, w, c],
        }
    }

    /// Bytes of one sample's tensor.
    #[cfg(feature = "wgpu")]
    pub(crate) fn tensor_bytes(&self) -> usize {
        self.dims().iter().product::<usize>() * self.pipeline.dtype.element().size()
    }

    /// Scale and sum of each channel as kernels take them, and what they write around the image. Channels that the tensor lacks have
    /// zeros.
    #[allow(clippy::cast_possible_truncation)] // Rounded once, as the error bound says.
    pub(crate) fn affine(&self) -> [(f32, f32, f32); 3] {
        std::array::from_fn(|channel| {
            if channel >= self.pipeline.channels.count() {
                return (0.0, 0.0, 0.0);
            }
            let (scale, bias) = self.pipeline.affine(channel);
            (scale as f32, bias as f32, (self.pipeline.fill[channel] * scale + bias) as f32)
        })
    }

    /// What the kernels need beside the frame: one record a sample, behind the fields that a source writes.
    ///
    /// # Errors
    /// [`LayoutError::Fields`] and [`LayoutError::FieldName`] where the sample has no room for it.
    pub(crate) fn staged(sample: &SampleLayout) -> Result<SampleLayout, LayoutError> {
        sample.with(Self::field()?)
    }

    fn field() -> Result<Field, LayoutError> {
        Field::array(GEOMETRY, Element::F32, &[Geometry::WORDS])
    }

    /// The number of the field that holds a sample's record.
    ///
    /// # Errors
    /// [`LayoutError::FieldName`] for a sample without.
    pub(crate) fn record_field(sample: &SampleLayout) -> Result<usize, LayoutError> {
        let field = Self::field()?;
        sample.fields().iter().position(|other| *other == field).ok_or_else(|| {
            let reason = "samples of a pipeline have it behind their own fields: see `Preprocess::staged`";
            LayoutError::FieldName { name: GEOMETRY.to_owned(), reason }
        })
    }

    /// The first byte of the records in a slot of this layout.
    pub(crate) fn records_offset(layout: &BatchLayout) -> usize {
        let field = Self::record_field(layout.sample()).ok();
        field.and_then(|number| layout.spans().get(number)).map_or(0, |span| span.offset)
    }
}
