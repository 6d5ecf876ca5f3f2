//! What happens to a batch on the device: nothing, or normalisation of u8 images to floats.
//!
//! This module holds the parameters and the arithmetic that every kernel is checked against; the kernels themselves are
//! in `shaders/`.

mod fingerprint;
mod normalize;
mod oracle;
mod tensor;

pub use fingerprint::{Fingerprint, batch_fingerprint, fingerprint};
pub use normalize::{FloatType, Normalize, TensorLayout};
pub use oracle::{F32_ERROR_ULPS, error_bound, expected};
pub use tensor::{DType, Shape, TensorDesc};

use crate::error::LayoutError;
use crate::layout::{BatchLayout, SampleLayout};

/// What the device does with the delivered bytes.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Preprocess {
    /// The tensor is the samples' own bytes.
    #[default]
    Raw,
    /// u8 images become normalised f32 or f16 tensors.
    Normalize(Normalize),
}

impl Preprocess {
    /// Checks that these parameters fit the samples.
    ///
    /// # Errors
    /// [`LayoutError`] names the parameter that does not fit.
    pub fn validate(&self, sample: SampleLayout) -> Result<(), LayoutError> {
        match self {
            Self::Raw => Ok(()),
            Self::Normalize(normalize) => normalize.validate(sample),
        }
    }

    /// The tensor that a batch of `samples` samples becomes.
    #[must_use]
    pub fn tensor(&self, layout: &BatchLayout, samples: usize) -> TensorDesc {
        match self {
            Self::Raw => TensorDesc::raw(layout.sample(), samples),
            Self::Normalize(normalize) => TensorDesc::normalized(normalize, layout.sample(), samples),
        }
    }
}

impl From<Normalize> for Preprocess {
    fn from(normalize: Normalize) -> Self {
        Self::Normalize(normalize)
    }
}
