//! One slice of one candidate: the user's own source, samples and options, measured in steady state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::candidate::Candidate;
use crate::backend::{Backend, Consumer};
use crate::error::{DeviceError, LoadError, OpenError};
use crate::loader::{Epoch, Loader, LoaderOptions};
use crate::measure::busy::{User, Work, calibrate, check_seen};
use crate::measure::cycled::Cycled;
use crate::measure::outcome::VerifyError;
use crate::measure::report::HandOver;
use crate::measure::verify::Checker;
use crate::source::Source;

/// A slice has at least this many batches, if there is time.
const MIN_BATCHES: u64 = 4;
/// Fewer batches than this are not evidence.
const MIN_EVIDENCE: u64 = 2;
/// A candidate that fails this often in a row is out.
const MAX_ERRORS: u32 = 3;
/// Samples of a batch that are compared with the source.
const CHECKED: usize = 4;

/// What every trial is made with.
pub(super) struct TrialContext<B: Backend> {
    backend: B,
    source: Arc<Cycled>,
    options: LoaderOptions,
    epoch: u64,
    /// What computes behind each batch, where anybody does.
    load: Option<(B::Consumer, Work)>,
}

/// What a slice has measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) gb_s: f64,
    pub(super) batches: u64,
    /// The time of one.
    pub(super) batch: Duration,
}

/// When batches came.
#[derive(Clone, Copy, Debug)]
struct Deliveries {
    first: Instant,
    last: Instant,
    /// The device has done them all.
    end: Instant,
    batches: u64,
    samples: u64,
}

impl Deliveries {
    fn add(&mut self, samples: u64) {
        self.last = Instant::now();
        if self.batches == 0 {
            self.first = self.last;
        }
        (self.batches, self.samples) = (self.batches + 1, self.samples + samples);
    }

    /// Seconds a batch in steady state, without the time in which the loader fills up or runs empty.
    ///
    /// A batch is delivered when its work is queued. Where the source is the slower part, batches come in its rhythm from the first on, and
    /// the time between deliveries is a batch's; where the device is, it works without a pause from the first delivery until it is idle,
    /// and that time is the batches'. Each is at most the true one where the other part is slower, so the longer one is true.
    fn batch_s(&self, whole: bool) -> Option<f64> {
        let rhythm = (self.last - self.first).as_secs_f64() / self.batches.saturating_sub(1).max(1) as f64;
        let device = (self.end - self.first).as_secs_f64() / self.batches.max(1) as f64;
        Some(if whole { rhythm.max(device) } else { rhythm }).filter(|seconds| *seconds > 0.0)
    }
}

impl<B: Backend> TrialContext<B> {
    pub(super) fn new(backend: B, source: Arc<dyn Source>, options: LoaderOptions) -> Self {
        Self { backend, source: Arc::new(Cycled::part(source, options.subset.clone())), options, epoch: 0, load: None }
    }

    /// Has a consumer compute for about so long behind each batch from now on; what is so long is looked for no longer than `most`.
    ///
    /// # Errors
    /// The device's error, and where no work is about so long.
    pub(super) fn compute(&mut self, time: Duration, most: Duration) -> Result<(), DeviceError> {
        self.load = None;
        if time.is_zero() {
            return Ok(());
        }
        let mut consumer = self.backend.consumer()?;
        let work = calibrate(&mut consumer, time, most)?;
        consumer.set_iterations(work.iterations)?;
        self.load = Some((consumer, work));
        Ok(())
    }

    /// Has it compute for about this part, from 0 on, of what it was made for.
    ///
    /// # Errors
    /// The device's error.
    pub(super) fn compute_part(&mut self, part: f64) -> Result<(), DeviceError> {
        let Some((consumer, work)) = &mut self.load else { return Ok(()) };
        #[allow(clippy::cast_sign_loss)] // A part of a positive number.
        consumer.set_iterations((f64::from(work.iterations) * part.max(0.0)) as u32)
    }

    pub(super) fn open(&self, (strategy, workers): Candidate) -> Result<Loader<B>, OpenError> {
        let source: Arc<dyn Source> = self.source.clone();
        // The source has the part's samples alone.
        let options = LoaderOptions { strategy: Some(strategy), workers, subset: None, ..self.options.clone() };
        Loader::new(&self.backend, source, options)
    }

    /// Measures for at least `length` and as many batches as make evidence (where they are slow, the fewest); not beyond `limit`.
    /// `None` if too few came.
    pub(super) fn slice(
        &mut self,
        loader: &mut Loader<B>,
        length: Duration,
        slow: bool,
        limit: Instant,
    ) -> Result<Option<Slice>, VerifyError> {
        let (length, least) = if slow { (Duration::ZERO, MIN_EVIDENCE) } else { (length, MIN_BATCHES) };
        let (deliveries, in_time) = self.pass(loader, length, least, limit)?;
        // Out of time only the rhythm of the deliveries is known, which is the device's once all slots have been used.
        let few = if in_time { MIN_EVIDENCE } else { self.options.slots as u64 + MIN_EVIDENCE };
        let Some(batch_s) = deliveries.batch_s(in_time).filter(|_| deliveries.batches >= few) else { return Ok(None) };
        let bytes = deliveries.samples * self.source.layout().byte_len() as u64;
        let gb_s = bytes as f64 / deliveries.batches as f64 / 1e9 / batch_s;
        Ok(Some(Slice { gb_s, batches: deliveries.batches, batch: Duration::from_secs_f64(batch_s) }))
    }

    /// Runs the first batches, for which kernels are compiled and memory is touched for the first time, and returns about how long one
    /// took.
    pub(super) fn warm_up(
        &mut self,
        loader: &mut Loader<B>,
        length: Duration,
        limit: Instant,
    ) -> Result<Duration, VerifyError> {
        let (deliveries, in_time) = self.pass(loader, length, 1, limit)?;
        Ok(deliveries.batch_s(in_time).map_or(Duration::ZERO, Duration::from_secs_f64))
    }

    /// Takes batches as they come, from an idle device to an idle device, and whether all that was begun has ended in time.
    fn pass(
        &mut self,
        loader: &mut Loader<B>,
        length: Duration,
        least: u64,
        limit: Instant,
    ) -> Result<(Deliveries, bool), VerifyError> {
        self.epoch += 1;
        let mut user = User::new(self.load.as_mut().map(|(consumer, work)| (consumer, *work)), HandOver::Queued);
        let (mut deliveries, in_time) = take_batches(loader.epoch(self.epoch), &mut user, length, least, limit)?;
        // What is on its way is not the next candidate's.
        loader.wait_idle()?;
        user.end().map_err(VerifyError::Consumer)?;
        deliveries.end = Instant::now();
        if let Some(seen) = user.seen().map_err(VerifyError::Consumer)? {
            check_seen(&seen, deliveries.batches, &[])?;
        }
        // The next slice reads other samples, so that a file is not measured from the cache that this one has filled.
        let begun = deliveries.batches + self.options.slots as u64;
        self.source.advance(begun * self.options.batch_size as u64);
        Ok((deliveries, in_time))
    }

    /// Reads a batch back and compares its first samples with the source. False if none came before `limit`.
    pub(super) fn check(&mut self, loader: &mut Loader<B>, limit: Instant) -> Result<bool, VerifyError> {
        self.epoch += 1;
        let source: Arc<dyn Source> = self.source.clone();
        let mut checker = Checker::new(source, &self.options)?;
        let left = limit.saturating_duration_since(Instant::now());
        let batch = match loader.epoch(self.epoch).next_timeout(left) {
            None | Some(Err(LoadError::TimedOut(_))) => return Ok(false),
            Some(next) => next?,
        };
        let number = batch.number();
        let few = batch.len().min(CHECKED);
        let tensor = batch.read().map_err(|source| VerifyError::ReadBack { batch: number, source })?;
        checker.read(batch.epoch(), number, &batch.indices()[..few])?;
        checker.tensor(number, &tensor[..tensor.len() / batch.len() * few])?;
        Ok(true)
    }
}

/// Takes batches for at least `length`, and as many, but not beyond `limit`; whether they all came in time.
fn take_batches<B: Backend>(
    mut epoch: Epoch<'_, B>,
    user: &mut User<'_, B>,
    length: Duration,
    least: u64,
    limit: Instant,
) -> Result<(Deliveries, bool), VerifyError> {
    let start = Instant::now();
    let mut deliveries = Deliveries { first: start, last: start, end: start, batches: 0, samples: 0 };
    let (mut errors, mut ending) = (0, false);
    loop {
        match epoch.next_timeout(limit.saturating_duration_since(Instant::now())) {
            None => return Ok((deliveries, true)),
            Some(Err(LoadError::TimedOut(_))) => return Ok((deliveries, false)),
            Some(Ok(batch)) => {
                errors = 0;
                user.take(&batch).map_err(VerifyError::Consumer)?;
                deliveries.add(batch.len() as u64);
            }
            // The user's own loader will report it again.
            Some(Err(error)) if is_final(&error) || errors + 1 == MAX_ERRORS => return Err(error.into()),
            Some(Err(_)) => errors += 1,
        }
        if !ending && deliveries.batches >= least && start.elapsed() >= length {
            epoch.wind_down();
            ending = true;
        }
    }
}

/// Whether no batch comes after this error.
fn is_final(error: &LoadError) -> bool {
    matches!(error, LoadError::Device { source: DeviceError::Lost { .. }, .. } | LoadError::Stopped { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches that come at these milliseconds, and a device that is idle at `end`.
    fn batch_ms(delivered: &[u64], end: u64) -> f64 {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let (first, last) = (at(delivered[0]), at(delivered[delivered.len() - 1]));
        let deliveries = Deliveries { first, last, end: at(end), batches: delivered.len() as u64, samples: 1 };
        (deliveries.batch_s(true).expect("time passed") * 1e3).round()
    }

    #[test]
    fn the_slower_part_sets_the_time_of_a_batch_whichever_it_is() {
        // The source takes 10 ms a batch, the device 2.
        assert_eq!(batch_ms(&[10, 20, 30, 40, 50], 52), 10.0);
        // The source takes 2 ms and the device 10: with three slots the fourth waits for the first.
        assert_eq!(batch_ms(&[2, 4, 6, 12, 22], 52), 10.0);
    }
}
