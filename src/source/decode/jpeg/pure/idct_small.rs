//! The inverse DCT to 4x4 and 2x2 samples, to the bit as libjpeg's. One sample is the block's mean.

use super::idct::{Block, sample};

const CONST_BITS: u32 = 13;
const PASS1_BITS: u32 = 2;

#[inline(always)]
fn descale(value: i32, bits: u32) -> i32 {
    // Damaged data may overflow; it wraps.
    (value.wrapping_add(1 << (bits - 1)) >> bits).clamp(-32768, 32767)
}

/// Four values of eight coefficients, of which the fifth does not count.
#[inline(always)]
fn four(x: [i32; 8], bits: u32) -> [i32; 4] {
    let t0 = x[0] << (CONST_BITS + 1);
    let t2 = x[2] * 15137 - x[6] * 6270;
    let (even0, even1) = (t0 + t2, t0 - t2);
    let odd1 = x[5] * 11893 - x[7] * 1730 - x[3] * 17799 + x[1] * 8697;
    let odd0 = x[3] * 7373 - x[7] * 4176 - x[5] * 4926 + x[1] * 20995;
    [even0.wrapping_add(odd0), even1.wrapping_add(odd1), even1.wrapping_sub(odd1), even0.wrapping_sub(odd0)]
        .map(|value| descale(value, bits))
}

/// The 4x4 samples of a block of dequantised coefficients.
pub(super) fn half(block: &Block, out: &mut [u8], stride: usize) {
    let mut columns = [[0; 8]; 4];
    for column in [0, 1, 2, 3, 5, 6, 7] {
        let values = four(std::array::from_fn(|row| i32::from(block[8 * row + column])), CONST_BITS - PASS1_BITS + 1);
        for (row, value) in columns.iter_mut().zip(values) {
            row[column] = value;
        }
    }
    for (line, row) in columns.into_iter().enumerate() {
        if let Some(to) = out.get_mut(line * stride..).and_then(<[u8]>::first_chunk_mut::<4>) {
            *to = four(row, CONST_BITS + PASS1_BITS + 3 + 1).map(sample);
        }
    }
}

/// Two values of eight coefficients, of which only the first and the odd ones count.
#[inline(always)]
fn two(x: [i32; 5], bits: u32) -> [i32; 2] {
    let [x0, x1, x3, x5, x7] = x;
    let even = x0 << (CONST_BITS + 2);
    let odd = x1 * 29692 - x3 * 10426 + x5 * 6967 - x7 * 5906;
    [descale(even.wrapping_add(odd), bits), descale(even.wrapping_sub(odd), bits)]
}

/// The 2x2 samples of a block of dequantised coefficients.
pub(super) fn quarter(block: &Block, out: &mut [u8], stride: usize) {
    const USED: [usize; 5] = [0, 1, 3, 5, 7];
    let mut rows = [[0; 5]; 2];
    for (at, column) in USED.into_iter().enumerate() {
        let values = two(USED.map(|row| i32::from(block[8 * row + column])), CONST_BITS - PASS1_BITS + 2);
        (rows[0][at], rows[1][at]) = (values[0], values[1]);
    }
    for (line, row) in rows.into_iter().enumerate() {
        if let Some(to) = out.get_mut(line * stride..).and_then(<[u8]>::first_chunk_mut::<2>) {
            *to = two(row, CONST_BITS + PASS1_BITS + 3 + 2).map(sample);
        }
    }
}
