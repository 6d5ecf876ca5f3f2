//! Where batches leave the pump: free outputs on one side, deliveries on the other.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::bad::BadSample;
use super::super::outputs::{Output, OutputPool};
use super::{Delivered, Delivery};
use crate::backend::{Lane, SubmissionId, Tensor};
use crate::error::{DeviceError, LoadError, Stage};

/// The outputs and the channel that delivers them.
pub(in crate::loader) struct Outlet<T> {
    outputs: Arc<OutputPool<T>>,
    deliveries: flume::Sender<Delivery<T>>,
    /// Of the iterator that takes the deliveries.
    generation: u64,
    /// Whether it was woken since a guard keeps an output.
    woken: bool,
    /// What is not delivered yet: a batch that has not arrived on the device, and all that comes after it.
    held: VecDeque<Held<T>>,
}

/// A delivery, and the submission that has to arrive before it is made, if there is one.
struct Held<T> {
    submission: Option<SubmissionId>,
    delivery: Delivery<T>,
}

impl<T: Tensor> Outlet<T> {
    pub(in crate::loader) fn new(outputs: Arc<OutputPool<T>>, deliveries: flume::Sender<Delivery<T>>) -> Self {
        Self { outputs, deliveries, generation: 0, woken: false, held: VecDeque::new() }
    }

    pub(super) fn outputs(&self) -> &OutputPool<T> {
        &self.outputs
    }

    /// Another iterator takes what is delivered from here on.
    pub(super) fn serve(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// A free output, if there is one.
    pub(super) fn take(&mut self) -> Option<Output<T>> {
        let output = self.outputs.take();
        let guarded = output.is_none() && self.outputs.is_guarded();
        if guarded && !self.woken {
            // The user may be waiting, and holds more than it seemed when it began to.
            self.send_now(Delivery::wake());
        }
        self.woken = guarded;
        output
    }

    /// Delivers a batch that was submitted, now or when it arrives: see [`release`](Self::release).
    pub(super) fn deliver_submitted(
        &mut self,
        submission: SubmissionId,
        output: Output<T>,
        delivered: Delivered,
        bad: Vec<BadSample>,
    ) {
        let delivery = Delivery { generation: self.generation, output: Some(output), result: Ok(delivered), bad };
        self.held.push_back(Held { submission: Some(submission), delivery });
    }

    /// Whether something waits for a batch that has not arrived.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Makes the deliveries whose batches have arrived, in their order.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], which the pump reports; any other error takes its batch's place.
    pub(super) fn release<L: Lane<Tensor = T>>(&mut self, lane: &mut L) -> Result<(), DeviceError> {
        while let Some(held) = self.held.front() {
            let arrived = held.submission.map_or(Ok(true), |submission| lane.has_arrived(submission));
            let arrived = match arrived {
                Ok(false) => return Ok(()),
                // The pump goes on from there.
                Err(error @ DeviceError::Lost { .. }) => return Err(error),
                arrived => arrived,
            };
            let Some(Held { delivery, .. }) = self.held.pop_front() else { return Ok(()) };
            match arrived {
                Ok(_) => self.send_now(delivery),
                Err(error) => self.fail(delivery, error),
            }
        }
        Ok(())
    }

    /// The device is lost, and what has not arrived never will. It is delivered all the same, as everything is that was submitted: who
    /// uses a tensor then learns of the loss.
    pub(super) fn release_all(&mut self) {
        for Held { delivery, .. } in std::mem::take(&mut self.held) {
            self.send_now(delivery);
        }
    }

    /// A batch that was submitted will not arrive.
    fn fail(&mut self, delivery: Delivery<T>, source: DeviceError) {
        let result = delivery
            .result
            .and_then(|Delivered { number: batch, .. }| Err(LoadError::Device { batch, stage: Stage::Submit, source }));
        self.send_now(Delivery { result, ..delivery });
    }

    /// Delivers what takes a batch's place.
    pub(super) fn deliver(&mut self, output: Output<T>, result: Result<Delivered, LoadError>, bad: Vec<BadSample>) {
        self.send(Delivery { generation: self.generation, output: Some(output), result, bad });
    }

    /// Delivers an error that takes no batch's place.
    pub(super) fn report(&mut self, error: LoadError) {
        self.send(Delivery::report(self.generation, error));
    }

    fn send(&mut self, delivery: Delivery<T>) {
        if self.held.is_empty() {
            self.send_now(delivery);
        } else {
            self.held.push_back(Held { submission: None, delivery });
        }
    }

    fn send_now(&self, delivery: Delivery<T>) {
        // Without a receiver the loader is being dropped, and a shutdown message follows.
        let _ = self.deliveries.send(delivery);
    }
}

impl<T> Drop for Outlet<T> {
    /// After this no call is run and no output is pooled: whoever waits for either must not.
    fn drop(&mut self) {
        self.outputs.close();
    }
}
