//! A source that begins again at its end, so that a round of measuring does not end with an epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::SourceError;
use crate::layout::SampleLayout;
use crate::loader::Subset;
use crate::source::{Direct, SampleContext, Source};
use crate::staging::SampleWriter;

/// About this many samples: no round gets that far.
const SAMPLES: u64 = 1 << 40;

/// The same samples again and again. Between epochs a loader runs empty, and on a small set that would be measured.
pub(super) struct Cycled {
    inner: Arc<dyn Source>,
    cycle: Cycle,
}

/// Which sample of a source comes at an index. Clones begin at the same sample, also when that changes.
#[derive(Clone)]
struct Cycle {
    /// Samples in one pass.
    len: u64,
    subset: Option<Subset>,
    /// The position of the sample that comes first.
    first: Arc<AtomicU64>,
}

impl Cycle {
    fn position(&self, index: u64) -> u64 {
        let len = self.len.max(1);
        let (index, to_end) = (index % len, len - self.first.load(Ordering::Relaxed));
        if index < to_end { index + (len - to_end) } else { index - to_end }
    }

    fn within(&self, index: u64) -> u64 {
        let position = self.position(index);
        self.subset.as_ref().map_or(position, |subset| subset.at(position))
    }
}

impl Cycled {
    pub(super) fn new(inner: Arc<dyn Source>) -> Self {
        Self::part(inner, None)
    }

    /// The samples of a part again and again.
    pub(super) fn part(inner: Arc<dyn Source>, subset: Option<Subset>) -> Self {
        let len = subset.as_ref().map_or_else(|| inner.len(), Subset::len);
        Self { inner, cycle: Cycle { len, subset, first: Arc::default() } }
    }

    /// Begins `samples` samples later from now on. Only between epochs: an index is another sample afterwards.
    pub(super) fn advance(&self, samples: u64) {
        let first = self.cycle.position(samples);
        self.cycle.first.store(first, Ordering::Relaxed);
    }
}

impl Source for Cycled {
    fn layout(&self) -> SampleLayout {
        self.inner.layout()
    }

    fn len(&self) -> u64 {
        let len = self.cycle.len;
        // A whole number of passes, so that a shuffle takes each sample equally often. No sample stays no sample.
        len.saturating_mul((SAMPLES / len.max(1)).max(1))
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        self.inner.read(&sample.at(self.cycle.within(sample.index)), out)
    }

    fn direct(&self) -> Option<Direct> {
        let cycle = self.cycle.clone();
        Some(self.inner.direct()?.renumbered(move |index| cycle.within(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::MemorySource;

    #[test]
    fn after_the_last_sample_comes_the_first() {
        let layout = SampleLayout::bytes(&[1]).expect("bytes");
        let cycled = Cycled::new(Arc::new(MemorySource::new(vec![5, 6, 7], layout).expect("three samples")));
        assert_eq!((cycled.len() % 3, cycled.len() > SAMPLES - 3), (0, true));
        let mut memory = [0];
        cycled.read(&SampleContext::of(3_000_001), &mut SampleWriter::over(&mut memory)).expect("read");
        assert_eq!(memory, [6]);
        cycled.advance(2);
        cycled.advance(3_000_002);
        cycled.read(&SampleContext::of(2), &mut SampleWriter::over(&mut memory)).expect("read");
        assert_eq!(memory, [5]);
    }

    #[test]
    fn of_a_part_no_other_sample_is_read() {
        let layout = SampleLayout::bytes(&[1]).expect("bytes");
        let source = Arc::new(MemorySource::new(vec![5, 6, 7, 8], layout).expect("four samples"));
        let cycled = Cycled::part(source, Some(Subset::list([3, 1])));
        cycled.advance(1);
        let read = |index| {
            let mut memory = [0];
            cycled.read(&SampleContext::of(index), &mut SampleWriter::over(&mut memory)).expect("read");
            memory[0]
        };
        assert_eq!([0, 1, 2, 1_000_001].map(read), [6, 8, 6, 8]);
    }
}
