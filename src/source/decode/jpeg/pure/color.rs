//! From JPEG's colour spaces to pixels, in libjpeg's fixed-point arithmetic.

/// Pixels that are converted at once, as many as fit vector registers.
const LANES: usize = 16;

/// The upper half of a product.
#[inline(always)]
fn upper(a: i16, b: i16) -> i16 {
    ((i32::from(a) * i32::from(b)) >> 16) as i16
}

/// Red, green and blue of several pixels. libjpeg has factors of 16 fractional bits and rounds to nearest; what is more than 16 bits
/// of 1.402, 1.772 and 0.71414 is taken out, so that this is arithmetic of 16 bits.
#[inline(always)]
fn rgb(y: &[u8; LANES], cb: &[u8; LANES], cr: &[u8; LANES]) -> [[u8; LANES]; 3] {
    let mut out = [[0; LANES]; 3];
    for i in 0..LANES {
        let (y, cb, cr) = (i16::from(y[i]), i16::from(cb[i]) - 128, i16::from(cr[i]) - 128);
        let red = y + cr + ((upper(2 * cr, 26_345) + 1) >> 1);
        let green = y - cr + ((i32::from(cr) * 18_734 - i32::from(cb) * 22_554 + (1 << 15)) >> 16) as i16;
        let blue = y + 2 * cb + ((upper(2 * cb, -14_942) + 1) >> 1);
        out[0][i] = red.clamp(0, 255) as u8;
        out[1][i] = green.clamp(0, 255) as u8;
        out[2][i] = blue.clamp(0, 255) as u8;
    }
    out
}

/// Gives [`rgb`] of all pixels, [`LANES`] at once: the index of the first, and how many count.
#[inline(always)]
fn convert(y: &[u8], cb: &[u8], cr: &[u8], count: usize, mut put: impl FnMut(usize, usize, &[[u8; LANES]; 3])) {
    for start in (0..count).step_by(LANES) {
        let lanes = |row: &[u8]| {
            let row = &row[start..];
            row.first_chunk().copied().unwrap_or_else(|| {
                let mut lanes = [0; LANES];
                lanes[..row.len()].copy_from_slice(row);
                lanes
            })
        };
        put(start, LANES.min(count - start), &rgb(&lanes(y), &lanes(cb), &lanes(cr)));
    }
}

/// A row of RGB from YCbCr.
pub(super) fn ycc_to_rgb(y: &[u8], cb: &[u8], cr: &[u8], out: &mut [u8]) {
    let pixels = out.as_chunks_mut::<3>().0;
    convert(y, cb, cr, pixels.len(), |start, count, [red, green, blue]| {
        for (i, pixel) in pixels[start..start + count].iter_mut().enumerate() {
            *pixel = [red[i], green[i], blue[i]];
        }
    });
}

/// A row of interleaved pixels from as many planes.
pub(super) fn interleave<const N: usize>(planes: [&[u8]; N], out: &mut [u8]) {
    for (x, pixel) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        *pixel = planes.map(|plane| plane[x]);
    }
}

/// A row of CMYK from YCCK.
pub(super) fn ycck_to_cmyk([y, cb, cr, k]: [&[u8]; 4], out: &mut [u8]) {
    let pixels = out.as_chunks_mut::<4>().0;
    convert(y, cb, cr, pixels.len(), |start, count, [red, green, blue]| {
        for (i, pixel) in pixels[start..start + count].iter_mut().enumerate() {
            *pixel = [255 - red[i], 255 - green[i], 255 - blue[i], k[start + i]];
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_libjpegs_formula() {
        let close = |factor: f64| (factor * 65536.0 + 0.5) as i32;
        for cb in 0..=255u8 {
            for cr in 0..=255u8 {
                let y = cb ^ cr.rotate_left(3);
                let (b, r) = (i32::from(cb) - 128, i32::from(cr) - 128);
                let round = |value: i32| (i32::from(y) + ((value + (1 << 15)) >> 16)).clamp(0, 255) as u8;
                let expected =
                    [round(close(1.402) * r), round(-close(0.34414) * b - close(0.71414) * r), round(close(1.772) * b)];
                let mut pixel = [0; 3];
                ycc_to_rgb(&[y], &[cb], &[cr], &mut pixel);
                assert_eq!(pixel, expected, "{y} {cb} {cr}");
            }
        }
    }
}
