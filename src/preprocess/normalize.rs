//! Normalisation parameters.

use serde::{Deserialize, Serialize};

use crate::error::LayoutError;
use crate::layout::{Field, ImageLayout};

/// The order of a tensor's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TensorLayout {
    /// Sample, channel, row, column: one plane a channel.
    #[default]
    Nchw,
    /// Sample, row, column, channel: the order of the u8 image.
    Nhwc,
}

/// The element type of a normalised tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FloatType {
    /// 32-bit IEEE 754.
    #[default]
    F32,
    /// 16-bit IEEE 754, rounded from f32.
    F16,
}

/// `(pixel / 255 - mean) / std`, per channel, as torchvision's `ToTensor` followed by `Normalize`.
///
/// `mean` and `std` are in units of the pixel range [0, 1], one value a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalize {
    /// Mean of each channel.
    pub mean: Vec<f64>,
    /// Standard deviation of each channel; not zero.
    pub std: Vec<f64>,
    /// Order of the tensor's dimensions.
    pub layout: TensorLayout,
    /// Element type of the tensor.
    pub dtype: FloatType,
}

impl Normalize {
    /// The mean and standard deviation of ImageNet's training set, for RGB images; NCHW, f32.
    #[must_use]
    pub fn imagenet() -> Self {
        Self::new(&[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225])
    }

    /// Pixels scaled to [0, 1], for images of `channels` channels; NCHW, f32.
    #[must_use]
    pub fn unit(channels: usize) -> Self {
        Self::new(&vec![0.0; channels], &vec![1.0; channels])
    }

    /// These means and standard deviations; NCHW, f32.
    #[must_use]
    pub fn new(mean: &[f64], std: &[f64]) -> Self {
        Self { mean: mean.to_vec(), std: std.to_vec(), layout: TensorLayout::default(), dtype: FloatType::default() }
    }

    /// The same with another order of dimensions.
    #[must_use]
    pub const fn with_layout(mut self, layout: TensorLayout) -> Self {
        self.layout = layout;
        self
    }

    /// The same with another element type.
    #[must_use]
    pub const fn with_dtype(mut self, dtype: FloatType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Checks that the parameters are finite, that no `std` is zero, and that they fit the field.
    ///
    /// # Errors
    /// [`LayoutError::NotAnImage`], [`LayoutError::ChannelCount`] or [`LayoutError::BadParameter`].
    pub fn validate(&self, field: &Field) -> Result<(), LayoutError> {
        let image = field.as_image().ok_or_else(|| LayoutError::NotAnImage { layout: field.to_string() })?;
        self.validate_for(image)
    }

    /// As [`validate`](Self::validate), for a field that is an image.
    pub(super) fn validate_for(&self, image: ImageLayout) -> Result<(), LayoutError> {
        check_affine(&self.mean, &self.std, image.channels())
    }

    /// `1 / (255 * std)` of a channel: what a pixel is multiplied by.
    #[must_use]
    pub fn scale(&self, channel: usize) -> f64 {
        1.0 / (255.0 * self.std[channel])
    }

    /// `-mean / std` of a channel: what is added after scaling.
    #[must_use]
    pub fn bias(&self, channel: usize) -> f64 {
        -self.mean[channel] / self.std[channel]
    }
}

/// Checks that there is a finite mean and a finite `std`, not zero, for each channel, and that f32 holds what is made of them.
///
/// # Errors
/// [`LayoutError::ChannelCount`] or [`LayoutError::BadParameter`].
pub(super) fn check_affine(mean: &[f64], std: &[f64], channels: usize) -> Result<(), LayoutError> {
    for (what, values) in [("mean", mean), ("std", std)] {
        if values.len() != channels {
            return Err(LayoutError::ChannelCount { what, got: values.len(), channels });
        }
        let bad = values.iter().enumerate().find(|&(_, value)| !value.is_finite());
        if let Some((channel, &value)) = bad {
            return Err(LayoutError::BadParameter { what, channel, value, reason: "it must be finite" });
        }
    }
    for (channel, (&value, mean)) in std.iter().zip(mean).enumerate() {
        let reason = match value {
            0.0 => "it must not be zero",
            // 1 / (255 std) must be a normal f32, and so must mean / std.
            v if v.abs() < 1e-30 || (mean / v).abs() > 1e30 => "it is too small for f32",
            v if v.abs() > 1e30 => "it is too large for f32",
            _ => continue,
        };
        return Err(LayoutError::BadParameter { what: "std", channel, value, reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Element;

    fn rgb() -> Field {
        Field::image("image", 4, 4, 3).expect("a valid field")
    }

    #[test]
    fn presets_fit_their_images() {
        Normalize::imagenet().validate(&rgb()).expect("ImageNet fits RGB");
        Normalize::unit(1).validate(&Field::image("grey", 4, 4, 1).expect("valid")).expect("unit fits grey");
        assert_eq!(Normalize::unit(3).scale(0) * 255.0, 1.0);
    }

    #[test]
    fn bad_parameters_are_named() {
        let zero = Normalize::new(&[0.0; 3], &[1.0, 0.0, 1.0]).validate(&rgb());
        assert!(matches!(zero, Err(LayoutError::BadParameter { what: "std", channel: 1, .. })));
        let nan = Normalize::new(&[0.0, f64::NAN, 0.0], &[1.0; 3]).validate(&rgb());
        assert!(matches!(nan, Err(LayoutError::BadParameter { what: "mean", channel: 1, .. })));
        let empty = Normalize::new(&[], &[]).validate(&rgb());
        assert!(matches!(empty, Err(LayoutError::ChannelCount { got: 0, channels: 3, .. })));
        let short = Normalize::new(&[0.0; 3], &[1.0]).validate(&rgb());
        assert!(matches!(short, Err(LayoutError::ChannelCount { what: "std", got: 1, .. })));
        let tiny = Normalize::new(&[0.0; 3], &[1e-40; 3]).validate(&rgb());
        assert!(matches!(tiny, Err(LayoutError::BadParameter { what: "std", channel: 0, .. })));
        let bytes = Field::array("bytes", Element::U8, &[7]).expect("valid");
        assert!(matches!(Normalize::unit(1).validate(&bytes), Err(LayoutError::NotAnImage { .. })));
    }
}
