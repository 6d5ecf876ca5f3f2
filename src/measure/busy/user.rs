//! Who takes the batches of a pass, and whether what it saw of them was right.

use std::time::{Duration, Instant};

use super::calibrate::Work;
use crate::backend::{Backend, Consumer, Seen};
use crate::error::DeviceError;
use crate::loader::Batch;
use crate::measure::outcome::Mismatch;
use crate::measure::report::HandOver;

/// Who takes the batches: nobody in particular, or a consumer that computes.
pub(in crate::measure) struct User<'a, B: Backend> {
    busy: Option<(&'a mut B::Consumer, Work)>,
    hand_over: HandOver,
}

impl<'a, B: Backend> User<'a, B> {
    /// Does nothing with them.
    pub(in crate::measure) const fn idle() -> Self {
        Self { busy: None, hand_over: HandOver::Queued }
    }

    /// Computes, where there is work, and takes batches in this way.
    pub(in crate::measure) fn new(busy: Option<(&'a mut B::Consumer, Work)>, hand_over: HandOver) -> Self {
        Self { busy, hand_over }
    }

    /// Whether it computes.
    pub(in crate::measure) const fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// Before the first batch.
    ///
    /// # Errors
    /// The device's error.
    pub(in crate::measure) fn begin(&mut self) -> Result<(), DeviceError> {
        self.busy.as_mut().map_or(Ok(()), |(consumer, work)| consumer.set_iterations(work.iterations))
    }

    /// Uses a batch, and returns how long the CPU waited for the device meanwhile.
    ///
    /// # Errors
    /// The device's error.
    pub(in crate::measure) fn take(&mut self, batch: &Batch<B>) -> Result<Duration, DeviceError> {
        let waited = |wait: &mut dyn FnMut() -> Result<(), DeviceError>| {
            let start = Instant::now();
            wait().map(|()| start.elapsed())
        };
        let mut all = Duration::ZERO;
        if self.hand_over != HandOver::Queued {
            all += waited(&mut || batch.wait())?;
        }
        if let Some((consumer, _)) = &mut self.busy {
            consumer.consume(batch.tensor(), &batch.desc())?;
            if self.hand_over == HandOver::Blocking {
                all += waited(&mut || consumer.finish())?;
            }
        }
        Ok(all)
    }

    /// Behind the last batch: waits for the consumer's own work.
    ///
    /// # Errors
    /// The device's error.
    pub(in crate::measure) fn end(&mut self) -> Result<(), DeviceError> {
        self.busy.as_mut().map_or(Ok(()), |(consumer, _)| consumer.finish())
    }

    /// What the consumer saw, if there is one.
    ///
    /// # Errors
    /// The device's error.
    pub(in crate::measure) fn seen(&mut self) -> Result<Option<Seen>, DeviceError> {
        self.busy.as_mut().map(|(consumer, _)| consumer.seen()).transpose()
    }
}

/// Compares what a consumer saw of `batches` batches with `reference`, the sums of the first ones as they were when they were verified.
///
/// # Errors
/// The first batch that was not there, or that there are batches which changed while they were used.
pub(in crate::measure) fn check_seen(seen: &Seen, batches: u64, reference: &[u32]) -> Result<(), Mismatch> {
    if seen.batches != batches {
        return Err(Mismatch::Uncounted { expected: batches, got: seen.batches });
    }
    let late = reference.iter().zip(&seen.sums).position(|(right, sum)| right != sum);
    if let Some(batch) = late {
        return Err(Mismatch::Absent { batch: batch as u64 });
    }
    match seen.changed {
        0 => Ok(()),
        changed => Err(Mismatch::Changed { changed, batches }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_was_not_there_or_changed_is_found() {
        let saw = |changed, sums: &[u32]| {
            let mut seen = Seen::default();
            (seen.batches, seen.changed, seen.sums) = (3, changed, sums.to_vec());
            seen
        };
        assert_eq!(check_seen(&saw(0, &[1, 2, 3]), 3, &[1, 2]), Ok(()), "of the third nothing is known");
        assert_eq!(check_seen(&saw(0, &[1, 7, 3]), 3, &[1, 2]), Err(Mismatch::Absent { batch: 1 }));
        assert_eq!(check_seen(&saw(1, &[1, 2, 3]), 3, &[1]), Err(Mismatch::Changed { changed: 1, batches: 3 }));
        assert_eq!(check_seen(&saw(0, &[1, 2, 3]), 4, &[]), Err(Mismatch::Uncounted { expected: 4, got: 3 }));
    }
}
