//! A checksum of one sample's bytes, the same on the CPU and in the kernels.
//!
//! The bytes are read as little-endian words, the last one padded with zeros. Each word is mixed with its position
//! and the mixed words are added, so that threads may add in any order. Two sums with different mixing give 64 bits.
//! The mixer is the 32-bit finaliser of MurmurHash3.

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
}
