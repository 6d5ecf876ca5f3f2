//! Where batches leave the pump: free outputs on one side, deliveries on the other.

use std::sync::Arc;

use super::super::bad::BadSample;
use super::super::outputs::{Output, OutputPool};
use super::{Delivered, Delivery};
use crate::error::LoadError;

/// The outputs and the channel that delivers them.
pub(in crate::loader) struct Outlet<T> {
    outputs: Arc<OutputPool<T>>,
    deliveries: flume::Sender<Delivery<T>>,
    /// Of the iterator that takes the deliveries.
    generation: u64,
    /// Whether it was woken since a guard keeps an output.
    woken: bool,
}

impl<T: crate::backend::Tensor> Outlet<T> {
    pub(in crate::loader) fn new(outputs: Arc<OutputPool<T>>, deliveries: flume::Sender<Delivery<T>>) -> Self {
        Self { outputs, deliveries, generation: 0, woken: false }
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
            self.send(Delivery::wake());
        }
        self.woken = guarded;
        output
    }

    /// Delivers a batch, or what takes its place.
    pub(super) fn deliver(&self, output: Output<T>, result: Result<Delivered, LoadError>, bad: Vec<BadSample>) {
        self.send(Delivery { generation: self.generation, output: Some(output), result, bad });
    }

    /// Delivers an error that takes no batch's place.
    pub(super) fn report(&self, error: LoadError) {
        self.send(Delivery::report(self.generation, error));
    }

    fn send(&self, delivery: Delivery<T>) {
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
