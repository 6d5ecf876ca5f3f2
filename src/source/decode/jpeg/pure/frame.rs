//! The geometry of a frame: its components' blocks and samples, at full size or scaled down.

use std::ops::Range;

use super::idct::{self, Block};
use super::idct_small;
use crate::source::decode::jpeg::header::Frame;
use crate::source::decode::jpeg::refusal::Refusal;
use crate::source::decode::jpeg::tables::{Quantization, ZIGZAG};
use crate::source::decode::reduce::Wanted;

/// One component while it is decoded.
#[derive(Default)]
pub(super) struct Plane {
    /// Sampling factors.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Blocks of the image.
    pub(super) blocks_wide: usize,
    pub(super) blocks_high: usize,
    /// Blocks in memory: whole MCUs.
    pub(super) stride_blocks: usize,
    pub(super) rows_blocks: usize,
    /// Samples that become of a block's side: 8, 4, 2 or 1.
    pub(super) side: usize,
    /// Samples of the image.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Blocks that are transformed.
    columns: Range<usize>,
    rows: Range<usize>,
    /// The quantisation table of its first scan.
    pub(super) quantization: Option<Quantization>,
    /// Samples in rows of `stride`.
    pub(super) samples: Vec<u8>,
    /// Coefficients of 64 a block, in zigzag order; empty where blocks are transformed as they are decoded.
    pub(super) coefficients: Vec<i16>,
}

/// Sizes that all components share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Geometry {
    pub(super) max_h: usize,
    pub(super) max_v: usize,
    pub(super) mcus_wide: usize,
    pub(super) mcus_high: usize,
    /// Samples that become of a block's side where nothing is subsampled.
    pub(super) side: usize,
    /// Pixels of a row of the result.
    pub(super) width: usize,
}

impl Geometry {
    pub(super) fn of(frame: &Frame, divisor: usize) -> Self {
        let most = |factor: fn(u8, u8) -> u8| {
            let factors = frame.components().iter().map(|component| factor(component.h, component.v));
            usize::from(factors.max().unwrap_or(1))
        };
        let (max_h, max_v) = (most(|h, _| h), most(|_, v| v));
        let (width, height) = (usize::from(frame.width), usize::from(frame.height));
        Self {
            max_h,
            max_v,
            mcus_wide: width.div_ceil(8 * max_h),
            mcus_high: height.div_ceil(8 * max_v),
            side: 8 / divisor,
            width: width.div_ceil(divisor),
        }
    }
}

impl Plane {
    /// Lays out component `index` of a frame.
    ///
    /// # Errors
    /// Sampling factors that no upsampling is known for.
    pub(super) fn lay_out(&mut self, frame: &Frame, index: usize, geometry: Geometry) -> Result<(), Refusal> {
        let component = frame.components()[index];
        let Geometry { max_h, max_v, side, .. } = geometry;
        (self.h, self.v) = (usize::from(component.h), usize::from(component.v));
        let (width, height) = (usize::from(frame.width) * self.h, usize::from(frame.height) * self.v);
        (self.blocks_wide, self.blocks_high) = (width.div_ceil(8 * max_h), height.div_ceil(8 * max_v));
        (self.stride_blocks, self.rows_blocks) = (geometry.mcus_wide * self.h, geometry.mcus_high * self.v);
        // Subsampled components are scaled down less rather than upsampled later.
        self.side = side;
        while self.side < 8
            && (max_h * side).is_multiple_of(self.h * self.side * 2)
            && (max_v * side).is_multiple_of(self.v * self.side * 2)
        {
            self.side *= 2;
        }
        (self.width, self.height) = ((width * self.side).div_ceil(8 * max_h), (height * self.side).div_ceil(8 * max_v));
        self.quantization = None;
        let (right, down) = (self.h * self.side / side, self.v * self.side / side);
        if max_h.is_multiple_of(right) && max_v.is_multiple_of(down) {
            Ok(())
        } else {
            Err(Refusal::FractionalSampling)
        }
    }

    /// Chooses the blocks that are transformed.
    pub(super) fn want(&mut self, wanted: &Wanted, geometry: Geometry) {
        let blocks = |range: &Range<u32>, most: usize, factor: usize| {
            let block = 8 * most;
            range.start as usize * factor / block..(range.end as usize * factor).div_ceil(block)
        };
        self.columns = blocks(&wanted.columns, geometry.max_h, self.h);
        self.rows = blocks(&wanted.rows, geometry.max_v, self.v);
    }

    /// Whether a block is transformed.
    #[inline(always)]
    pub(super) fn wants(&self, x: usize, y: usize) -> bool {
        self.columns.contains(&x) && self.rows.contains(&y)
    }

    /// Samples in a row of memory.
    pub(super) fn stride(&self) -> usize {
        self.stride_blocks * self.side
    }

    /// Samples in memory.
    pub(super) fn sample_count(&self) -> usize {
        self.stride() * self.rows_blocks * self.side
    }

    /// Blocks in memory.
    pub(super) fn block_count(&self) -> usize {
        self.stride_blocks * self.rows_blocks
    }

    /// Puts the samples of a dequantised block where they belong. Beyond `last` (in zigzag order) all is zero.
    #[inline]
    pub(super) fn put(&mut self, x: usize, y: usize, block: &Block, last: usize) {
        let stride = self.stride();
        let start = y * self.side * stride + x * self.side;
        let out = &mut self.samples[start..];
        if last == 0 || self.side == 1 {
            let flat = idct::flat(block[0]);
            match self.side {
                8 => fill::<8>(flat, out, stride),
                4 => fill::<4>(flat, out, stride),
                2 => fill::<2>(flat, out, stride),
                _ => fill::<1>(flat, out, stride),
            }
            return;
        }
        match self.side {
            8 => idct::full(block, out, stride),
            4 => idct_small::half(block, out, stride),
            _ => idct_small::quarter(block, out, stride),
        }
    }

    /// Transforms the coefficients of the blocks that are wanted.
    pub(super) fn transform(&mut self) {
        let Some(table) = self.quantization else { return };
        let (columns, rows) = (self.columns.clone(), self.rows.clone());
        let coefficients = std::mem::take(&mut self.coefficients);
        let blocks = coefficients.as_chunks::<64>().0;
        for (y, row) in blocks.chunks_exact(self.stride_blocks).enumerate().take(rows.end).skip(rows.start) {
            for (x, zigzag) in row.iter().enumerate().take(columns.end).skip(columns.start) {
                let last = zigzag.iter().rposition(|&value| value != 0).unwrap_or(0);
                let mut block = [0; 64];
                for k in 0..=last {
                    block[usize::from(ZIGZAG[k])] = zigzag[k].wrapping_mul(table[k] as i16);
                }
                self.put(x, y, &block, last);
            }
        }
        self.coefficients = coefficients;
    }
}

/// A square of equal samples.
#[inline(always)]
fn fill<const SIDE: usize>(sample: u8, out: &mut [u8], stride: usize) {
    for line in 0..SIDE {
        if let Some(to) = out.get_mut(line * stride..).and_then(<[u8]>::first_chunk_mut::<SIDE>) {
            *to = [sample; SIDE];
        }
    }
}
