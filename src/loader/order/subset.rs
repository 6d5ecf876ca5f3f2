//! A part of a source.

use std::ops::Range;
use std::sync::Arc;

use crate::error::OpenError;

/// The samples of a source that a loader delivers: a range, or a list in any order, in which a sample may come several times. Cheap to
/// clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subset {
    kind: Kind,
    /// Computed once: a list may be long.
    hash: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Range(Range<u64>),
    List(Arc<[u64]>),
}

impl Subset {
    /// The samples from `range.start` up to, and without, `range.end`.
    #[must_use]
    pub fn range(range: Range<u64>) -> Self {
        Self::new(Kind::Range(range))
    }

    /// These samples. Eight bytes each are kept.
    pub fn list(indices: impl IntoIterator<Item = u64>) -> Self {
        Self::new(Kind::List(indices.into_iter().collect()))
    }

    fn new(kind: Kind) -> Self {
        let hash = kind.hash();
        Self { kind, hash }
    }

    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.kind {
            Kind::Range(range) => range.end.saturating_sub(range.start),
            Kind::List(list) => list.len() as u64,
        }
    }

    /// Whether it has no samples, which no loader takes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index in the source of the sample at `place`, which is below [`len`](Self::len).
    #[must_use]
    pub fn at(&self, place: u64) -> u64 {
        match &self.kind {
            Kind::Range(range) => range.start + place,
            Kind::List(list) => usize::try_from(place).map_or(0, |place| list[place]),
        }
    }

    /// Checks that it lies within a source of `samples` samples.
    pub(in crate::loader) fn check(&self, samples: u64) -> Result<(), OpenError> {
        let refused = |reason| Err(OpenError::Option { option: "subset", reason });
        if self.is_empty() {
            return refused("must have at least 1 sample".to_owned());
        }
        let last = match &self.kind {
            Kind::Range(range) => range.end - 1,
            Kind::List(list) => list.iter().copied().max().unwrap_or_default(),
        };
        if last < samples { Ok(()) } else { refused(format!("has sample {last}, and the source has {samples}")) }
    }

    /// A number that tells subsets apart.
    pub(in crate::loader) fn hash(&self) -> u64 {
        self.hash
    }
}

impl Kind {
    fn hash(&self) -> u64 {
        let step = |hash: u64, value: u64| (hash.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match self {
            Self::Range(range) => step(step(1, range.start), range.end),
            Self::List(list) => list.iter().fold(2, |hash, &index| step(hash, index)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_source_is_refused_by_name() {
        let refused = |subset: Subset| subset.check(10).map_err(|error| error.to_string());
        assert_eq!(refused(Subset::range(3..10)), Ok(()));
        assert_eq!(refused(Subset::list([9, 0, 9])), Ok(()));
        assert_eq!(refused(Subset::range(3..11)), Err("subset: has sample 10, and the source has 10".to_owned()));
        assert_eq!(refused(Subset::list([u64::MAX])).map_err(|e| e.contains("has sample 1844")), Err(true));
        for empty in [Subset::list([]), Subset::range(4..4), Subset::range(Range { start: 5, end: 4 })] {
            assert_eq!(refused(empty), Err("subset: must have at least 1 sample".to_owned()));
        }
    }

    #[test]
    fn subsets_are_told_apart() {
        let all = [Subset::range(0..4), Subset::range(1..4), Subset::list([0, 1, 2, 3]), Subset::list([1, 0, 2, 3])];
        let mut hashes = all.map(|subset| subset.hash()).to_vec();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 4);
    }
}
