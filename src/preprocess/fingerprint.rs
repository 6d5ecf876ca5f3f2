//! A checksum of one sample's bytes, the same on the CPU and in the kernels.
//!
//! The bytes are read as little-endian words, the last one padded with zeros. Each word is mixed with its position
//! and the mixed words are added, so that threads may add in any order. Two sums with different mixing give 64 bits.
//! The mixer is the 32-bit finaliser of MurmurHash3. A batch's fingerprint is made of its samples', on the CPU.

/// The fingerprint of one sample's bytes.
pub type Fingerprint = u64;

const SEEDS: [u32; 2] = [0x9E37_79B9, 0x85EB_CA6B];

/// The fingerprint of a sample.
#[must_use]
pub fn fingerprint(sample: &[u8]) -> Fingerprint {
    let mut sums = [0u32; 2];
    for (position, chunk) in (0u32..).zip(sample.chunks(4)) {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u32::from_le_bytes(word);
        for (sum, seed) in sums.iter_mut().zip(SEEDS) {
            *sum = sum.wrapping_add(mix(word ^ mix(position.wrapping_add(seed))));
        }
    }
    u64::from(sums[0]) | (u64::from(sums[1]) << 32)
}

/// The fingerprint of a sample of several fields, over those of the fields on the device, in their order. That of one field is its own; that
/// of several starts as their number, and is made of them as [`batch_fingerprint`] is made of numbers.
#[must_use]
pub fn sample_fingerprint(fields: &[Fingerprint]) -> Fingerprint {
    match *fields {
        [field] => field,
        _ => fold(fields.len(), fields.iter().copied()),
    }
}

/// The fingerprint of a whole batch, over the samples' indices and fingerprints in their order. Both lists are equally long.
///
/// It starts as the number of samples; then each number in turn (index, fingerprint, next index, ...) is added to it and one step of
/// SplitMix64 made from the sum.
#[must_use]
pub fn batch_fingerprint(indices: &[u64], samples: &[Fingerprint]) -> Fingerprint {
    debug_assert_eq!(indices.len(), samples.len());
    fold(indices.len(), indices.iter().zip(samples).flat_map(|(&index, &sample)| [index, sample]))
}

fn fold(start: usize, numbers: impl Iterator<Item = u64>) -> Fingerprint {
    numbers.fold(start as u64, |sum, number| mix64(sum.wrapping_add(number)))
}

/// One step of SplitMix64.
pub(super) const fn mix64(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

const fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85EB_CA6B);
    x ^= x >> 13;
    x = x.wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_of_a_byte_or_an_order_changes_the_fingerprint() {
        let sample: Vec<u8> = (0..1581u32).map(|i| (i * 7 % 251) as u8).collect();
        let whole = fingerprint(&sample);
        for i in (0..sample.len()).step_by(13) {
            let mut changed = sample.clone();
            changed[i] ^= 1;
            assert_ne!(fingerprint(&changed), whole);
        }
        let mut swapped = sample.clone();
        swapped.swap(0, 4);
        assert_ne!(fingerprint(&swapped), whole);
        assert_ne!(fingerprint(&sample[..1577]), whole);
    }

    #[test]
    fn a_sample_of_one_field_is_that_and_of_several_differs_with_each() {
        assert_eq!(sample_fingerprint(&[7]), 7);
        let all: Vec<_> = [&[7, 8][..], &[8, 7], &[7, 9], &[7, 8, 0], &[7]].map(sample_fingerprint).into();
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])), "{all:?}");
    }

    #[test]
    fn a_batch_differs_with_its_samples_their_indices_and_their_order() {
        let whole = batch_fingerprint(&[1, 2, 3], &[10, 20, 30]);
        let others: [(&[u64], &[u64]); 7] = [
            (&[1, 2, 3], &[10, 20, 31]),
            (&[1, 2, 4], &[10, 20, 30]),
            (&[2, 1, 3], &[20, 10, 30]),
            (&[2, 1, 3], &[10, 20, 30]),
            (&[1, 2], &[10, 20]),
            (&[0, 1, 2, 3], &[0, 10, 20, 30]),
            (&[], &[]),
        ];
        for (indices, samples) in others {
            assert_ne!(batch_fingerprint(indices, samples), whole, "{indices:?} {samples:?}");
        }
        assert_ne!(batch_fingerprint(&[0], &[0]), batch_fingerprint(&[], &[]));
    }
}
