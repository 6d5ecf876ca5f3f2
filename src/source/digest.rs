//! What identifies a data set, in 16 bytes.

use super::context::mix;

/// A digest under way: 128-bit FNV-1a. It tells data sets apart that differ by mistake, not by malice, and it stays what
/// it is: resume tokens keep it.
#[derive(Debug)]
pub(super) struct Digest(u128);

/// At most this much of a file's content is read.
#[cfg(feature = "npy")]
const MAX_SAMPLED_BYTES: u64 = 4 << 20;
#[cfg(feature = "npy")]
const BLOCK: u64 = 4096;

impl Digest {
    /// An empty digest of a kind of source, so that sources of different kinds never agree.
    pub(super) fn new(kind: &str) -> Self {
        let mut digest = Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        digest.add(kind.as_bytes());
        digest
    }

    /// Adds bytes and where they end, so that `ab` and `c` are not `a` and `bc`.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let length = (bytes.len() as u64).to_le_bytes();
        for &byte in bytes.iter().chain(&length) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }

    pub(super) fn add_number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    /// Adds labels, where there are any.
    #[cfg(feature = "npy")]
    pub(super) fn add_labels(&mut self, labels: Option<impl ExactSizeIterator<Item = i64>>) {
        self.add_number(labels.as_ref().map_or(u64::MAX, |labels| labels.len() as u64));
        labels.into_iter().flatten().for_each(|label| self.add_number(label.cast_unsigned()));
    }

    /// Of what was added until now.
    #[cfg(feature = "images")]
    pub(super) fn so_far(&self) -> u128 {
        self.0
    }

    pub(super) fn finish(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Which parts of a content of `bytes` bytes are read: all of it where it is small, else the same 1,024 blocks for
    /// every content of this size, the first and the last among them.
    #[cfg(feature = "npy")]
    pub(super) fn sampled_blocks(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
        let blocks = bytes.div_ceil(BLOCK);
        let taken = blocks.min(MAX_SAMPLED_BYTES / BLOCK);
        (0..taken).map(move |at| {
            let block = match at {
                _ if taken == blocks => at,
                0 => 0,
                1 => blocks - 1,
                at => sampled(at, blocks),
            };
            let offset = block * BLOCK;
            (offset, BLOCK.min(bytes - offset) as usize)
        })
    }
}

/// The `at`th of the seeded samples of `count` things.
pub(super) fn sampled(at: u64, count: u64) -> u64 {
    // The `at`th output of SplitMix64 from zero.
    mix(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&str]) -> [u8; 16] {
        let mut digest = Digest::new("test");
        parts.iter().for_each(|part| digest.add(part.as_bytes()));
        digest.finish()
    }

    #[test]
    fn parts_order_and_kind_matter() {
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        let others = [&["a", "bc"][..], &["abc"], &["c", "ab"], &["ab", "c", ""], &[]];
        assert!(others.iter().all(|other| of(other) != of(&["ab", "c"])));
        assert_ne!(Digest::new("other").finish(), Digest::new("test").finish());
    }

    #[test]
    fn a_digest_stays_what_it_is() {
        let text: String = of(&["ab", "c"]).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "9320803031709e3b4eb893347b53d78c");
    }

    #[test]
    #[cfg(feature = "npy")]
    fn blocks_lie_within_the_content_and_cover_a_small_one() {
        for bytes in [0, 1, BLOCK, BLOCK + 1, MAX_SAMPLED_BYTES, MAX_SAMPLED_BYTES + 1, 1 << 40] {
            let blocks: Vec<_> = Digest::sampled_blocks(bytes).collect();
            assert!(blocks.iter().all(|&(offset, len)| offset + len as u64 <= bytes), "{bytes}");
            let sum: u64 = blocks.iter().map(|&(_, len)| len as u64).sum();
            assert!(sum == bytes || bytes > MAX_SAMPLED_BYTES && blocks.len() == 1024, "{bytes}: {sum}");
        }
    }
}
