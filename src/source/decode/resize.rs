//! Resampling to the size of a sample.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use super::{Fit, Target};
use crate::error::SourceError;

/// The part of an image that becomes the sample, in pixels, which need not be whole.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// Resamples `pixels`, `size` of them, into `out`. They show an image of `extent` pixels, of which the last ones may be cut off.
pub(super) fn resize(
    resizer: &mut Resizer,
    pixels: &[u8],
    size: (u32, u32),
    extent: (f64, f64),
    target: &Target,
    with_alpha: bool,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let pixel = match target.channels {
        1 => PixelType::U8,
        3 => PixelType::U8x3,
        _ => PixelType::U8x4,
    };
    let Part { left, top, width, height } = part(extent, target);
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
        .use_alpha(with_alpha)
        .crop(left, top, width, height);
    let from = ImageRef::new(size.0, size.1, pixels, pixel)?;
    let mut to = Image::from_slice_u8(target.width, target.height, out, pixel)?;
    Ok(resizer.resize(&from, &mut to, &options)?)
}

/// The whole image, or the largest centred part with the sample's proportions.
fn part((width, height): (f64, f64), target: &Target) -> Part {
    let whole = Part { left: 0.0, top: 0.0, width, height };
    if target.fit == Fit::Stretch {
        return whole;
    }
    let (image, sample) = (width / height, f64::from(target.width) / f64::from(target.height));
    if (image - sample).abs() < f64::EPSILON {
        whole
    } else if image >= sample {
        let kept = sample * height;
        Part { left: (width - kept) * 0.5, width: kept, ..whole }
    } else {
        let kept = width / sample;
        Part { top: (height - kept) * 0.5, height: kept, ..whole }
    }
}
