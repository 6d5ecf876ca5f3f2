//! What was wrong with an image that was decoded nevertheless.

use std::fmt;

/// Damage inside a JPEG's data that its decoder went on after, as libjpeg does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::source::decode) struct Damage {
    /// Stretches of data that end before their blocks do.
    pub(super) early_ends: u64,
    /// Codes that no Huffman table has.
    pub(super) bad_codes: u64,
    /// Restart markers that are not the next one.
    pub(super) wrong_restarts: u64,
    /// Bytes that belong to nothing.
    pub(super) extraneous: u64,
    /// Scans that do not follow from those before, or have parameters that none has.
    pub(super) progression: u64,
    /// Blocks that nothing is known of, and all blocks, of all scans.
    pub(super) lost: u64,
    pub(super) blocks: u64,
}

impl Damage {
    /// Whether the image may differ from what was encoded. Bytes between segments do no harm.
    pub(in crate::source::decode) fn is_harmful(&self) -> bool {
        self.early_ends + self.bad_codes + self.wrong_restarts + self.progression + self.lost > 0
    }

    /// Whether more than half of the image is made up.
    pub(in crate::source::decode) fn is_fatal(&self) -> bool {
        self.lost * 2 > self.blocks
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.early_ends, "stretches of data end early"),
            (self.bad_codes, "invalid codes"),
            (self.wrong_restarts, "restart markers out of order"),
            (self.progression, "scans that do not follow from those before"),
            (self.extraneous, "bytes belong to nothing"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{count} {what}, ")?;
        }
        write!(f, "{} of {} blocks are lost", self.lost, self.blocks)
    }
}
