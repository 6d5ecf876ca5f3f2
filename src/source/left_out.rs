//! Counting what is left out of the samples.

use std::collections::BTreeMap;

use crate::source::{LeftOut, LeftOutReason};

/// Kinds that are listed apart for each reason; the others are counted together.
const MAX_KINDS: usize = 100;
const OTHERS: &str = "other";

/// What was left out so far.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<(LeftOutReason, String), (u64, String)>);

impl Tally {
    /// Counts something, whose path from the root is `path`.
    pub(super) fn add(&mut self, reason: LeftOutReason, kind: String, count: u64, path: &[u8]) {
        let known = self.0.contains_key(&(reason, kind.clone()));
        let full = || self.0.keys().filter(|(other, _)| *other == reason).count() >= MAX_KINDS;
        let kind = if !known && full() { OTHERS.to_owned() } else { kind };
        let first = || String::from_utf8_lossy(path).into_owned();
        self.0.entry((reason, kind)).or_insert_with(|| (0, first())).0 += count;
    }

    /// Counts what another has counted, whose paths begin with `prefix`.
    pub(super) fn merge(&mut self, other: Self, prefix: &str) {
        for ((reason, kind), (count, first)) in other.0 {
            self.add(reason, kind, count, format!("{prefix}{first}").as_bytes());
        }
    }

    pub(super) fn finish(self) -> Vec<LeftOut> {
        let entry = |((reason, kind), (count, first))| LeftOut { reason, kind, count, first };
        self.0.into_iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_apart_up_to_a_limit() {
        let mut tally = Tally::default();
        for kind in 0..1000 {
            tally.add(LeftOutReason::NoImage, format!(".{:03}", kind % 500), 1, format!("{kind}").as_bytes());
        }
        tally.add(LeftOutReason::Hidden, String::new(), 2, b".x");
        let listed = tally.finish();
        assert_eq!(listed.len(), MAX_KINDS + 2);
        assert_eq!(listed.iter().map(|entry| entry.count).sum::<u64>(), 1002);
        assert_eq!((listed[0].kind.as_str(), listed[0].count, listed[0].first.as_str()), (".000", 2, "0"));
    }
}
