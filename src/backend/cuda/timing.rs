//! Events around a batch's copy and its kernels.
//!
//! They are part of the streams, so that what they bracket is what ran: a copy on its stream while the kernels of the batch before
//! ran on the other.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::driver::{self, Event};
use crate::backend::times::SpanLog;
use crate::backend::{GpuSpan, GpuTimes, SubmissionId};

/// The events of one batch.
#[derive(Debug)]
pub(super) struct Marks {
    copy: [Event; 2],
    kernel: [Event; 2],
    /// Whether it was copied by a command of its own.
    copied: bool,
}

/// A lane's events, for as many batches as can be in flight. A batch that finds none free is not measured.
#[derive(Debug)]
pub(super) struct Timing {
    free: Vec<Marks>,
    /// Those of the batch that is being queued.
    current: Option<Marks>,
    /// The last batch's first event, and when that was: times are short from there, and a float holds them exactly enough.
    last: Event,
    last_s: f64,
    /// Whether anything is computed.
    computes: bool,
    log: SpanLog,
}

impl Timing {
    pub(super) fn new(
        context: &Arc<CudaContext>,
        stream: &CudaStream,
        batches: usize,
        computes: bool,
    ) -> Result<Self, DriverError> {
        let pair = || Ok([Event::timed(context)?, Event::timed(context)?]);
        let marks = |_| Ok(Marks { copy: pair()?, kernel: pair()?, copied: false });
        let free = (0..batches).map(marks).collect::<Result<_, DriverError>>()?;
        let last = Event::timed(context)?;
        last.record(stream)?;
        Ok(Self { free, current: None, last, last_s: 0.0, computes, log: SpanLog::new(batches) })
    }

    /// Marks the start of a batch's copy.
    pub(super) fn copy_starts(&mut self, stream: &CudaStream) {
        self.mark(true, stream, |marks| &marks.copy[0]);
    }

    /// Marks the end of its copy.
    pub(super) fn copy_ends(&mut self, stream: &CudaStream) {
        self.mark(false, stream, |marks| &marks.copy[1]);
        if let Some(marks) = &mut self.current {
            marks.copied = true;
        }
    }

    /// Marks the start of its kernels; `alone` where there was no copy before them.
    pub(super) fn kernel_starts(&mut self, stream: &CudaStream, alone: bool) {
        self.mark(alone, stream, |marks| &marks.kernel[0]);
    }

    /// Marks the end of its kernels.
    pub(super) fn kernel_ends(&mut self, stream: &CudaStream) {
        self.mark(false, stream, |marks| &marks.kernel[1]);
    }

    fn mark(&mut self, first: bool, stream: &CudaStream, event: impl Fn(&Marks) -> &Event) {
        if first {
            // What a batch that failed has left goes first.
            self.current = self.current.take().or_else(|| self.free.pop());
            if let Some(marks) = &mut self.current {
                marks.copied = false;
            }
        }
        if let Some(marks) = &self.current
            && let Err(error) = event(marks).record(stream)
        {
            log::debug!("a batch is not measured: {}", driver::explain(error));
            self.free.extend(self.current.take());
        }
    }

    /// The marks of the batch that was queued, all of which are set.
    pub(super) fn queued(&mut self) -> Option<Marks> {
        self.current.take()
    }

    /// Reads the times of a batch that has ended.
    pub(super) fn ended(&mut self, id: SubmissionId, mut marks: Marks) {
        match self.span(id, &marks) {
            Ok(span) if span.copy.start <= span.copy.end && span.kernel.start <= span.kernel.end => {
                self.last_s = span.copy.start;
                let first = if marks.copied { &mut marks.copy[0] } else { &mut marks.kernel[0] };
                std::mem::swap(&mut self.last, first);
                self.log.add(span);
            }
            Ok(_) => self.log.distrust(),
            Err(error) => log::debug!("a batch's times cannot be read: {}", driver::explain(error)),
        }
        self.free.push(marks);
    }

    fn span(&self, id: SubmissionId, marks: &Marks) -> Result<GpuSpan, DriverError> {
        let Marks { copy, kernel, copied } = marks;
        let first = if *copied { &copy[0] } else { &kernel[0] };
        let start = self.last_s + first.seconds_since(&self.last)?;
        let copy_end = if *copied { start + copy[1].seconds_since(first)? } else { start };
        let kernel_start = start + kernel[0].seconds_since(first)?;
        let kernel_s = if self.computes { kernel[1].seconds_since(&kernel[0])? } else { 0.0 };
        Ok(GpuSpan { id, copy: start..copy_end, kernel: kernel_start..kernel_start + kernel_s })
    }

    pub(super) fn times(&self) -> Option<GpuTimes> {
        self.log.sum()
    }

    pub(super) fn spans(&mut self, spans: &mut Vec<GpuSpan>) {
        self.log.take(spans);
    }
}
