//! What happens to a batch on the device: nothing, normalisation of u8 images to floats, or a pipeline from frames of any pixel format to
//! a network's input.
//!
//! This module holds the parameters and the arithmetic that every kernel is checked against; the kernels themselves are
//! in `shaders/`.

mod fingerprint;
mod normalize;
mod oracle;
mod output;
mod pipeline;
mod tensor;

pub use fingerprint::{Fingerprint, batch_fingerprint, fingerprint, sample_fingerprint};
pub use normalize::{FloatType, Normalize, TensorLayout};
pub use oracle::{F32_ERROR_ULPS, error_bound, expected};
pub use output::{OutputField, OutputLayout};
pub(crate) use pipeline::PipelinePlan;
pub use pipeline::{
    Anchor, ChannelOrder, Crop, Filter, Flip, GEOMETRY, GEOMETRY_LIMIT, Geometry, Jitter, Mask, Orientation, Pipeline,
    PipelineOracle, PipelineValue, Quantization, Resize, TensorType,
};
pub use tensor::{Shape, TensorDesc};

use crate::error::LayoutError;
use crate::layout::{BatchLayout, Field, FieldKind, SampleLayout};

/// What the device does with the bytes of a sample's first field. Further fields are delivered as they are, but for the
/// [masks](Pipeline::masks) of a pipeline.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Preprocess {
    /// The tensor is the samples' own bytes.
    #[default]
    Raw,
    /// u8 images become normalised f32 or f16 tensors.
    Normalize(Normalize),
    /// Images and frames of any pixel format become a network's input.
    Pipeline(Box<Pipeline>),
    /// A [`Step`](crate::backend::Step) of the application's makes the tensor, which is so of each sample: an array or an image. Its bytes
    /// are on the device by then.
    Own(Field),
}

impl Preprocess {
    /// What a slot holds of each of these samples: their own fields, and for a pipeline behind them the sample's [`Geometry`], which
    /// whoever fills the slot writes.
    ///
    /// # Errors
    /// [`LayoutError::Fields`] and [`LayoutError::FieldName`] where there is no room for it.
    pub fn staged(&self, sample: &SampleLayout) -> Result<SampleLayout, LayoutError> {
        match self {
            Self::Raw | Self::Normalize(_) | Self::Own(_) => Ok(sample.clone()),
            Self::Pipeline(_) => PipelinePlan::staged(sample),
        }
    }

    /// Checks that these parameters fit [staged](Self::staged) samples.
    ///
    /// # Errors
    /// [`LayoutError`] names the parameter that does not fit.
    pub fn validate(&self, sample: &SampleLayout) -> Result<(), LayoutError> {
        match self {
            Self::Raw => Ok(()),
            Self::Normalize(normalize) => normalize.validate(sample.first()),
            Self::Own(tensor) if matches!(tensor.kind(), FieldKind::Array | FieldKind::Image) => Ok(()),
            Self::Own(tensor) => {
                let reason = "a step makes arrays and images";
                Err(LayoutError::FieldName { name: tensor.name().to_owned(), reason })
            }
            Self::Pipeline(pipeline) => {
                pipeline.validate(sample)?;
                PipelinePlan::record_field(sample).map(drop)
            }
        }
    }

    /// Whether kernels of gpufeed's make the tensor.
    #[cfg(feature = "wgpu")]
    pub(crate) fn has_kernels(&self) -> bool {
        matches!(self, Self::Normalize(_) | Self::Pipeline(_))
    }

    /// Whether the tensor is made of the bytes that arrive, and is not those.
    pub(crate) fn computes(&self) -> bool {
        !matches!(self, Self::Raw)
    }

    /// The pipeline for these samples, where this is one.
    ///
    /// # Errors
    /// As [`Pipeline::validate`].
    pub(crate) fn plan(&self, sample: &SampleLayout) -> Result<Option<PipelinePlan>, LayoutError> {
        match self {
            Self::Pipeline(pipeline) => PipelinePlan::new(pipeline, sample).map(Some),
            Self::Raw | Self::Normalize(_) | Self::Own(_) => Ok(None),
        }
    }

    /// The pipelines for the masks of these samples, where there are any.
    ///
    /// # Errors
    /// As [`Pipeline::validate`].
    pub(crate) fn masks(&self, sample: &SampleLayout) -> Result<Vec<PipelinePlan>, LayoutError> {
        match self.plan(sample)? {
            Some(plan) => plan.masks(sample),
            None => Ok(Vec::new()),
        }
    }

    /// The tensor that the first field of `samples` samples becomes.
    #[must_use]
    pub fn tensor(&self, layout: &BatchLayout, samples: usize) -> TensorDesc {
        let field = layout.sample().first();
        match self {
            Self::Raw => TensorDesc::raw(field, samples),
            Self::Normalize(normalize) => TensorDesc::normalized(normalize, field, samples),
            Self::Own(tensor) => TensorDesc::raw(tensor, samples),
            // What does not fit is described as raw; `validate` refuses it first.
            Self::Pipeline(pipeline) => PipelinePlan::new(pipeline, layout.sample())
                .map_or_else(|_| TensorDesc::raw(field, samples), |plan| TensorDesc::of_pipeline(&plan, samples)),
        }
    }
}

impl From<Pipeline> for Preprocess {
    fn from(pipeline: Pipeline) -> Self {
        Self::Pipeline(Box::new(pipeline))
    }
}

impl From<Normalize> for Preprocess {
    fn from(normalize: Normalize) -> Self {
        Self::Normalize(normalize)
    }
}
