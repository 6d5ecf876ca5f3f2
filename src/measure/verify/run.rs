//! Checking what a loader delivers, batch by batch, before any of it is timed.
//!
//! An untimed epoch runs with the very settings that will be timed. Of every batch the indices are compared with the sampler's
//! order, the device's fingerprint of each sample, over all of its fields there, with the CPU's own, of the sample as the source reads it
//! once more, and the fields on the host with that. Of the first, a middle and the last batch (of small batches: of all) the tensors are read
//! back whole: the first field's is compared with the f64 oracle, the others with the source's bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::check::Checker;
use crate::backend::{Backend, Consumer, Footprint};
use crate::loader::{Batch, Loader, LoaderOptions, Order, Sampler};
use crate::measure::busy::check_seen;
use crate::measure::outcome::{Verified, VerifyError};
use crate::source::Source;

/// Tensors up to this many bytes are all compared whole.
const SMALL_TENSOR: usize = 256 << 10;

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::measure) struct Extent {
    /// At most this many batches: an epoch, usually. [`Extent::minimum`] is checked in any case.
    pub(in crate::measure) batches: u64,
    /// No further batch after this long. [`Extent::minimum`] is checked in any case.
    pub(in crate::measure) time: Duration,
}

impl Extent {
    /// Every slot and every output is used at least twice by then.
    fn minimum(options: &LoaderOptions) -> u64 {
        (options.slots + options.outputs + 2) as u64
    }
}

/// Checks a loader with these options on `source`, and returns the memory it took. A consumer that computes looks at each batch that was
/// found right: what it saw is what it has to see of the same batches later.
///
/// # Errors
/// [`VerifyError`]; of wrong data it says in which batch and sample, and what differs.
pub(in crate::measure) fn verify<B: Backend>(
    backend: &B,
    source: &Arc<dyn Source>,
    options: &LoaderOptions,
    extent: Extent,
    mut consumer: Option<&mut B::Consumer>,
    stop: &dyn Fn() -> bool,
) -> Result<Checked, VerifyError> {
    let options = LoaderOptions { fingerprints: true, ..options.clone() };
    let mut loader = Loader::new(backend, Arc::clone(source), options.clone())?;
    let footprint = loader.footprint();
    let mut checker = Checker::new(Arc::clone(source), &options)?;
    let minimum = Extent::minimum(&options);
    let batches = loader.batches_per_epoch().min(extent.batches.max(minimum));
    let small = loader.tensor().byte_len() <= SMALL_TENSOR;
    if let Some(consumer) = &mut consumer {
        consumer.set_iterations(0).map_err(VerifyError::Consumer)?;
    }
    let started = Instant::now();
    let mut done = Verified::default();
    for batch in loader.epoch(0) {
        if stop() {
            return Err(VerifyError::Stopped);
        }
        let batch = batch?;
        let number = done.batches + 1;
        let last = number >= batches || (number >= minimum && started.elapsed() >= extent.time);
        let whole = small || last || number == 1 || number == minimum.div_ceil(2);
        check_batch(&mut checker, &options, &batch, whole)?;
        if let Some(consumer) = &mut consumer {
            consumer.consume(batch.tensor(), &batch.desc()).map_err(VerifyError::Consumer)?;
        }
        done.batches = number;
        done.samples += batch.len() as u64;
        done.tensors += u64::from(whole);
        if last {
            break;
        }
    }
    let seen = consumer.map(|consumer| consumer.seen()).transpose().map_err(VerifyError::Consumer)?;
    if let Some(seen) = &seen {
        check_seen(seen, done.batches, &[])?;
    }
    Ok(Checked { verified: done, footprint, sums: seen.map(|seen| seen.sums).unwrap_or_default() })
}

/// A loader that delivers what it should.
pub(in crate::measure) struct Checked {
    pub(in crate::measure) verified: Verified,
    pub(in crate::measure) footprint: Footprint,
    /// What a consumer saw of the batches, from the first on.
    pub(in crate::measure) sums: Vec<u32>,
}

/// Checks one batch of a loader that computes fingerprints.
fn check_batch<B: Backend>(
    checker: &mut Checker,
    options: &LoaderOptions,
    batch: &Batch<B>,
    whole: bool,
) -> Result<(), VerifyError> {
    let number = batch.number();
    let read_back = |source| VerifyError::ReadBack { batch: number, source };
    checker.indices(&order(checker.source(), options, batch.epoch()), number, batch.indices())?;
    checker.read(batch.epoch(), number, batch.indices())?;
    checker.host_fields(batch)?;
    let fingerprints = batch.fingerprints().map_err(read_back)?;
    checker.fingerprints(number, fingerprints.as_deref())?;
    if whole {
        checker.tensor(number, &batch.read().map_err(read_back)?)?;
        checker.further_tensors(batch)?;
    }
    Ok(())
}

/// Checks the last batch of a timed round: indices, fields on the host and the whole tensors.
///
/// # Errors
/// As [`verify`].
pub(in crate::measure) fn check_timed<B: Backend>(
    checker: &mut Checker,
    options: &LoaderOptions,
    batch: &Batch<B>,
) -> Result<(), VerifyError> {
    let number = batch.number();
    checker.indices(&order(checker.source(), options, batch.epoch()), number, batch.indices())?;
    checker.read(batch.epoch(), number, batch.indices())?;
    checker.host_fields(batch)?;
    let tensor = batch.read().map_err(|source| VerifyError::ReadBack { batch: number, source })?;
    checker.tensor(number, &tensor)?;
    checker.further_tensors(batch)
}

fn order(source: &dyn Source, options: &LoaderOptions, epoch: u64) -> Sampler {
    Sampler::new(Order::new(source.len(), options), epoch)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
