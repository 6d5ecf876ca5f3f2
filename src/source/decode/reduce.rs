//! At which fraction of its size a JPEG is decoded, and how much of it.

use std::ops::Range;

use image::metadata::Orientation;

use super::{Fit, pixels};

/// What a decoder is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// 1, 2, 4 or 8.
    pub(super) divisor: u32,
    /// The columns and rows of the image that count. What is delivered of the others may be anything.
    pub(super) columns: Range<u32>,
    pub(super) rows: Range<u32>,
}

impl Wanted {
    /// All of an image.
    pub(super) fn whole(divisor: u32, (width, height): (u32, u32)) -> Self {
        Self { divisor, columns: 0..width, rows: 0..height }
    }

    /// What becomes a sample, and as far around it as the resampler and upsampled chroma reach.
    pub(super) fn part(
        divisor: u32,
        (width, height): (u32, u32),
        orientation: Orientation,
        sample: (u32, u32),
        fit: Fit,
    ) -> Self {
        let whole = Self::whole(divisor, (width, height));
        let (across, down) = if pixels::swaps(orientation) { (sample.1, sample.0) } else { sample };
        let scale = (f64::from(width) / f64::from(across)).min(f64::from(height) / f64::from(down));
        let middle = |side: u32, samples: u32| {
            // The triangle is as wide as two of the sample's pixels, and eight of the fraction's are more than any upsampling needs.
            let half = f64::from(samples) * scale / 2.0 + 2.0 * scale + f64::from(8 * divisor);
            let center = f64::from(side) / 2.0;
            (center - half).max(0.0) as u32..((center + half).ceil() as u32).min(side)
        };
        match fit {
            Fit::Stretch => whole,
            Fit::Crop => Self { columns: middle(width, across), rows: middle(height, down), ..whole },
        }
    }
}

/// How many times larger than the sample a picture decoded at a fraction still is, each way.
const MARGIN: u32 = 2;

/// The largest of 1, 2, 4 and 8 by which the image can be divided and still have [`MARGIN`] times the sample's width and
/// height once it is upright.
pub(super) fn divisor((width, height): (u32, u32), orientation: Orientation, sample: (u32, u32)) -> u32 {
    let (width, height) = if pixels::swaps(orientation) { (height, width) } else { (width, height) };
    let fits =
        |side: u32, sample: u32, divisor: u32| u64::from(side) >= u64::from(sample) * u64::from(MARGIN * divisor);
    [8, 4, 2]
        .into_iter()
        .find(|&divisor| fits(width, sample.0, divisor) && fits(height, sample.1, divisor))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cropped_counts_and_a_little_around_it() {
        let part = |size, orientation, sample, fit| Wanted::part(4, size, orientation, sample, fit);
        let photo = part((4032, 3024), Orientation::NoTransforms, (224, 224), Fit::Crop);
        // The middle 3024 columns, and 27 + 32 on either side.
        assert_eq!((photo.columns, photo.rows), (445..3587, 0..3024));
        let turned = part((4032, 3024), Orientation::Rotate90, (100, 400), Fit::Crop);
        // The middle 1008 rows, and 20 + 32 on either side.
        assert_eq!((turned.columns, turned.rows), (0..4032, 955..2069));
        assert_eq!(part((4032, 3024), Orientation::Rotate180, (9, 9), Fit::Stretch), Wanted::whole(4, (4032, 3024)));
        assert_eq!(part((30, 20), Orientation::NoTransforms, (30, 20), Fit::Crop), Wanted::whole(4, (30, 20)));
    }

    #[test]
    fn what_is_decoded_is_at_least_twice_the_sample_each_way() {
        let upright = |size, sample| divisor(size, Orientation::NoTransforms, sample);
        assert_eq!(upright((4032, 3024), (224, 224)), 4);
        assert_eq!(upright((500, 375), (224, 224)), 1);
        assert_eq!(upright((3583, 9000), (224, 224)), 4);
        assert_eq!(upright((3584, 9000), (224, 224)), 8);
        assert_eq!(upright((896, 895), (224, 224)), 1);
        assert_eq!(upright((896, 896), (224, 224)), 2);
        assert_eq!(upright((900, 2000), (450, 100)), 1);
        assert_eq!(divisor((2000, 400), Orientation::Rotate90, (100, 500)), 2, "as it will lie");
        assert_eq!(divisor((2000, 400), Orientation::Rotate180, (100, 500)), 1);
    }
}
