//! The inverse DCT in integers, to the bit as libjpeg's "slow" one.

/// A block's coefficients or samples, row by row.
pub(super) type Block = [i16; 64];

const CONST_BITS: u32 = 13;
const PASS1_BITS: u32 = 2;

/// Fixed-point constants of [`CONST_BITS`] bits.
const F_0_298631336: i32 = 2446;
const F_0_390180644: i32 = 3196;
const F_0_541196100: i32 = 4433;
const F_0_765366865: i32 = 6270;
const F_0_899976223: i32 = 7373;
const F_1_175875602: i32 = 9633;
const F_1_501321110: i32 = 12299;
const F_1_847759065: i32 = 15137;
const F_1_961570560: i32 = 16069;
const F_2_053119869: i32 = 16819;
const F_2_562915447: i32 = 20995;
const F_3_072711026: i32 = 25172;

/// Eight values, one of each column or row.
pub(super) type Lanes = [i16; 8];

/// A one-dimensional transform of eight lanes, descaled by `SHIFT` bits. Written as loops over lanes, which compilers turn into
/// vector instructions.
#[inline(always)]
fn transform<const SHIFT: u32>(x: &[Lanes; 8]) -> [Lanes; 8] {
    let mut out = [[0; 8]; 8];
    for i in 0..8 {
        let v = |row: usize| i32::from(x[row][i]);
        // Sums wrap where damaged data has too large coefficients, as those of libjpeg-turbo's vector instructions do.
        let sum = |a: usize, b: usize| i32::from(x[a][i].wrapping_add(x[b][i]));
        // Even part.
        let t2 = v(2) * F_0_541196100 + v(6) * (F_0_541196100 - F_1_847759065);
        let t3 = v(2) * (F_0_541196100 + F_0_765366865) + v(6) * F_0_541196100;
        let t0 = sum(0, 4) << CONST_BITS;
        let t1 = i32::from(x[0][i].wrapping_sub(x[4][i])) << CONST_BITS;
        let even = [t0 + t3, t1 + t2, t1 - t2, t0 - t3];
        // Odd part.
        let z3 = sum(7, 3) * (F_1_175875602 - F_1_961570560) + sum(5, 1) * F_1_175875602;
        let z4 = sum(7, 3) * F_1_175875602 + sum(5, 1) * (F_1_175875602 - F_0_390180644);
        let odd = [
            v(1) * (F_1_501321110 - F_0_899976223) - v(7) * F_0_899976223 + z4,
            v(3) * (F_3_072711026 - F_2_562915447) - v(5) * F_2_562915447 + z3,
            v(5) * (F_2_053119869 - F_2_562915447) - v(3) * F_2_562915447 + z4,
            v(7) * (F_0_298631336 - F_0_899976223) - v(1) * F_0_899976223 + z3,
        ];
        // Damaged data may overflow; it wraps.
        let descale = |value: i32| (value.wrapping_add(1 << (SHIFT - 1)) >> SHIFT).clamp(-32768, 32767) as i16;
        for row in 0..4 {
            out[row][i] = descale(even[row].wrapping_add(odd[row]));
            out[7 - row][i] = descale(even[row].wrapping_sub(odd[row]));
        }
    }
    out
}

/// Rows become columns.
#[inline(always)]
fn transpose(x: &[Lanes; 8]) -> [Lanes; 8] {
    let mut out = [[0; 8]; 8];
    for row in 0..8 {
        for i in 0..8 {
            out[row][i] = x[i][row];
        }
    }
    out
}

/// A sample from what the second pass gives.
#[inline(always)]
pub(super) fn sample(value: i32) -> u8 {
    (value + 128).clamp(0, 255) as u8
}

/// A block's rows.
#[inline(always)]
pub(super) fn rows(block: &Block) -> &[Lanes; 8] {
    block.as_chunks::<8>().0.try_into().unwrap_or(&[[0; 8]; 8])
}

/// The 8x8 samples of a block of dequantised coefficients, into the plane at `out`.
pub(super) fn full(block: &Block, out: &mut [u8], stride: usize) {
    let columns = transpose(&transform::<{ CONST_BITS - PASS1_BITS }>(rows(block)));
    let samples = transpose(&transform::<{ CONST_BITS + PASS1_BITS + 3 }>(&columns));
    for (line, row) in samples.iter().enumerate() {
        if let Some(to) = out.get_mut(line * stride..).and_then(<[u8]>::first_chunk_mut::<8>) {
            for (to, &value) in to.iter_mut().zip(row) {
                *to = sample(i32::from(value));
            }
        }
    }
}

/// The sample that a block with only a DC coefficient is made of, at every size.
pub(super) fn flat(dc: i16) -> u8 {
    sample((i32::from(dc) + 4) >> 3)
}
