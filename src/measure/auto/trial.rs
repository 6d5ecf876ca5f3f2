//! One slice of one candidate: the user's own source, samples and options, measured in steady state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::until::next_before;
use crate::backend::{Backend, Strategy};
use crate::error::{DeviceError, LoadError, OpenError};
use crate::loader::{Batch, Loader, LoaderOptions};
use crate::measure::check::Checker;
use crate::measure::cycled::Cycled;
use crate::measure::verify::VerifyError;
use crate::source::Source;

/// A slice has at least this many batches, if there is time.
const MIN_BATCHES: u64 = 4;
/// Of these it is still evidence.
const LEAST_BATCHES: u64 = 2;
/// A candidate that fails this often in a row is out.
const MOST_ERRORS: u32 = 3;
/// Samples of a batch that are compared with the source.
const CHECKED: usize = 4;

/// What every trial is made with.
pub(super) struct Ground<B: Backend> {
    backend: B,
    source: Arc<Cycled>,
    options: LoaderOptions,
    epoch: u64,
}

/// What a slice has measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) gb_s: f64,
    pub(super) batches: u64,
}

impl<B: Backend> Ground<B> {
    pub(super) fn new(backend: B, source: Arc<dyn Source>, options: LoaderOptions) -> Self {
        Self { backend, source: Arc::new(Cycled::new(source)), options, epoch: 0 }
    }

    fn options(&self, strategy: Strategy, workers: usize) -> LoaderOptions {
        LoaderOptions { strategy: Some(strategy), workers, ..self.options.clone() }
    }

    pub(super) fn open(&self, strategy: Strategy, workers: usize) -> Result<Loader<B>, OpenError> {
        let source: Arc<dyn Source> = self.source.clone();
        Loader::new(&self.backend, source, self.options(strategy, workers))
    }

    /// Measures for about `length`, or for as long as the fewest batches take; not beyond `limit`. The clock runs from one
    /// delivery to another, after as many batches as there are slots: from then on each has waited for one before it.
    /// `None` if too few came.
    pub(super) fn slice(
        &mut self,
        loader: &mut Loader<B>,
        length: Duration,
        limit: Instant,
    ) -> Result<Option<Slice>, LoadError> {
        self.epoch += 1;
        loader.reset_stats();
        let skip = self.options.slots as u64;
        let mut epoch = loader.epoch(self.epoch);
        let (mut seen, mut timed, mut bytes, mut errors) = (0, 0, 0, 0);
        let mut from = Instant::now();
        let mut to = from;
        while let Some(next) = next_before(&mut epoch, limit) {
            let batch = match next {
                Ok(batch) => batch,
                // The user's own loader tells it again.
                Err(error) if is_lost(&error) || errors + 1 == MOST_ERRORS => return Err(error),
                Err(_) => {
                    errors += 1;
                    continue;
                }
            };
            (to, errors, seen) = (Instant::now(), 0, seen + 1);
            if seen <= skip {
                from = to;
                continue;
            }
            (timed, bytes) = (timed + 1, bytes + self.bytes(&batch));
            if (timed >= MIN_BATCHES && to - from >= length) || to >= limit {
                break;
            }
        }
        drop(epoch);
        // What is on its way is not the next candidate's.
        loader.wait_idle()?;
        // The next slice reads other samples, so that a file is not measured from the cache that this one has filled.
        self.source.advance((seen + skip) * self.options.batch_size as u64);
        let seconds = (to - from).as_secs_f64();
        let measured = timed >= LEAST_BATCHES && seconds > 0.0;
        Ok(measured.then(|| Slice { gb_s: bytes as f64 / 1e9 / seconds, batches: timed }))
    }

    fn bytes(&self, batch: &Batch<B>) -> u64 {
        batch.len() as u64 * self.source.layout().byte_len() as u64
    }

    /// Reads a batch back and compares its first samples with the source. False if none came before `limit`.
    pub(super) fn check(&mut self, loader: &mut Loader<B>, limit: Instant) -> Result<bool, VerifyError> {
        self.epoch += 1;
        let source: Arc<dyn Source> = self.source.clone();
        let mut checker = Checker::new(source, &self.options)?;
        let mut epoch = loader.epoch(self.epoch);
        let Some(batch) = next_before(&mut epoch, limit).transpose()? else { return Ok(false) };
        drop(epoch);
        let number = batch.number();
        let few = batch.len().min(CHECKED);
        let tensor = batch.read().map_err(|source| VerifyError::ReadBack { batch: number, source })?;
        checker.read(number, &batch.indices()[..few])?;
        checker.tensor(number, &tensor[..tensor.len() / batch.len() * few])?;
        Ok(true)
    }
}

fn is_lost(error: &LoadError) -> bool {
    matches!(error, LoadError::Device { source: DeviceError::Lost { .. }, .. } | LoadError::Stopped { .. })
}
