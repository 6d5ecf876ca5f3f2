//! The CPU oracle: what a tensor must hold, in f64, and how far a kernel may be from it.

use super::normalize::{FloatType, Normalize, TensorLayout};
use crate::error::LayoutError;
use crate::layout::ImageLayout;

/// Error of an f32 kernel in units of 2^-23 of `|x * scale| + |bias|`.
///
/// `scale` and `bias` are each rounded to f32 once (2^-24 relative), and so are the product and the sum:
/// together at most 3 * 2^-24 of `|x * scale| + |bias|`, so 2 leaves a margin for a driver's own contraction.
pub const F32_ERROR_ULPS: f64 = 2.0;

/// The normalised values of HWC images, in the order of the tensor, in f64.
///
/// # Errors
/// [`LayoutError::Length`] where `images` is not a whole number of images, and what [`Normalize::validate`] reports.
pub fn expected(normalize: &Normalize, image: ImageLayout, images: &[u8]) -> Result<Vec<f64>, LayoutError> {
    let mut values = Vec::with_capacity(images.len());
    visit(normalize, image, images, |channel, pixel| {
        values.push(f64::from(pixel) * normalize.scale(channel) + normalize.bias(channel));
    })?;
    Ok(values)
}

/// Calls `each(channel, pixel)` in the order of the tensor's elements.
fn visit(
    normalize: &Normalize,
    image: ImageLayout,
    images: &[u8],
    mut each: impl FnMut(usize, u8),
) -> Result<(), LayoutError> {
    let (plane, channels) = (image.plane(), image.channels());
    normalize.validate_for(image)?;
    let bytes = plane * channels;
    if images.is_empty() || !images.len().is_multiple_of(bytes) {
        let expected = images.len().div_ceil(bytes).max(1) * bytes;
        return Err(LayoutError::Length { what: "a batch of images", got: images.len(), expected });
    }
    for one in images.chunks_exact(bytes) {
        match normalize.layout {
            TensorLayout::Nhwc => {
                one.chunks_exact(channels).for_each(|pixel| {
                    pixel.iter().enumerate().for_each(|(channel, &value)| each(channel, value));
                });
            }
            TensorLayout::Nchw => {
                for channel in 0..channels {
                    one.iter().skip(channel).step_by(channels).for_each(|&value| each(channel, value));
                }
            }
        }
    }
    Ok(())
}

/// How far a delivered value may be from the oracle's value for a pixel of this channel.
///
/// f32: [`F32_ERROR_ULPS`] `* 2^-23 * (|x * scale| + |bias|)`. f16 adds half a unit in the last place of the result,
/// 2^-11 relative, with a floor of 2^-25 in the subnormal range.
#[must_use]
pub fn error_bound(normalize: &Normalize, channel: usize, pixel: u8) -> f64 {
    let product = f64::from(pixel) * normalize.scale(channel);
    let f32_bound = F32_ERROR_ULPS * 2f64.powi(-23) * (product.abs() + normalize.bias(channel).abs());
    match normalize.dtype {
        FloatType::F32 => f32_bound,
        FloatType::F16 => {
            let value = (product + normalize.bias(channel)).abs();
            f32_bound + ((value + f32_bound) * 2f64.powi(-11)).max(2f64.powi(-25))
        }
    }
}
