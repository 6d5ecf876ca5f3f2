//! What happens to a batch on the device: nothing, or normalisation of u8 images to floats.
//!
//! This module holds the parameters and the arithmetic that every kernel is checked against; the kernels themselves are
//! in `shaders/`.

mod fingerprint;
mod normalize;
mod oracle;
mod output;
mod tensor;

pub use fingerprint::{Fingerprint, batch_fingerprint, fingerprint, sample_fingerprint};
pub use normalize::{FloatType, Normalize, TensorLayout};
pub use oracle::{F32_ERROR_ULPS, error_bound, expected};
pub use output::{OutputField, OutputLayout};
pub use tensor::{Shape, TensorDesc};

use crate::error::LayoutError;
use crate::layout::{BatchLayout, SampleLayout};

/// What the device does with the bytes of a sample's first field. Further fields are delivered as they are.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Preprocess {
    /// The tensor is the samples' own bytes.
    #[default]
    Raw,
    /// u8 images become normalised f32 or f16 tensors.
    Normalize(Normalize),
}

impl Preprocess {
    /// Checks that these parameters fit the samples' first field.
    ///
    /// # Errors
    /// [`LayoutError`] names the parameter that does not fit.
    pub fn validate(&self, sample: &SampleLayout) -> Result<(), LayoutError> {
        match self {
            Self::Raw => Ok(()),
            Self::Normalize(normalize) => normalize.validate(sample.first()),
        }
    }

    /// The tensor that the first field of `samples` samples becomes.
    #[must_use]
    pub fn tensor(&self, layout: &BatchLayout, samples: usize) -> TensorDesc {
        let field = layout.sample().first();
        match self {
            Self::Raw => TensorDesc::raw(field, samples),
            Self::Normalize(normalize) => TensorDesc::normalized(normalize, field, samples),
        }
    }
}

impl From<Normalize> for Preprocess {
    fn from(normalize: Normalize) -> Self {
        Self::Normalize(normalize)
    }
}
