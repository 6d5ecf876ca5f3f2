//! Choices about a lane's kernels, and whose defaults are what served best where it was measured.

use std::ops::Range;

/// How the kernels of a batch share the device with those of an application. The delivered bytes are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Which kernels go first where both wait: those of a stream of higher priority.
    pub priority: KernelPriority,
    /// Bytes of the samples that one launch normalises, about; a batch of more takes several.
    ///
    /// A device hands out the blocks of a kernel to the last before it begins with another kernel of the same priority. So what an
    /// application launches while a whole batch is normalised waits for most of it, and no longer than a part where there are several.
    pub part_bytes: usize,
}

/// The priority of the stream that runs a lane's kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelPriority {
    /// The least that the device has, which is that of streams without one. An application whose streams have a higher priority is never
    /// kept waiting for the blocks of a lane's kernels.
    #[default]
    Least,
    /// The greatest: batches are ready sooner beside an application that fills the device, and its kernels wait.
    Greatest,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { priority: KernelPriority::Least, part_bytes: 8 << 20 }
    }
}

/// Vectors that kernels read and write have so many bytes, and parts begin with one.
const VECTOR: usize = 16;

/// The parts of a batch of `samples` samples, about `part_bytes` bytes each. Where samples are no whole vectors, parts have so many that
/// together they are.
pub(super) fn parts(samples: usize, sample_bytes: usize, part_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let unit = if sample_bytes.is_multiple_of(VECTOR) { 1 } else { VECTOR };
    let wanted = part_bytes / sample_bytes.max(1);
    let each = (wanted - wanted % unit).max(unit);
    (0..samples).step_by(each).map(move |start| start..samples.min(start.saturating_add(each)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_batch_are_all_of_it_and_begin_with_whole_vectors() {
        for samples in [1, 15, 16, 17, 256, 1000] {
            for sample_bytes in [1, 105, 150_528, 1 << 26] {
                for part_bytes in [0, 1, 4096, 8 << 20, usize::MAX] {
                    let mut next = 0;
                    for part in parts(samples, sample_bytes, part_bytes) {
                        assert_eq!((part.start, part.start * sample_bytes % VECTOR), (next, 0));
                        assert!(!part.is_empty());
                        next = part.end;
                    }
                    assert_eq!(next, samples, "{samples} samples of {sample_bytes}");
                }
            }
        }
    }

    #[test]
    fn a_part_has_about_the_bytes_that_it_should_and_a_small_batch_is_one() {
        let sizes = |samples, bytes, part| -> Vec<_> { parts(samples, bytes, part).map(|part| part.len()).collect() };
        assert_eq!(sizes(256, 150_528, 8 << 20), [55, 55, 55, 55, 36]);
        assert_eq!(sizes(40, 105, 1), [16, 16, 8]);
        assert_eq!(sizes(256, 105, 8 << 20), [256]);
        assert_eq!(sizes(256, 150_528, usize::MAX), [256]);
    }
}
