//! How long the device itself took.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::SubmissionId;

/// What the device's own clock measured, summed over batches. Batches whose times were not read yet are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GpuTimes {
    /// Seconds of copies from staging memory to the device, where they are commands of their own.
    pub copy_s: f64,
    /// Seconds of kernels. Where a kernel reads staging memory itself, the bus is in here.
    pub kernel_s: f64,
    /// Batches measured.
    pub batches: u64,
}

impl GpuTimes {
    /// What came since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            copy_s: (self.copy_s - earlier.copy_s).max(0.0),
            kernel_s: (self.kernel_s - earlier.kernel_s).max(0.0),
            batches: self.batches.saturating_sub(earlier.batches),
        }
    }
}

/// When the device copied and computed one submission, in seconds of its own clock, which begins anywhere.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GpuSpan {
    /// Which submission.
    pub id: SubmissionId,
    /// The copy from staging memory; empty where it is no command of its own.
    pub copy: Range<f64>,
    /// The kernels.
    pub kernel: Range<f64>,
}

/// A lane's spans and their sum: as many as can be in flight wait to be taken, and older ones give way.
#[derive(Debug)]
pub(super) struct SpanLog {
    /// `None` once the clock told nonsense: there is no knowing which times were right.
    sum: Option<GpuTimes>,
    spans: VecDeque<GpuSpan>,
    max: usize,
}

impl SpanLog {
    pub(super) fn new(max: usize) -> Self {
        Self { sum: Some(GpuTimes::default()), spans: VecDeque::with_capacity(max), max }
    }

    pub(super) fn add(&mut self, span: GpuSpan) {
        let Some(sum) = &mut self.sum else { return };
        sum.copy_s += span.copy.end - span.copy.start;
        sum.kernel_s += span.kernel.end - span.kernel.start;
        sum.batches += 1;
        if self.spans.len() >= self.max {
            self.spans.pop_front();
        }
        self.spans.push_back(span);
    }

    /// Takes all times back.
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    pub(super) fn distrust(&mut self) {
        self.sum = None;
        self.spans.clear();
    }

    pub(super) fn sum(&self) -> Option<GpuTimes> {
        self.sum
    }

    pub(super) fn take(&mut self, spans: &mut Vec<GpuSpan>) {
        spans.extend(self.spans.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_nobody_takes_give_way_and_are_summed_all_the_same() {
        let mut log = SpanLog::new(2);
        (0..5).for_each(|id| log.add(GpuSpan { id, copy: 1.0..2.0, kernel: 2.0..2.5 }));
        let mut spans = Vec::new();
        log.take(&mut spans);
        assert_eq!(spans.iter().map(|span| span.id).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(log.sum(), Some(GpuTimes { copy_s: 5.0, kernel_s: 2.5, batches: 5 }));
    }
}
