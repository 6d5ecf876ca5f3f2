//! Sample and batch layouts, and all alignment arithmetic: pure, overflow-checked, in one place.
//!
//! A batch in staging memory is its samples back to back, with no padding between them; only the end of the batch is
//! padded. Samples are u8 images in HWC order, f32 arrays, or raw bytes.

#![deny(clippy::arithmetic_side_effects, clippy::unwrap_used)]

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::LayoutError;

/// Copies between device buffers move whole words of this many bytes.
pub const COPY_ALIGN: usize = 4;
/// A worker's region starts at a multiple of this many bytes (the mapping granularity of WebGPU).
pub const REGION_ALIGN: usize = 8;
/// Buffers are padded to this many bytes, so that kernels may load and store vectors of four words.
pub const VECTOR_ALIGN: usize = 16;
/// The largest number of dimensions of one sample.
pub const MAX_RANK: usize = 5;

/// Rounds `bytes` up to a multiple of `align` (a power of two), or `None` on overflow.
#[must_use]
pub const fn align_up(bytes: usize, align: usize) -> Option<usize> {
    debug_assert!(align.is_power_of_two());
    match bytes.checked_add(align.wrapping_sub(1)) {
        Some(sum) => Some(sum & !align.wrapping_sub(1)),
        None => None,
    }
}

/// The dimensions of one sample, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims {
    rank: usize,
    dims: [usize; MAX_RANK],
}

impl Dims {
    /// Dimensions from a slice. An empty slice is a scalar sample.
    ///
    /// # Errors
    /// [`LayoutError::Rank`] above [`MAX_RANK`], [`LayoutError::Zero`] for an empty dimension,
    /// [`LayoutError::Overflow`] where the product does not fit.
    pub fn new(dims: &[usize]) -> Result<Self, LayoutError> {
        if dims.len() > MAX_RANK {
            return Err(LayoutError::Rank { rank: dims.len(), max: MAX_RANK });
        }
        if dims.contains(&0) {
            return Err(LayoutError::Zero { what: "a sample's dimension" });
        }
        dims.iter()
            .try_fold(1usize, |product, &dim| product.checked_mul(dim))
            .ok_or(LayoutError::Overflow { what: "a sample's element count" })?;
        let mut all = [1; MAX_RANK];
        all.iter_mut().zip(dims).for_each(|(slot, &dim)| *slot = dim);
        Ok(Self { rank: dims.len(), dims: all })
    }

    /// The dimensions, outermost first.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        self.dims.get(..self.rank).unwrap_or(&[])
    }

    /// The product of the dimensions.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.as_slice().iter().fold(1, |product, &dim| product.saturating_mul(dim))
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// What one sample is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SampleLayout {
    /// A u8 image in HWC order.
    Image(ImageLayout),
    /// An array of f32 in native byte order, passed through.
    F32(Dims),
    /// An array of u8, passed through.
    Bytes(Dims),
}

/// A u8 image in HWC order: `height * width * channels` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImageLayout {
    height: usize,
    width: usize,
    channels: usize,
}

impl ImageLayout {
    /// Rows.
    #[must_use]
    pub const fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Channels: 1, 3 or 4.
    #[must_use]
    pub const fn channels(&self) -> usize {
        self.channels
    }

    /// Pixels of one channel.
    #[must_use]
    pub const fn plane(&self) -> usize {
        self.height.saturating_mul(self.width)
    }
}

impl SampleLayout {
    /// A u8 image in HWC order with 1, 3 or 4 channels.
    ///
    /// # Errors
    /// [`LayoutError`] for a zero dimension, another channel count, or a size that overflows.
    pub fn image(height: usize, width: usize, channels: usize) -> Result<Self, LayoutError> {
        if !matches!(channels, 1 | 3 | 4) {
            return Err(LayoutError::Channels { channels });
        }
        Dims::new(&[height, width, channels])?;
        Ok(Self::Image(ImageLayout { height, width, channels }))
    }

    /// An f32 array of these dimensions.
    ///
    /// # Errors
    /// As [`Dims::new`].
    pub fn f32(dims: &[usize]) -> Result<Self, LayoutError> {
        let dims = Dims::new(dims)?;
        dims.elements().checked_mul(4).ok_or(LayoutError::Overflow { what: "a sample's byte count" })?;
        Ok(Self::F32(dims))
    }

    /// A u8 array of these dimensions.
    ///
    /// # Errors
    /// As [`Dims::new`].
    pub fn bytes(dims: &[usize]) -> Result<Self, LayoutError> {
        Dims::new(dims).map(Self::Bytes)
    }

    /// Bytes of one sample; never zero.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        match self {
            Self::Image(image) => image.plane().saturating_mul(image.channels),
            Self::F32(dims) => dims.elements().saturating_mul(4),
            Self::Bytes(dims) => dims.elements(),
        }
    }

    /// The image, where this is one.
    #[must_use]
    pub fn as_image(&self) -> Option<ImageLayout> {
        match self {
            Self::Image(image) => Some(*image),
            _ => None,
        }
    }
}

impl fmt::Display for SampleLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(i) => write!(f, "u8 images of {}x{}x{}", i.height, i.width, i.channels),
            Self::F32(dims) => write!(f, "f32 arrays of {dims:?}"),
            Self::Bytes(dims) => write!(f, "u8 arrays of {dims:?}"),
        }
    }
}

/// A batch of equal samples in staging memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLayout {
    sample: SampleLayout,
    batch_size: usize,
    slot_bytes: usize,
}

impl BatchLayout {
    /// The layout of batches of at most `batch_size` samples.
    ///
    /// # Errors
    /// [`LayoutError::Zero`] for an empty batch, [`LayoutError::Overflow`] where its bytes exceed `isize::MAX`.
    pub fn new(sample: SampleLayout, batch_size: usize) -> Result<Self, LayoutError> {
        if batch_size == 0 {
            return Err(LayoutError::Zero { what: "the batch size" });
        }
        let slot_bytes = sample
            .byte_len()
            .checked_mul(batch_size)
            .and_then(|payload| align_up(payload, VECTOR_ALIGN))
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or(LayoutError::Overflow { what: "the batch's byte count" })?;
        Ok(Self { sample, batch_size, slot_bytes })
    }

    /// One sample.
    #[must_use]
    pub const fn sample(&self) -> SampleLayout {
        self.sample
    }

    /// The largest number of samples in a batch.
    #[must_use]
    pub const fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Bytes of a full batch, padded to [`VECTOR_ALIGN`]: the size of a staging slot.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Bytes of `samples` samples, without padding. `samples` is at most the batch size.
    #[must_use]
    pub fn payload(&self, samples: usize) -> usize {
        self.sample.byte_len().saturating_mul(samples.min(self.batch_size))
    }

    /// Bytes to copy for `samples` samples: the payload rounded up to [`COPY_ALIGN`].
    #[must_use]
    pub fn copy_bytes(&self, samples: usize) -> usize {
        align_up(self.payload(samples), COPY_ALIGN).unwrap_or(self.slot_bytes)
    }

    /// The smallest number of samples whose bytes are a multiple of [`REGION_ALIGN`].
    #[must_use]
    pub fn samples_per_cut(&self) -> usize {
        samples_aligned(self.sample.byte_len(), REGION_ALIGN)
    }

    /// Splits `samples` samples into at most `parts` runs of nearly equal length, each starting at a multiple of
    /// [`REGION_ALIGN`] bytes. Empty runs are left out.
    pub fn runs(&self, samples: usize, parts: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let unit = self.samples_per_cut();
        let per_run = samples.div_ceil(parts.max(1)).div_ceil(unit).saturating_mul(unit).max(1);
        (0..samples).step_by(per_run).map(move |start| start..start.saturating_add(per_run).min(samples))
    }

    /// The bytes of a run within the slot: the last run of `samples` takes the copy padding along.
    #[must_use]
    pub fn run_bytes(&self, run: &Range<usize>, samples: usize) -> Range<usize> {
        let end = if run.end == samples { self.copy_bytes(samples) } else { self.payload(run.end) };
        self.payload(run.start)..end
    }
}

/// The smallest number of items of `item_bytes` whose bytes are a multiple of `align` (a power of two).
#[must_use]
pub fn samples_aligned(item_bytes: usize, align: usize) -> usize {
    let shared = 1usize << item_bytes.trailing_zeros().min(align.trailing_zeros());
    align.checked_div(shared).unwrap_or(1)
}

/// Splits `samples` into runs that each fit a binding: no item of `item_bytes` bytes (one entry a bound buffer) exceeds
/// `limit` within a run, and every run starts at a multiple of `align` bytes in each buffer.
///
/// Returns samples a run, or `None` where not even the smallest aligned run fits.
#[must_use]
pub fn samples_per_binding(samples: usize, item_bytes: &[usize], limit: usize, align: usize) -> Option<usize> {
    let unit = item_bytes.iter().map(|&bytes| samples_aligned(bytes, align)).max().unwrap_or(1);
    let usable = limit.checked_sub(VECTOR_ALIGN)?;
    let most = item_bytes.iter().map(|&bytes| usable.checked_div(bytes).unwrap_or(usize::MAX)).min()?;
    if samples <= most {
        return Some(samples);
    }
    let rounded = most.checked_div(unit)?.checked_mul(unit)?;
    (rounded > 0).then_some(rounded)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]
mod tests {
    use super::*;

    fn batch(h: usize, w: usize, c: usize, n: usize) -> BatchLayout {
        BatchLayout::new(SampleLayout::image(h, w, c).unwrap(), n).unwrap()
    }

    #[test]
    fn a_batch_is_its_samples_back_to_back_with_padding_at_the_end_only() {
        let layout = batch(31, 17, 3, 3);
        assert_eq!(layout.sample().byte_len(), 1581);
        assert_eq!(layout.payload(3), 4743);
        assert_eq!(layout.copy_bytes(3), 4744);
        assert_eq!(layout.slot_bytes(), 4752);
    }

    #[test]
    fn runs_cover_every_sample_once_and_start_aligned() {
        for (h, w, c) in [(1, 1, 1), (31, 17, 3), (224, 224, 3), (5, 1, 4), (7, 3, 1)] {
            for samples in 1..40 {
                for parts in 1..9 {
                    let layout = batch(h, w, c, 40);
                    let mut next = 0;
                    let mut byte = 0;
                    for run in layout.runs(samples, parts) {
                        let bytes = layout.run_bytes(&run, samples);
                        assert_eq!((run.start, bytes.start), (next, byte));
                        assert_eq!(bytes.start % REGION_ALIGN, 0);
                        (next, byte) = (run.end, bytes.end);
                    }
                    assert_eq!((next, byte), (samples, layout.copy_bytes(samples)));
                    assert!(layout.runs(samples, parts).count() <= parts);
                }
            }
        }
    }

    #[test]
    fn nothing_overflows_silently() {
        assert_eq!(align_up(usize::MAX - 2, 16), None);
        let err = SampleLayout::image(usize::MAX, 2, 3).unwrap_err();
        assert!(matches!(err, LayoutError::Overflow { .. }));
        let sample = SampleLayout::bytes(&[usize::MAX / 4]).unwrap();
        assert!(matches!(BatchLayout::new(sample, 3), Err(LayoutError::Overflow { .. })));
        assert!(SampleLayout::f32(&[usize::MAX / 2]).is_err());
    }

    #[test]
    fn bad_shapes_are_named() {
        assert!(matches!(SampleLayout::image(2, 2, 2), Err(LayoutError::Channels { channels: 2 })));
        assert!(matches!(SampleLayout::image(0, 2, 1), Err(LayoutError::Zero { .. })));
        assert!(matches!(SampleLayout::bytes(&[1; 6]), Err(LayoutError::Rank { rank: 6, .. })));
        assert!(BatchLayout::new(SampleLayout::bytes(&[4]).unwrap(), 0).is_err());
    }

    #[test]
    fn bindings_are_split_at_aligned_samples_or_refused() {
        assert_eq!(samples_per_binding(8, &[100, 400], 1 << 20, 256), Some(8));
        // 1581 is odd, so only every 256th sample is 256-aligned.
        assert_eq!(samples_per_binding(1000, &[1581, 6324], 2_000_000, 256), Some(256));
        assert_eq!(samples_per_binding(1000, &[1581, 6324], 1_000_000, 256), None);
        let samples = samples_per_binding(256, &[150_528, 602_112], 128 << 20, 32).unwrap();
        assert!(samples < 256 && samples * 602_112 <= 128 << 20);
    }
}
