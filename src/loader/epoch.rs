//! One pass over the source.

use std::sync::Arc;
use std::time::Instant;

use super::batch::Batch;
use super::pump::{Delivered, Delivery, ToPump};
use super::{Loader, patience};
use crate::backend::Backend;
use crate::error::{DeviceError, LoadError};

/// The batches of one epoch, in order. An error takes the place of the batch it concerns, and the iteration goes on after
/// it, unless the device is lost. Dropping it early gives up what is left and returns at once.
#[must_use = "an epoch delivers nothing until it is iterated"]
pub struct Epoch<'a, B: Backend> {
    loader: &'a mut Loader<B>,
    generation: u64,
    epoch: u64,
    batches: u64,
    left: u64,
}

impl<'a, B: Backend> Epoch<'a, B> {
    pub(super) fn new(loader: &'a mut Loader<B>, generation: u64, epoch: u64, batches: u64) -> Self {
        Self { loader, generation, epoch, batches, left: batches }
    }

    /// The batches still to come, errors included.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.left
    }

    /// Ends the epoch early and loses no work: no further batch is begun, and those that are being filled or on their way
    /// are still delivered. [`remaining`](Self::remaining) says how many.
    ///
    /// Dropping the epoch instead returns at once, and gives those batches up.
    pub fn wind_down(&mut self) {
        let generation = self.generation;
        // A lost device or a pump that is gone shows as an error of the next `next`.
        if let Some(Some(end)) = self.loader.ask(|reply| ToPump::WindDown { generation, reply }) {
            self.left = end.saturating_sub(self.batches - self.left);
            self.batches = end;
        }
    }

    /// The next delivery of this epoch, and whether it was there at once.
    fn receive(&self) -> Result<(Delivery<B::Tensor>, bool), LoadError> {
        loop {
            let (delivery, at_once) = match self.loader.deliveries.try_recv() {
                Ok(delivery) => (delivery, true),
                Err(_) => match patience::recv(&self.loader.deliveries) {
                    Ok(delivery) => (delivery, false),
                    Err(_) => return Err(LoadError::Stopped { reason: self.loader.stop_reason() }),
                },
            };
            if delivery.generation == self.generation {
                return Ok((delivery, at_once));
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
        if self.left == 0 {
            return None;
        }
        if let Err(error) = self.check_leases() {
            return Some(Err(error));
        }
        let start = Instant::now();
        loop {
            let at_once = !self.loader.deliveries.is_empty();
            match self.loader.deliveries.recv_async().await {
                Ok(delivery) if delivery.generation == self.generation => {
                    return Some(self.hand_over(delivery, start, at_once));
                }
                Ok(stale) => self.loader.put_back(stale.output),
                Err(_) => {
                    self.left = 0;
                    return Some(Err(LoadError::Stopped { reason: self.loader.stop_reason() }));
                }
            }
        }
    }

    fn check_leases(&self) -> Result<(), LoadError> {
        // An error may be on its way although no tensor is.
        if self.loader.outputs.all_leased() && self.loader.deliveries.is_empty() {
            return Err(LoadError::AllTensorsLeased { outputs: self.loader.outputs.size() });
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<Batch<B>, LoadError> {
        self.check_leases()?;
        let start = Instant::now();
        let (delivery, at_once) = self.receive().inspect_err(|_| self.left = 0)?;
        self.hand_over(delivery, start, at_once)
    }

    /// Makes a batch of a delivery of this epoch.
    fn hand_over(
        &mut self,
        delivery: Delivery<B::Tensor>,
        start: Instant,
        at_once: bool,
    ) -> Result<Batch<B>, LoadError> {
        // What takes no batch's place is not counted as one.
        self.left -= u64::from(delivery.output.is_some());
        match (delivery.result, delivery.output) {
            (Ok(Delivered { number, samples }), Some(output)) => {
                let layout = self.loader.layout;
                self.loader.metrics.delivered(samples, layout.payload(samples), start.elapsed(), at_once);
                let desc = self.loader.options.preprocess.tensor(&layout, samples);
                Ok(Batch::new(output, Arc::clone(&self.loader.outputs), desc, number, self.epoch))
            }
            (Ok(_), None) => Err(LoadError::Stopped { reason: "a batch was delivered without its tensor".to_owned() }),
            (Err(error), output) => {
                self.loader.put_back(output);
                self.loader.metrics.failed();
                if matches!(error, LoadError::Device { source: DeviceError::Lost { .. }, .. }) {
                    self.left = 0;
                }
                Err(error)
            }
        }
    }
}

impl<B: Backend> Iterator for Epoch<'_, B> {
    type Item = Result<Batch<B>, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.left > 0).then(|| self.deliver())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A lost device ends the epoch early, and an error that takes no batch's place comes on top.
        (0, None)
    }
}

impl<B: Backend> Drop for Epoch<'_, B> {
    fn drop(&mut self) {
        if self.left > 0 {
            // Fails only if the pump is gone, and then there is nothing to stop.
            let _ = self.loader.pump.send(ToPump::Stop);
        }
    }
}
