//! Receiving what the pump delivers, and making batches of it.

use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::batch::Batch;
use super::super::pump::{Delivered, Delivery};
use super::super::{Loader, spin_wait};
use super::Epoch;
use crate::backend::Backend;
use crate::error::{DeviceError, LoadError};

impl<B: Backend> Epoch<'_, B> {
    pub(super) fn next_until(&mut self, end: Option<(Instant, Duration)>) -> Option<Result<Batch<B>, LoadError>> {
        while self.goes_on() {
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
        let mut start = None;
        loop {
            self.check_leases()?;
            let Loader { deliveries, activity, .. } = self.loader();
            let delivery = match deliveries.try_recv() {
                Ok(delivery) => delivery,
                Err(_) => {
                    let since = *start.get_or_insert_with(Instant::now);
                    let waiting = activity.wait();
                    let received = match end {
                        None => spin_wait::recv(deliveries).map(Some),
                        Some((deadline, _)) => spin_wait::recv_deadline(deliveries, deadline),
                    };
                    drop(waiting);
                    match (received, end) {
                        (Ok(Some(delivery)), _) => delivery,
                        (Ok(None), Some((_, timeout))) => {
                            self.waited += since.elapsed();
                            return Err(LoadError::TimedOut(timeout));
                        }
                        _ => return Err(self.stopped()),
                    }
                }
            };
            if self.loader().canceller.is_cancelled() {
                self.loader().put_back(delivery.output);
                return Err(LoadError::Cancelled);
            }
            match self.own(delivery) {
                Some(delivery) => return Ok((delivery, start)),
                None => continue,
            }
        }
    }

    /// A delivery, if it is of this epoch and the loader was not cancelled.
    pub(super) fn own(&self, delivery: Delivery<B::Tensor>) -> Option<Delivery<B::Tensor>> {
        if delivery.generation == self.generation && !self.loader().canceller.is_cancelled() {
            return Some(delivery);
        }
        self.loader().put_back(delivery.output);
        None
    }

    /// The next batch, as [`try_next`](Self::try_next), and gives the thread back until it is there.
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
    ///
    /// # Errors
    /// As `next`.
    pub async fn next_async(&mut self) -> Option<Result<Batch<B>, LoadError>> {
        while self.goes_on() {
            if let Err(error) = self.check() {
                return Some(Err(error));
            }
            let Loader { deliveries, activity, .. } = self.loader();
            let start = deliveries.is_empty().then(Instant::now);
            let waiting = activity.wait();
            let received = deliveries.recv_async().await;
            drop(waiting);
            let Ok(delivery) = received else {
                let error = self.stopped();
                return Some(Err(self.end_on(error)));
            };
            let Some(delivery) = self.own(delivery) else { continue };
            if let Some(batch) = self.hand_over(delivery, start) {
                return Some(batch);
            }
        }
        None
    }

    /// Why nothing can come.
    pub(super) fn check(&mut self) -> Result<(), LoadError> {
        if self.loader().canceller.is_cancelled() {
            return Err(self.end_on(LoadError::Cancelled));
        }
        self.check_leases()
    }

    fn check_leases(&self) -> Result<(), LoadError> {
        let Loader { outputs, deliveries, .. } = self.loader();
        // An error may be on its way although no tensor is.
        if outputs.all_leased() && deliveries.is_empty() {
            return Err(LoadError::AllTensorsLeased { outputs: outputs.size() });
        }
        Ok(())
    }

    pub(super) fn stopped(&self) -> LoadError {
        LoadError::Stopped { reason: self.loader().stop_reason() }
    }

    /// Passes an error on, after which nothing comes if it is one of those.
    pub(super) fn end_on(&mut self, error: LoadError) -> LoadError {
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
    pub(super) fn hand_over(
        &mut self,
        delivery: Delivery<B::Tensor>,
        start: Option<Instant>,
    ) -> Option<Result<Batch<B>, LoadError>> {
        // What takes no batch's place is not counted as one.
        let of_a_batch = delivery.output.is_some();
        self.at += u64::from(of_a_batch);
        self.bad += delivery.bad.len() as u64;
        delivery.bad.into_iter().for_each(|bad| self.loader().bad_log.add(bad));
        match (delivery.result, delivery.output) {
            (Ok(Delivered { samples: 0, .. }), output) => {
                self.loader().put_back(output);
                None
            }
            (Ok(delivered), Some(output)) => {
                let now = Instant::now();
                let at_once = start.is_none() && self.waited.is_zero();
                let start = start.unwrap_or(now);
                let wait = now - start + take(&mut self.waited);
                let loader = self.loader();
                let (layout, samples) = (&loader.layout, delivered.samples);
                loader.metrics.delivered(samples, layout.device_bytes(samples), wait, now - delivered.at, at_once);
                if let Some(recorder) = &loader.recorder {
                    recorder.next(start..now, (self.epoch, delivered.number));
                }
                let (pool, tensors) = (Arc::clone(&loader.outputs), Arc::clone(&loader.tensors));
                let batch = Batch::new(output, pool, tensors, delivered.number, self.epoch, now);
                Some(Ok(batch.with_padding(delivered.padding).with_geometries(loader.geometries.clone())))
            }
            (Ok(_), None) => {
                let reason = "a batch was delivered without its tensor".to_owned();
                Some(Err(LoadError::Stopped { reason }))
            }
            (Err(error), output) => {
                let loader = self.loader();
                loader.put_back(output);
                if of_a_batch {
                    loader.metrics.failed();
                }
                Some(Err(self.end_on(error)))
            }
        }
    }
}
