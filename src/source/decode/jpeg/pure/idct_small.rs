//! The inverse DCT to 4x4 and 2x2 samples, to the bit as libjpeg's. One sample is the block's mean.

use super::idct::{Block, Lanes, rows, sample};

const CONST_BITS: u32 = 13;
const PASS1_BITS: u32 = 2;

#[inline(always)]
fn descale<const BITS: u32>(value: i32) -> i16 {
    // Damaged data may overflow; it wraps.
    (value.wrapping_add(1 << (BITS - 1)) >> BITS).clamp(-32768, 32767) as i16
}

/// Four values of eight coefficients, of which the fifth does not count, for each lane. Written as loops over lanes, which compilers turn
/// into vector instructions.
#[inline(always)]
fn four<const LANES: usize, const BITS: u32>(x: [&[i16; LANES]; 8]) -> [[i16; LANES]; 4] {
    let mut out = [[0; LANES]; 4];
    for i in 0..LANES {
        let v = |at: usize| i32::from(x[at][i]);
        let t0 = v(0) << (CONST_BITS + 1);
        let t2 = v(2) * 15137 - v(6) * 6270;
        let (even0, even1) = (t0 + t2, t0 - t2);
        let odd1 = v(5) * 11893 - v(7) * 1730 - v(3) * 17799 + v(1) * 8697;
        let odd0 = v(3) * 7373 - v(7) * 4176 - v(5) * 4926 + v(1) * 20995;
        out[0][i] = descale::<BITS>(even0.wrapping_add(odd0));
        out[1][i] = descale::<BITS>(even1.wrapping_add(odd1));
        out[2][i] = descale::<BITS>(even1.wrapping_sub(odd1));
        out[3][i] = descale::<BITS>(even0.wrapping_sub(odd0));
    }
    out
}

/// The 4x4 samples of a block of dequantised coefficients.
pub(super) fn half(block: &Block, out: &mut [u8], stride: usize) {
    let lines = four::<8, { CONST_BITS - PASS1_BITS + 1 }>(rows(block).each_ref());
    let columns: [[i16; 4]; 8] = std::array::from_fn(|column| lines.map(|line| line[column]));
    let columns = four::<4, { CONST_BITS + PASS1_BITS + 3 + 1 }>(columns.each_ref());
    for line in 0..4 {
        if let Some(to) = out.get_mut(line * stride..).and_then(<[u8]>::first_chunk_mut::<4>) {
            *to = columns.map(|column| sample(i32::from(column[line])));
        }
    }
}

/// The sum and the difference of the even and the odd part of eight coefficients, of which only the first and the odd ones count.
#[inline(always)]
fn two<const BITS: u32>([x0, x1, x3, x5, x7]: [i16; 5]) -> [i16; 2] {
    let even = i32::from(x0) << (CONST_BITS + 2);
    let odd = i32::from(x1) * 29692 - i32::from(x3) * 10426 + i32::from(x5) * 6967 - i32::from(x7) * 5906;
    [descale::<BITS>(even.wrapping_add(odd)), descale::<BITS>(even.wrapping_sub(odd))]
}

/// The 2x2 samples of a block of dequantised coefficients.
pub(super) fn quarter(block: &Block, out: &mut [u8], stride: usize) {
    let x: &[Lanes; 8] = rows(block);
    let mut lines: [Lanes; 2] = [[0; 8]; 2];
    for i in 0..8 {
        let values = two::<{ CONST_BITS - PASS1_BITS + 2 }>([x[0][i], x[1][i], x[3][i], x[5][i], x[7][i]]);
        (lines[0][i], lines[1][i]) = (values[0], values[1]);
    }
    for (line, row) in lines.into_iter().enumerate() {
        if let Some(to) = out.get_mut(line * stride..).and_then(<[u8]>::first_chunk_mut::<2>) {
            let values = two::<{ CONST_BITS + PASS1_BITS + 3 + 2 }>([row[0], row[1], row[3], row[5], row[7]]);
            *to = values.map(|value| sample(i32::from(value)));
        }
    }
}
