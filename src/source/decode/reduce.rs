//! At which fraction of its size a JPEG is decoded.

use image::metadata::Orientation;

use super::pixels;

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
