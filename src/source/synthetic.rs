//! Samples made up on the spot, for measuring everything else.

use std::sync::Arc;

use super::{MemorySource, OutOfRange, Source};
use crate::error::{LayoutError, SourceError};
use crate::layout::SampleLayout;
use crate::memory::HostArena;
use crate::staging::SampleWriter;

/// Bytes of the pool beyond one sample: samples start at different offsets within them.
const SLACK: usize = 64 << 10;
/// The most bytes of one sample that the pool holds; larger samples repeat it.
const POOL_SAMPLE: usize = 4 << 20;
/// Labels are in `0..CLASSES`.
const CLASSES: u64 = 1000;

/// Pseudo-random samples at the price of a copy, the same for the same index on every machine.
///
/// A sample is a stretch of one pool of random bytes, starting where its index says; the pool is a sample and 64 KiB
/// long, and at most 4 MiB and 64 KiB, after which a sample repeats it. Images and byte arrays are uniform bytes; f32
/// samples are uniform in [0, 1). The label of sample `i` is `i % 1000`.
#[derive(Debug)]
pub struct SyntheticSource {
    layout: SampleLayout,
    len: u64,
    /// Empty for a blank source.
    pool: Vec<u8>,
}

impl SyntheticSource {
    /// `len` pseudo-random samples of this layout.
    #[must_use]
    pub fn new(layout: SampleLayout, len: u64) -> Self {
        let mut pool = vec![0; layout.byte_len().min(POOL_SAMPLE).next_multiple_of(4) + SLACK];
        fill(&mut pool, layout, 0);
        Self { layout, len, pool }
    }

    /// `len` samples that are never written: what is in staging memory stays, zeros or an earlier batch of the same
    /// loader. Only for measuring the loader itself without the cost of any source.
    #[must_use]
    pub fn blank(layout: SampleLayout, len: u64) -> Self {
        Self { layout, len, pool: Vec::new() }
    }
}

impl Source for SyntheticSource {
    fn layout(&self) -> SampleLayout {
        self.layout
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, index: u64, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        if index >= self.len {
            return Err(OutOfRange { index, len: self.len }.into());
        }
        if self.pool.is_empty() {
            out.leave_rest();
            return Ok(());
        }
        // Whole words, so that f32 samples stay f32; the mask keeps it within the slack.
        let mut start = mix(index) as usize & (SLACK - 1) & !3;
        while out.remaining() > 0 {
            let rest = &self.pool[start..];
            out.write(&rest[..rest.len().min(out.remaining())])?;
            start = 0;
        }
        Ok(())
    }

    fn label(&self, index: u64) -> Option<i64> {
        (index < self.len).then_some((index % CLASSES) as i64)
    }
}

/// `len` pseudo-random samples in memory; the same for the same `seed` on every machine. Values are as in
/// [`SyntheticSource`]; there are no labels.
///
/// # Errors
/// [`LayoutError::Length`] for no samples, [`LayoutError::Overflow`] where their bytes do not fit the address space.
pub fn random_images(layout: SampleLayout, len: usize, seed: u64) -> Result<MemorySource, LayoutError> {
    let bytes = layout.byte_len().checked_mul(len).filter(|&bytes| isize::try_from(bytes).is_ok());
    let overflow = LayoutError::Overflow { what: "the samples' byte count" };
    let bytes = bytes.ok_or_else(|| overflow.clone())?;
    let arena = HostArena::new(bytes, |memory| fill(memory, layout, seed)).map_err(|_| overflow)?;
    MemorySource::in_arena(Arc::new(arena), layout)
}

/// Fills `memory` with values fit for `layout`.
fn fill(memory: &mut [u8], layout: SampleLayout, seed: u64) {
    let words = (0u64..).map(|i| mix(mix(seed).wrapping_add(i)));
    if matches!(layout, SampleLayout::F32(_)) {
        for (chunk, word) in memory.chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&((word >> 40) as f32 / (1u32 << 24) as f32).to_ne_bytes());
        }
    } else {
        for (chunk, word) in memory.chunks_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}

/// The finaliser of SplitMix64: every bit of the result depends on every bit of `x`.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &dyn Source, index: u64) -> Vec<u8> {
        let mut memory = vec![0; source.layout().byte_len()];
        let mut out = SampleWriter::over(&mut memory);
        source.read(index, &mut out).expect("within the source");
        assert_eq!(out.remaining(), 0, "the whole sample");
        memory
    }

    #[test]
    fn a_sample_is_the_same_every_time_and_differs_from_its_neighbours() {
        let layout = SampleLayout::image(9, 7, 3).expect("an image");
        let (one, two) = (SyntheticSource::new(layout, 5000), SyntheticSource::new(layout, 5000));
        assert_eq!(read(&one, 17), read(&two, 17));
        assert_ne!(read(&one, 17), read(&one, 18));
        assert_eq!([one.label(0), one.label(4321), one.label(5000)], [Some(0), Some(321), None]);
    }

    #[test]
    fn a_sample_larger_than_the_pool_is_written_whole() {
        let layout = SampleLayout::bytes(&[POOL_SAMPLE + 2 * SLACK + 3]).expect("bytes");
        let sample = read(&SyntheticSource::new(layout, 3), 2);
        let zeros = sample.iter().filter(|&&byte| byte == 0).count();
        assert!(zeros < sample.len() / 128, "{zeros} zeros of {}", sample.len());
    }

    #[test]
    fn f32_samples_are_between_zero_and_one() {
        let layout = SampleLayout::f32(&[31]).expect("floats");
        for source in
            [&SyntheticSource::new(layout, 50) as &dyn Source, &random_images(layout, 50, 1).expect("in memory")]
        {
            for index in 0..50 {
                for value in read(source, index).chunks_exact(4) {
                    let value = f32::from_ne_bytes(value.try_into().expect("four bytes"));
                    assert!((0.0..1.0).contains(&value), "{value}");
                }
            }
        }
    }

    #[test]
    fn a_blank_source_leaves_the_memory_alone() {
        let source = SyntheticSource::blank(SampleLayout::bytes(&[3]).expect("bytes"), 2);
        let mut memory = [7; 3];
        source.read(1, &mut SampleWriter::over(&mut memory)).expect("nothing to do");
        assert_eq!(memory, [7; 3]);
        let error = source.read(2, &mut SampleWriter::over(&mut memory)).expect_err("past the end");
        assert!(error.is::<OutOfRange>(), "{error}");
    }

    #[test]
    fn random_images_follow_their_seed() {
        let layout = SampleLayout::image(5, 5, 3).expect("an image");
        let make = |seed| read(&random_images(layout, 3, seed).expect("in memory"), 2);
        assert_eq!(make(4), make(4));
        assert_ne!(make(4), make(5));
        assert!(random_images(layout, 0, 0).is_err());
        assert!(matches!(random_images(layout, usize::MAX, 0), Err(LayoutError::Overflow { .. })));
    }
}
