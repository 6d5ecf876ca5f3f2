//! What uses batches in measurements: fixed work on the device, behind each batch, and a look at whether the batch was there.
//!
//! A loader that is measured beside a consumer that does nothing is measured beside a device that has nothing else to do. The work here is an
//! application's in the place where an application has it: wgpu's queue, a stream of its own, the thread that takes the batches on the
//! host. It is one workgroup wide, so that the rest of the device is idle, and it is a number of iterations: never a spin on a clock, which
//! would end at the same time however often it was interrupted.

use super::{Tensor, sealed};
use crate::error::DeviceError;
use crate::preprocess::TensorDesc;

/// Words of a tensor that are looked at, spread over it: as the kernels have it.
pub(super) const LOOKS: usize = 512;
/// Batches of which the sums are kept, at most.
pub(super) const MAX_SUMS: usize = 4096;

/// Runs fixed work for each batch on a device. Sealed, as [`Backend`](super::Backend) is.
///
/// The work looks at the batch's tensor when it begins and again when it ends. A tensor that came late, or was written again too early,
/// gives two sums that differ, or one that is not the sum it had when the batch was verified.
pub trait Consumer: sealed::Sealed + Send + 'static {
    /// The tensors of its device.
    type Tensor: Tensor;

    /// Sets the work of each batch from now on, in iterations of no particular length. What was [seen](Self::seen) is forgotten.
    ///
    /// # Errors
    /// The device's error.
    fn set_iterations(&mut self, iterations: u32) -> Result<(), DeviceError>;

    /// Queues the work without a batch. On the host it is done at once, by the caller.
    ///
    /// # Errors
    /// The device's error.
    fn work(&mut self) -> Result<(), DeviceError>;

    /// Queues the work of a batch, as an application would: what is queued afterwards for the same tensor comes behind it. Does not wait.
    /// On the host it is done at once, by the caller, who waits for the tensor first.
    ///
    /// # Errors
    /// The device's error.
    fn consume(&mut self, tensor: &Self::Tensor, desc: &TensorDesc) -> Result<(), DeviceError>;

    /// Waits for all that was queued.
    ///
    /// # Errors
    /// The device's error.
    fn finish(&mut self) -> Result<(), DeviceError>;

    /// What was seen of the batches since the last call, or since the work was set. Waits for all that was queued, and lets go of the
    /// tensors.
    ///
    /// # Errors
    /// The device's error.
    fn seen(&mut self) -> Result<Seen, DeviceError>;
}

/// What a [`Consumer`] saw of its batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// How many there were.
    pub batches: u64,
    /// How many of them changed while they were worked on.
    pub changed: u64,
    /// A sum over each of the first ones, as the work found them.
    pub sums: Vec<u32>,
}

impl Seen {
    /// From the words that kernels write: two counts, and the sums.
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    pub(super) fn of_words(words: &[u32]) -> Self {
        let (batches, sums) = (words[0], &words[2..]);
        let kept = sums.len().min(batches as usize);
        Self { batches: batches.into(), changed: words[1].into(), sums: sums[..kept].to_vec() }
    }

    /// Adds a batch.
    pub(super) fn add(&mut self, before: u32, after: u32) {
        self.batches += 1;
        self.changed += u64::from(before != after);
        if self.sums.len() < MAX_SUMS {
            self.sums.push(before);
        }
    }
}

/// The sum of a look at a tensor's bytes: what the kernels compute, of a tensor of whole words.
pub(super) fn look(bytes: &[u8]) -> u32 {
    let words = bytes.as_chunks::<4>().0;
    let step = words.len() / LOOKS;
    let at = |at: usize| words.get(at * step).map_or(0, |&word| u32::from_le_bytes(word));
    (0..LOOKS).fold(0u32, |sum, look| sum.wrapping_add(at(look).wrapping_mul(2 * look as u32 + 1)))
}

/// One iteration of the work. It keeps a number even, which no compiler is told: so the second look can be made to wait for it.
pub(super) fn iterate(x: u32) -> u32 {
    (0..16).fold(x, |x, _| {
        let next: u32 = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        next ^ ((next >> 16) << 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_sees_words_all_over_a_tensor_and_their_order() {
        let tensor = |changed: usize| {
            let mut bytes = vec![3; 4 * 1024];
            bytes[4 * changed] = 4;
            bytes
        };
        let same = look(&vec![3; 4 * 1024]);
        let sums: Vec<u32> = [0, 2, 1022].map(|word| look(&tensor(word))).to_vec();
        assert!(sums.iter().all(|&sum| sum != same) && sums[0] != sums[1] && sums[1] != sums[2], "{sums:?}");
        assert_eq!(look(&tensor(1)), same, "between two looks");
        assert_eq!((look(&[]), look(&[1, 0, 0])), (0, 0));
        assert_eq!(look(&[1, 0, 0, 0]), (LOOKS * LOOKS) as u32, "a small tensor is looked at again and again");
    }

    #[test]
    fn an_iteration_keeps_a_number_even() {
        assert!((0..1000u32).all(|x| iterate(2 * x).is_multiple_of(2) && !iterate(2 * x + 1).is_multiple_of(2)));
    }

    #[test]
    fn batches_that_change_are_counted_and_the_first_sums_are_kept() {
        let mut seen = Seen::default();
        (0..MAX_SUMS as u32 + 2).for_each(|batch| seen.add(batch, batch.max(1)));
        assert_eq!((seen.batches, seen.changed, seen.sums.len()), (MAX_SUMS as u64 + 2, 1, MAX_SUMS));
    }
}
