//! The clock of the host's device.

use std::time::{Duration, Instant};

use crate::backend::times::SpanLog;
use crate::backend::{GpuSpan, GpuTimes, SubmissionId};

/// When copies and kernels ran, as far as they are told apart.
#[derive(Debug)]
pub(super) struct Timing {
    /// The zero of the device's clock.
    zero: Instant,
    /// When the device last ended something.
    idle_since: Instant,
    log: SpanLog,
}

impl Timing {
    /// Keeps the times of `batches` batches.
    pub(super) fn new(batches: usize) -> Self {
        let zero = Instant::now();
        Self { zero, idle_since: zero, log: SpanLog::new(batches) }
    }

    /// Adds a submission that has just ended. A batch that was executed late, in a row with others, has taken less than it should have:
    /// there was no more time.
    pub(super) fn ended(&mut self, id: SubmissionId, start: Instant, copy: Duration, kernel: Duration) {
        let end = Instant::now();
        let there_was = end.saturating_duration_since(start.max(self.idle_since)).as_secs_f64();
        let scale = (there_was / (copy + kernel).as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0);
        let end_s = (end - self.zero).as_secs_f64();
        let middle = end_s - kernel.as_secs_f64() * scale;
        self.idle_since = end;
        self.log.add(GpuSpan { id, copy: middle - copy.as_secs_f64() * scale..middle, kernel: middle..end_s });
    }

    pub(super) fn times(&self) -> Option<GpuTimes> {
        self.log.sum()
    }

    pub(super) fn spans(&mut self, spans: &mut Vec<GpuSpan>) {
        self.log.take(spans);
    }
}
