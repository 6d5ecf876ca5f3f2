//! From a frame of any pixel format to a network's input in one step: geometry, colour, scale and mean, element type and layout.
//!
//! ```text
//! stored pixels -> upright -> crop -> resize -> centre crop -> flip      each pixel of the tensor is a weighted sum of stored ones
//!                -> red, green, blue -> jitter -> channel order          one linear map
//!                -> cut to 0..=255 -> (x / 255 - mean) / std -> element type
//! ```
//!
//! A [`Pipeline`] is the recipe; each sample's own [`Geometry`] is computed on the CPU from the recipe and the sample's seed, travels to
//! the device as a field of the batch, and is what the kernels read.

mod color;
mod draws;
mod dtype;
mod geometry;
mod mask;
mod oracle;
mod place;
mod plan;
mod portable;
mod presets;
mod recipe;

pub use dtype::{Quantization, TensorType};
pub use geometry::Geometry;
pub use mask::Mask;
pub use oracle::{PipelineOracle, PipelineValue};
pub use plan::GEOMETRY;
pub(crate) use plan::PipelinePlan;
pub use recipe::{Anchor, ChannelOrder, Crop, Filter, Flip, Jitter, Orientation, Resize};

use super::normalize::{TensorLayout, check_affine};
use crate::error::LayoutError;
use crate::layout::{FrameLayout, SampleLayout};

/// The longest side of a frame or a tensor, in pixels: positions are counted in halves of the product of two.
pub const GEOMETRY_LIMIT: u32 = 32_767;

/// How frames become a network's input: see the fields, in the order in which they are applied.
///
/// Made with [`new`](Self::new) or a preset, and changed with update syntax, `Pipeline { flip, ..Pipeline::imagenet() }`, which later fields
/// leave valid, or the `with_` functions.
///
/// ```
/// use gpufeed::{Crop, Flip, Pipeline, Resize, TensorType};
///
/// // torchvision's RandomResizedCrop(224) and RandomHorizontalFlip(), normalised as ImageNet.
/// let train = Pipeline::imagenet_train(224);
/// assert_eq!(train.crop, Crop::RANDOM);
/// // A letterbox for a detector, in f16.
/// let detect = Pipeline::yolo(640).with_dtype(TensorType::F16);
/// assert!(matches!(detect.resize, Resize::Letterbox { height: 640, .. }));
/// assert_eq!(detect.flip, Flip::default());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// How the stored frame is turned.
    pub orientation: Orientation,
    /// What is cut out of it.
    pub crop: Crop,
    /// What size that becomes.
    pub resize: Resize,
    /// Rows and columns around the middle that are left of the resized image, or filled up to; `None` for all of it.
    pub center_crop: Option<(usize, usize)>,
    /// How the resized image's pixels are made.
    pub filter: Filter,
    /// Whether the filter is widened where the image shrinks, so that every pixel counts, as Pillow and torchvision's `antialias=True`
    /// do. Without, pixels between the taps are not seen, as in OpenCV's `INTER_LINEAR`.
    pub antialias: bool,
    /// How often samples are mirrored.
    pub flip: Flip,
    /// Random changes of colour.
    pub jitter: Jitter,
    /// The tensor's channels.
    pub channels: ChannelOrder,
    /// What is around the image, a value from 0 to 255 for each channel of the tensor; of a tensor of one channel the first counts.
    pub fill: [f64; 3],
    /// Mean of each channel of the tensor, in units of the pixel range [0, 1].
    pub mean: Vec<f64>,
    /// Standard deviation of each channel, in the same units; not zero.
    pub std: Vec<f64>,
    /// Order of the tensor's dimensions.
    pub layout: TensorLayout,
    /// Element type of the tensor.
    pub dtype: TensorType,
    /// Further fields that share the image's geometry.
    pub masks: Vec<Mask>,
}

impl Pipeline {
    /// Frames as they are: red, green and blue from 0 to 1, f32, NCHW. An antialiased bilinear filter where a size is asked for.
    #[must_use]
    pub fn new() -> Self {
        Self {
            orientation: Orientation::default(),
            crop: Crop::default(),
            resize: Resize::default(),
            center_crop: None,
            filter: Filter::default(),
            antialias: true,
            flip: Flip::default(),
            jitter: Jitter::NONE,
            channels: ChannelOrder::default(),
            fill: [0.0; 3],
            mean: vec![0.0; 3],
            std: vec![1.0; 3],
            layout: TensorLayout::default(),
            dtype: TensorType::default(),
            masks: Vec::new(),
        }
    }

    /// The same with another crop.
    #[must_use]
    pub const fn with_crop(mut self, crop: Crop) -> Self {
        self.crop = crop;
        self
    }

    /// The same with another size.
    #[must_use]
    pub const fn with_resize(mut self, resize: Resize) -> Self {
        self.resize = resize;
        self
    }

    /// The same with another filter, antialiased or not.
    #[must_use]
    pub const fn with_filter(mut self, filter: Filter, antialias: bool) -> Self {
        self.filter = filter;
        self.antialias = antialias;
        self
    }

    /// The same with other channels, and the mean and standard deviation of each.
    #[must_use]
    pub fn with_channels(mut self, channels: ChannelOrder, mean: &[f64], std: &[f64]) -> Self {
        self.channels = channels;
        self.mean = mean.to_vec();
        self.std = std.to_vec();
        self
    }

    /// The same with another order of dimensions.
    #[must_use]
    pub const fn with_layout(mut self, layout: TensorLayout) -> Self {
        self.layout = layout;
        self
    }

    /// The same with another element type.
    #[must_use]
    pub const fn with_dtype(mut self, dtype: TensorType) -> Self {
        self.dtype = dtype;
        self
    }

    /// What it makes of the frame with this seed: for a sample of a loader [`SampleContext::random_seed`](crate::SampleContext), for
    /// tests any number.
    ///
    /// # Errors
    /// [`LayoutError::Pipeline`] where a step does not fit the frame.
    pub fn geometry(&self, frame: &FrameLayout, seed: u64) -> Result<Geometry, LayoutError> {
        place::geometry(self, frame, seed)
    }

    /// Height and width of the tensor that frames of this layout become.
    ///
    /// # Errors
    /// [`LayoutError::Pipeline`] where a step does not fit the frame, or sizes differ from sample to sample.
    pub fn tensor_size(&self, frame: &FrameLayout) -> Result<(usize, usize), LayoutError> {
        place::tensor_size(self, frame).map(|[width, height]| (height as usize, width as usize))
    }

    /// Checks that these parameters can be used, and fit the samples' first field.
    ///
    /// # Errors
    /// [`LayoutError::NotAFrame`], [`LayoutError::Pipeline`], [`LayoutError::ChannelCount`] or [`LayoutError::BadParameter`].
    pub fn validate(&self, sample: &SampleLayout) -> Result<(), LayoutError> {
        let field = sample.first();
        let frame = field.as_frame().ok_or_else(|| LayoutError::NotAFrame { layout: field.to_string() })?;
        check_affine(&self.mean, &self.std, self.channels.count())?;
        self.check_numbers()?;
        self.tensor_size(&frame)?;
        self.check_masks(sample, &frame)
    }

    /// Ranges that are upside down, probabilities that are none, and values that are not finite.
    fn check_numbers(&self) -> Result<(), LayoutError> {
        let refused = |step, reason: String| Err(LayoutError::Pipeline { step, reason });
        let range = |step, (low, high): (f64, f64), least: f64, most: f64| {
            if low >= least && low <= high && high <= most {
                return Ok(());
            }
            refused(step, format!("{low} to {high} is not a range within {least} to {most}"))
        };
        if let Crop::Random { scale, ratio } = self.crop {
            range("crop", scale, f64::MIN_POSITIVE, 1.0)?;
            range("crop", ratio, 1e-3, 1e3)?;
        }
        for probability in [self.flip.horizontal, self.flip.vertical] {
            range("flip", (probability, probability), 0.0, 1.0)?;
        }
        for factors in [self.jitter.brightness, self.jitter.contrast, self.jitter.saturation] {
            range("jitter", factors, 0.0, 1e3)?;
        }
        range("jitter", self.jitter.hue, -0.5, 0.5)?;
        for fill in self.fill {
            range("fill", (fill, fill), 0.0, 255.0)?;
        }
        match self.dtype.quantization() {
            Some(Quantization { scale, .. }) if !(1e-30..=1e30).contains(&scale) => {
                refused("dtype", format!("a step of {scale} is not one of 1e-30 to 1e30"))
            }
            Some(Quantization { zero_point, .. }) => {
                let (least, most) = self.dtype.range();
                if (least..=most).contains(&zero_point) {
                    return Ok(());
                }
                refused("dtype", format!("a zero point of {zero_point} is not one of {least} to {most}"))
            }
            None => Ok(()),
        }
    }

    /// What a value from 0 to 255 of a channel is multiplied by, and what is added then, before it is rounded to the element type.
    pub(crate) fn affine(&self, channel: usize) -> (f64, f64) {
        let step = self.dtype.quantization().map_or(1.0, |quantization| quantization.scale);
        let std = self.std[channel] * step;
        (1.0 / (255.0 * std), -self.mean[channel] / std)
    }
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod stored_tests;
#[cfg(test)]
mod tests;
