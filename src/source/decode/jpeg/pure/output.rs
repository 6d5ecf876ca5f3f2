//! Pixels from the samples of all components.

use std::ops::Range;

use super::color;
use super::frame::{Geometry, Plane};
use super::upsample::Upsampling;
use crate::source::decode::jpeg::header::ColorSpace;

/// Rows being upsampled, one for each component.
#[derive(Default)]
pub(super) struct Rows {
    rows: [Vec<u8>; 4],
    sums: Vec<u16>,
}

/// Writes these rows of grey, RGB or CMYK pixels.
pub(super) fn pixels(
    planes: &[Plane],
    geometry: Geometry,
    wanted: Range<usize>,
    color_space: ColorSpace,
    rows: &mut Rows,
    out: &mut [u8],
) {
    let channels = match color_space {
        ColorSpace::Grey => 1,
        ColorSpace::YCbCr | ColorSpace::Rgb => 3,
        ColorSpace::Cmyk | ColorSpace::Ycck => 4,
    };
    let mut upsampling = [Upsampling::None; 4];
    for (upsampling, plane) in upsampling.iter_mut().zip(planes) {
        *upsampling = Upsampling::of(plane, geometry);
    }
    let lines = out.chunks_exact_mut(geometry.width * channels).enumerate();
    for (y, out) in lines.take(wanted.end).skip(wanted.start) {
        let Rows { rows, sums } = rows;
        let mut samples: [&[u8]; 4] = [&[]; 4];
        for (i, (plane, row)) in planes.iter().zip(rows).enumerate() {
            samples[i] = upsampling[i].row(plane, y, row, sums);
        }
        let [a, b, c, d] = samples;
        match color_space {
            ColorSpace::Grey => out.copy_from_slice(&a[..geometry.width]),
            ColorSpace::YCbCr => color::ycc_to_rgb(a, b, c, out),
            ColorSpace::Rgb => color::interleave([a, b, c], out),
            ColorSpace::Cmyk => color::interleave([a, b, c, d], out),
            ColorSpace::Ycck => color::ycck_to_cmyk([a, b, c, d], out),
        }
    }
}
