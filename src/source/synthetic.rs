//! Samples made up on the spot, for measuring everything else.

use std::sync::Arc;

use half::{bf16, f16};

use super::context::mix;
use super::{MemorySource, OutOfRange, SampleContext, Source};
use crate::error::{LayoutError, SourceError};
use crate::layout::{Element, Field, FieldKind, LABEL, Placement, SampleLayout};
use crate::memory::HostArena;
use crate::staging::{FieldWriter, SampleWriter};

/// Bytes of the pool beyond one sample: samples start at different offsets within them.
const SLACK: usize = 64 << 10;
/// The most bytes of one sample that the pool holds; larger samples repeat it.
const POOL_SAMPLE: usize = 4 << 20;
/// Labels are in `0..CLASSES`.
const CLASSES: u64 = 1000;

/// Pseudo-random samples at the price of a copy, the same for the same index on every machine.
///
/// A sample is a stretch of one pool of random bytes, starting where its index says; the pool is a sample and 64 KiB
/// long, and at most 4 MiB and 64 KiB, after which a sample repeats it. Images and integers are uniform; floats are uniform in [0, 1).
/// A field called `label` on the host is `i % 1000` for sample `i`, as far as its type holds it. Ragged fields have any number of rows up to
/// their maximum.
#[derive(Debug)]
pub struct SyntheticSource {
    layout: SampleLayout,
    len: u64,
    /// A pool a field that is written. None for a blank source.
    pools: Vec<Pool>,
}

/// Random bytes, fit for one field.
#[derive(Debug)]
enum Pool {
    /// Samples start at multiples of so many bytes.
    Bytes(Vec<u8>, usize),
    Labels(Element),
}

impl SyntheticSource {
    /// `len` pseudo-random samples of this layout.
    #[must_use]
    pub fn new(layout: SampleLayout, len: u64) -> Self {
        // Lengths, which are behind all others, are counted.
        let written = layout.fields().iter().filter(|field| field.kind() != FieldKind::Lengths);
        let pools = written.map(|field| {
            if field.name() == LABEL && field.placement() == Placement::Host {
                return Pool::Labels(field.element());
            }
            let align = field.element().size().max(4);
            let mut pool = vec![0; field.byte_len().min(POOL_SAMPLE).next_multiple_of(align) + SLACK];
            fill(&mut pool, field.element(), 0);
            Pool::Bytes(pool, align)
        });
        Self { pools: pools.collect(), layout, len }
    }

    /// `len` samples that are never written: what is in staging memory stays, zeros or an earlier batch of the same
    /// loader. Only for measuring the loader itself without the cost of any source.
    #[must_use]
    pub fn blank(layout: SampleLayout, len: u64) -> Self {
        Self { layout, len, pools: Vec::new() }
    }
}

impl Source for SyntheticSource {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = sample.index;
        if index >= self.len {
            return Err(OutOfRange { index, len: self.len }.into());
        }
        if self.pools.is_empty() {
            out.leave_rest();
        }
        for ((number, pool), field) in self.pools.iter().enumerate().zip(self.layout.fields()) {
            let draw = mix(mix(index).wrapping_add(number as u64)) as usize;
            let bytes = field.rows().map_or(field.byte_len(), |(most, row)| draw % (most + 1) * row);
            pool.write(index, out.field(number)?, bytes)?;
        }
        Ok(())
    }
}

impl Pool {
    /// Writes so many bytes of sample `index`.
    fn write(&self, index: u64, mut out: FieldWriter<'_>, bytes: usize) -> Result<(), SourceError> {
        match self {
            Self::Bytes(pool, align) => {
                // Whole elements; the mask keeps it within the slack.
                let mut start = mix(index) as usize & (SLACK - 1) & !(align - 1);
                while out.written() < bytes {
                    let rest = &pool[start..];
                    out.write(&rest[..rest.len().min(bytes - out.written())])?;
                    start = 0;
                }
            }
            Self::Labels(element) => {
                let label = index % CLASSES;
                while out.written() < bytes {
                    match element {
                        Element::U8 => out.value(label as u8),
                        Element::I8 => out.value((label % 128) as i8),
                        Element::Bool => out.value((label % 2) as u8),
                        Element::U16 => out.value(label as u16),
                        Element::I32 => out.value(label as i32),
                        Element::I64 => out.value(label as i64),
                        Element::F16 => out.value(f16::from_f32(label as f32)),
                        Element::Bf16 => out.value(bf16::from_f32(label as f32)),
                        Element::F32 => out.value(label as f32),
                    }?;
                }
            }
        }
        Ok(())
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
    let fields: Vec<(usize, Element)> =
        layout.on_device().map(|field: &Field| (field.byte_len(), field.element())).collect();
    let fill_all = |memory: &mut [u8]| match fields[..] {
        [(_, element)] => fill(memory, element, seed),
        _ => {
            for (number, mut sample) in (0u64..).zip(memory.chunks_exact_mut(layout.byte_len())) {
                for &(bytes, element) in &fields {
                    let (field, rest) = sample.split_at_mut(bytes);
                    fill(field, element, mix(seed).wrapping_add(number));
                    sample = rest;
                }
            }
        }
    };
    let arena = HostArena::new(bytes, fill_all).map_err(|_| overflow)?;
    MemorySource::in_arena(Arc::new(arena), layout)
}

/// Fills `memory` with values fit for elements of this type.
fn fill(memory: &mut [u8], element: Element, seed: u64) {
    let words = (0u64..).map(|i| mix(mix(seed).wrapping_add(i)));
    // The upper bits of a word as a number in [0, 1).
    let unit = |word: u64, bits: u32| (word >> (64 - bits)) as f32 / (1u32 << bits) as f32;
    let chunks = match element {
        Element::U8 | Element::U16 | Element::I32 | Element::I64 => memory.chunks_mut(8),
        _ => memory.chunks_mut(element.size()),
    };
    for (chunk, word) in chunks.zip(words) {
        let value = match element {
            Element::Bool => [(word >> 63) as u8, 0, 0, 0, 0, 0, 0, 0],
            Element::F16 => padded(f16::from_f32(unit(word, 11)).to_ne_bytes()),
            Element::Bf16 => padded(bf16::from_f32(unit(word, 8)).to_ne_bytes()),
            Element::F32 => padded(unit(word, 24).to_ne_bytes()),
            _ => word.to_le_bytes(),
        };
        chunk.copy_from_slice(&value[..chunk.len()]);
    }
}

fn padded<const N: usize>(bytes: [u8; N]) -> [u8; 8] {
    let mut all = [0; 8];
    all[..N].copy_from_slice(&bytes);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::staging::SampleBuffer;

    fn read(source: &dyn Source, index: u64) -> Vec<u8> {
        whole(source, index).bytes(0).expect("the first field").to_vec()
    }

    fn whole(source: &dyn Source, index: u64) -> SampleBuffer {
        let mut sample = SampleBuffer::new(source.layout()).expect("memory");
        let mut out = sample.writer();
        source.read(&SampleContext::of(index), &mut out).expect("within the source");
        assert_eq!(out.finish(), Ok(()), "the whole sample");
        sample
    }

    #[test]
    fn a_sample_is_the_same_every_time_and_differs_from_its_neighbours() {
        let layout = SampleLayout::image(9, 7, 3).expect("an image");
        let (one, two) = (SyntheticSource::new(layout.clone(), 5000), SyntheticSource::new(layout, 5000));
        assert_eq!(read(&one, 17), read(&two, 17));
        assert_ne!(read(&one, 17), read(&one, 18));
    }

    #[test]
    fn fields_of_every_type_are_filled_and_labels_count() {
        for element in Element::ALL {
            let layout = SampleLayout::array(element, &[100]).and_then(|layout| layout.with_label(element));
            let layout = layout.and_then(|layout| layout.with_host("more", Element::U8, &[9])).expect("a layout");
            let source = SyntheticSource::new(layout, 5000);
            let sample = whole(&source, 1001);
            assert_eq!(sample.label(), Some(1), "{element}");
            assert!(sample.bytes("more").expect("there").iter().any(|&byte| byte > 1));
            let bytes = sample.bytes(0).expect("there");
            assert!(element != Element::Bool || bytes.iter().all(|&byte| byte < 2));
            assert!(bytes.iter().any(|&byte| byte != 0), "{element}");
        }
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
        for source in [
            &SyntheticSource::new(layout.clone(), 50) as &dyn Source,
            &random_images(layout, 50, 1).expect("in memory"),
        ] {
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
        source.read(&SampleContext::of(1), &mut SampleWriter::over(&mut memory)).expect("nothing to do");
        assert_eq!(memory, [7; 3]);
        let error = source.read(&SampleContext::of(2), &mut SampleWriter::over(&mut memory)).expect_err("past the end");
        assert!(error.is::<OutOfRange>(), "{error}");
    }

    #[test]
    fn random_images_follow_their_seed() {
        let layout = SampleLayout::image(5, 5, 3).expect("an image");
        let make = |seed| read(&random_images(layout.clone(), 3, seed).expect("in memory"), 2);
        assert_eq!(make(4), make(4));
        assert_ne!(make(4), make(5));
        assert!(random_images(layout.clone(), 0, 0).is_err());
        assert!(matches!(random_images(layout, usize::MAX, 0), Err(LayoutError::Overflow { .. })));
    }
}
