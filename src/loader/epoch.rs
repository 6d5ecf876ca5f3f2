//! One pass over the source.

use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::cancel::Canceller;
use super::observe::monitor;
use super::order::resume::{EpochPosition, ResumeError, ResumeToken};
use super::pump::{Delivered, Delivery, ToPump};
use super::{Loader, spin_wait};
use crate::backend::Backend;
use crate::error::{DeviceError, LoadError};

/// The batches of one epoch, in order, or as they get ready where the loader is not
/// [`ordered`](super::LoaderOptions::ordered). An error takes the place of the batch it concerns, and the iteration goes on after
/// it, unless the device is lost, the loader is cancelled, or too many samples are bad. Dropping it early gives up what is left and
/// returns at once.
#[must_use = "an epoch delivers nothing until it is iterated"]
pub struct Epoch<'a, B: Backend> {
    loader: &'a mut Loader<B>,
    generation: u64,
    epoch: u64,
    /// Batches answered, those before a resumed epoch's first included.
    at: u64,
    /// Batches in all: fewer than the epoch has, once it was wound down.
    end: u64,
    /// Bad samples in the batches answered.
    bad: u64,
    over: bool,
    /// Time inside calls that came back without the batch they waited for.
    waited: Duration,
}

impl<'a, B: Backend> Epoch<'a, B> {
    pub(super) fn new(loader: &'a mut Loader<B>, generation: u64, at: EpochPosition, end: u64) -> Self {
        let EpochPosition { epoch, batch, bad } = at;
        loader.metrics.started(epoch);
        monitor::epoch_begins(epoch, batch..end);
        Self { loader, generation, epoch, at: batch, end, bad, over: false, waited: Duration::ZERO }
    }

    /// The epoch's number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.epoch
    }

    /// The batches still to come, errors included, and those of which no sample will be left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        if self.over { 0 } else { self.end - self.at }
    }

    /// Ends the epoch early and loses no work: no further batch is begun, and those that are being filled or on their way
    /// are still delivered. [`remaining`](Self::remaining) says how many.
    ///
    /// Dropping the epoch instead returns at once, and gives those batches up.
    pub fn wind_down(&mut self) {
        let generation = self.generation;
        // A lost device or a pump that is gone shows as an error of the next `next`.
        if let Ok(Some(end)) = self.loader.ask(|reply| ToPump::WindDown { generation, reply }) {
            self.end = end.max(self.at);
        }
    }

    /// Where delivery stands: before the first batch that `next` has not answered. At the end it is the next epoch's beginning.
    ///
    /// # Errors
    /// [`ResumeError::Unordered`].
    pub fn resume_token(&self) -> Result<ResumeToken, ResumeError> {
        let Loader { source_samples, layout, options, .. } = &*self.loader;
        if !options.ordered {
            return Err(ResumeError::Unordered);
        }
        let batches = self.loader.batches_per_epoch();
        let at = EpochPosition { epoch: self.epoch, batch: self.at, bad: self.bad };
        Ok(ResumeToken::new(*source_samples, layout.sample(), options, at, batches))
    }

    /// What ends the loader's waits, from another thread.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.loader.canceller()
    }

    /// The next batch, as [`Iterator::next`], if it comes within this time.
    ///
    /// # Errors
    /// As `next`; [`LoadError::TimedOut`], which takes no batch's place: the next call waits for the same batch.
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Result<Batch<B>, LoadError>> {
        // A time that ends beyond the clock's reach does not end.
        let end = Instant::now().checked_add(timeout).map(|deadline| (deadline, timeout));
        self.next_until(end)
    }

    fn next_until(&mut self, end: Option<(Instant, Duration)>) -> Option<Result<Batch<B>, LoadError>> {
        while self.remaining() > 0 {
            if let Err(error) = self.check() {
                return Some(Err(error));
            }
            let (delivery, start) = match self.receive(end) {
                Ok(received) => received,
                Err(error) => return Some(Err(self.end_on(error))),
            };
            if let Some(batch) = self.hand_over(delivery, start) {
                return Some(batch);
            }
        }
        None
    }

    /// The next delivery of this epoch, and since when it was waited for, if it was not there at once.
    fn receive(
        &mut self,
        end: Option<(Instant, Duration)>,
    ) -> Result<(Delivery<B::Tensor>, Option<Instant>), LoadError> {
        let Loader { deliveries, activity, canceller, .. } = &*self.loader;
        let mut start = None;
        loop {
            self.check_leases()?;
            let delivery = match deliveries.try_recv() {
                Ok(delivery) => delivery,
                Err(_) => {
                    let since = *start.get_or_insert_with(Instant::now);
                    let _waiting = activity.wait();
                    let received = match end {
                        None => spin_wait::recv(deliveries).map(Some),
                        Some((deadline, _)) => spin_wait::recv_deadline(deliveries, deadline),
                    };
                    match (received, end) {
                        (Ok(Some(delivery)), _) => delivery,
                        (Ok(None), Some((_, timeout))) => {
                            self.waited += since.elapsed();
                            return Err(LoadError::TimedOut(timeout));
                        }
                        _ => return Err(LoadError::Stopped { reason: self.loader.stop_reason() }),
                    }
                }
            };
            if canceller.is_cancelled() {
                self.loader.put_back(delivery.output);
                return Err(LoadError::Cancelled);
            }
            if delivery.generation == self.generation {
                return Ok((delivery, start));
            }
            self.loader.put_back(delivery.output);
        }
    }

    /// The next batch, as [`Iterator::next`], and gives the thread back until it is there.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use gpufeed::{Loader, LoaderOptions, SampleLayout, SyntheticSource, backend::host::HostBackend};
    /// # let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 100));
    /// # let mut loader = Loader::new(&HostBackend::new(), source, LoaderOptions::default())?;
    /// # pollster::block_on(async {
    /// let mut epoch = loader.epoch(0);
    /// while let Some(batch) = epoch.next_async().await {
    ///     println!("{} samples", batch?.len());
    /// }
    /// # Ok::<(), gpufeed::LoadError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn next_async(&mut self) -> Option<Result<Batch<B>, LoadError>> {
        while self.remaining() > 0 {
            if let Err(error) = self.check() {
                return Some(Err(error));
            }
            let start = self.loader.deliveries.is_empty().then(Instant::now);
            let waiting = self.loader.activity.wait();
            let received = self.loader.deliveries.recv_async().await;
            drop(waiting);
            let Ok(delivery) = received else {
                let reason = self.loader.stop_reason();
                return Some(Err(self.end_on(LoadError::Stopped { reason })));
            };
            if self.loader.canceller.is_cancelled() || delivery.generation != self.generation {
                self.loader.put_back(delivery.output);
                continue;
            }
            if let Some(batch) = self.hand_over(delivery, start) {
                return Some(batch);
            }
        }
        None
    }

    /// Why nothing can come.
    fn check(&mut self) -> Result<(), LoadError> {
        if self.loader.canceller.is_cancelled() {
            return Err(self.end_on(LoadError::Cancelled));
        }
        self.check_leases()
    }

    fn check_leases(&self) -> Result<(), LoadError> {
        // An error may be on its way although no tensor is.
        if self.loader.outputs.all_leased() && self.loader.deliveries.is_empty() {
            return Err(LoadError::AllTensorsLeased { outputs: self.loader.outputs.size() });
        }
        Ok(())
    }

    /// Passes an error on, after which nothing comes if it is one of those.
    fn end_on(&mut self, error: LoadError) -> LoadError {
        self.over |= matches!(
            error,
            LoadError::Stopped { .. }
                | LoadError::Cancelled
                | LoadError::TooManyBadSamples { .. }
                | LoadError::Device { source: DeviceError::Lost { .. }, .. }
        );
        error
    }

    /// Makes a batch of a delivery of this epoch, which was waited for since `start`. `None` for a batch of which no sample is left.
    fn hand_over(
        &mut self,
        delivery: Delivery<B::Tensor>,
        start: Option<Instant>,
    ) -> Option<Result<Batch<B>, LoadError>> {
        // What takes no batch's place is not counted as one.
        let of_a_batch = delivery.output.is_some();
        self.at += u64::from(of_a_batch);
        self.bad += delivery.bad.len() as u64;
        delivery.bad.into_iter().for_each(|bad| self.loader.bad_log.add(bad));
        match (delivery.result, delivery.output) {
            (Ok(Delivered { samples: 0, .. }), output) => {
                self.loader.put_back(output);
                None
            }
            (Ok(delivered), Some(output)) => {
                let (layout, samples, now) = (&self.loader.layout, delivered.samples, Instant::now());
                let bytes = samples.saturating_mul(layout.sample().byte_len());
                let at_once = start.is_none() && self.waited.is_zero();
                let start = start.unwrap_or(now);
                let (wait, queued) = (now - start + take(&mut self.waited), now - delivered.at);
                self.loader.metrics.delivered(samples, bytes, wait, queued, at_once);
                if let Some(recorder) = &self.loader.recorder {
                    recorder.next(start..now, (self.epoch, delivered.number));
                }
                let desc = self.loader.options.preprocess.tensor(layout, samples);
                let pool = Arc::clone(&self.loader.outputs);
                Some(Ok(
                    Batch::new(output, pool, desc, delivered.number, self.epoch, now).with_padding(delivered.padding)
                ))
            }
            (Ok(_), None) => {
                let reason = "a batch was delivered without its tensor".to_owned();
                Some(Err(LoadError::Stopped { reason }))
            }
            (Err(error), output) => {
                self.loader.put_back(output);
                if of_a_batch {
                    self.loader.metrics.failed();
                }
                Some(Err(self.end_on(error)))
            }
        }
    }
}

impl<B: Backend> Iterator for Epoch<'_, B> {
    type Item = Result<Batch<B>, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_until(None)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A lost device ends the epoch early, and an error that takes no batch's place comes on top.
        (0, None)
    }
}

impl<B: Backend> Drop for Epoch<'_, B> {
    fn drop(&mut self) {
        self.loader.metrics.ended();
        monitor::epoch_ends(self.epoch, self.remaining(), || self.loader.stats());
        if self.at < self.end {
            // Fails only if the pump is gone, and then there is nothing to stop.
            let _ = self.loader.pump.send(ToPump::Stop);
        }
    }
}
