//! The loader: workers that read samples into staging slots, one pump thread that feeds them to the device, and the batches
//! that come out.
//!
//! ```text
//! Sampler --indices--> workers --bytes--> slot --submit--> device u8 --kernel--> tensor --> Batch --> user
//!                         ^                 |
//!                         +---- free slots <+   (when the device has read them)
//! ```
//!
//! Two pools bound everything: `slots` what is being filled and copied, `outputs` what is ready, on its way or held by the user.

mod assembly;
mod batch;
mod epoch;
mod feeder;
mod metrics;
mod options;
mod outputs;
mod patience;
mod permutation;
mod pump;
mod sampler;
mod threads;
mod waiter;
mod window;
mod worker;

pub use batch::Batch;
pub use epoch::Epoch;
pub use feeder::{FeedError, Feeder, FeederOptions};
pub use metrics::{LoaderStats, Percentiles};
pub use options::{LastBatch, LoaderOptions};
pub use permutation::Permutation;
pub use sampler::{Order, Sampler};

use std::sync::Arc;
use std::time::Duration;

use metrics::Metrics;
use outputs::{Output, OutputPool};
use pump::{Delivery, Direct, Progress, Pump, ToPump};
use threads::Threads;

use crate::backend::{Backend, Footprint, Lane, LaneSpec, MemoryUse, StableHostMemory, Strategy};
use crate::error::{LayoutError, LoadError, OpenError, Stage, Unsupported};
use crate::layout::BatchLayout;
use crate::preprocess::TensorDesc;
use crate::source::Source;

/// Feeds batches of a source to a device.
///
/// Dropping it (as dropping an [`Epoch`]) may happen at any moment: the workers finish the sample they are reading, the device
/// what is in flight, and everything is freed. Batches that are still held live on.
pub struct Loader<B: Backend> {
    // Dropped in `Drop`, in this order: the threads end (pump last), then what they shared.
    threads: Threads,
    pump: flume::Sender<ToPump>,
    deliveries: flume::Receiver<Delivery<B::Tensor>>,
    outputs: Arc<OutputPool<B::Tensor>>,
    metrics: Arc<Metrics>,
    backend: B,
    source: Arc<dyn Source>,
    layout: BatchLayout,
    options: LoaderOptions,
    strategy: Strategy,
    footprint: Footprint,
    generation: u64,
}

impl<B: Backend> Loader<B> {
    /// Makes a loader: checks everything, allocates all of its memory and starts its threads.
    ///
    /// # Errors
    /// [`OpenError`] names the option, the limit, the budget with its sum, or the reason a strategy cannot run. Nothing stays
    /// allocated.
    pub fn new(backend: &B, source: Arc<dyn Source>, options: LoaderOptions) -> Result<Self, OpenError> {
        options.validate()?;
        if source.is_empty() {
            return Err(LayoutError::Zero { what: "the number of samples in the source" }.into());
        }
        let layout = BatchLayout::new(source.layout(), options.batch_size)?;
        let strategy = options.strategy.unwrap_or_else(|| backend.default_strategy());
        let own = if strategy.is_direct() { Some(own_memory(&*source, strategy)?) } else { None };
        let spec = LaneSpec {
            layout,
            preprocess: options.preprocess.clone(),
            strategy,
            slots: options.slots,
            outputs: options.outputs,
            fingerprints: options.fingerprints,
            memory: own.clone(),
            timing: false,
        };
        let footprint = backend.footprint(&spec)?;
        footprint.within(options.byte_budget)?;
        let mut lane = backend.open_lane(&spec)?;
        let (pump, inbox) = flume::unbounded();
        let outputs = Arc::new(OutputPool::new(make_outputs(&mut lane, &options)?, Some(pump.clone())));
        let metrics = Arc::new(Metrics::new());
        let (deliver, deliveries) = flume::unbounded();
        let (jobs, job_queue) = flume::unbounded();
        let mut threads = Threads::new(options.shutdown_timeout);
        // The device reads the source by itself, or workers do.
        let workers = if own.is_some() { 0 } else { options.workers };
        threads.start_workers(workers, &source, &job_queue, &pump)?;
        let serving = Pump {
            lane,
            layout,
            workers: options.workers,
            inbox,
            jobs,
            deliveries: deliver,
            outputs: Arc::clone(&outputs),
            metrics: Arc::clone(&metrics),
            direct: own.map(|_| Direct {
                source: Arc::clone(&source),
                depth: options.slots,
                offsets: Vec::with_capacity(options.batch_size),
                slow: false,
            }),
            progress: Progress::new(options.slots, options.batch_size),
        };
        threads.start_pump(serving)?;
        Ok(Self {
            threads,
            pump,
            deliveries,
            outputs,
            metrics,
            backend: backend.clone(),
            source,
            layout,
            options,
            strategy,
            footprint,
            generation: 0,
        })
    }

    /// Starts epoch number `epoch`. The number chooses the shuffle; any number may be used in any order, and twice.
    ///
    /// The iterator borrows the loader, so that two epochs cannot run at once.
    pub fn epoch(&mut self, epoch: u64) -> Epoch<'_, B> {
        let sampler = self.sampler(epoch);
        self.generation += 1;
        // A pump that is gone shows as an error of the first `next`.
        let _ = self.pump.send(ToPump::Start { generation: self.generation, sampler });
        let (generation, batches) = (self.generation, sampler.batches());
        Epoch::new(self, generation, epoch, batches)
    }

    fn sampler(&self, epoch: u64) -> Sampler {
        Sampler::new(Order::new(self.source.len(), &self.options), epoch)
    }

    /// The number of batches in an epoch: of this rank's share of it.
    #[must_use]
    pub fn batches_per_epoch(&self) -> u64 {
        self.sampler(0).batches()
    }

    /// The number of samples in those batches.
    #[must_use]
    pub fn samples_per_epoch(&self) -> u64 {
        self.sampler(0).samples()
    }

    /// The device.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// The options it was made with.
    #[must_use]
    pub fn options(&self) -> &LoaderOptions {
        &self.options
    }

    /// The strategy in use.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Shape and element type of a full batch.
    #[must_use]
    pub fn tensor(&self) -> TensorDesc {
        self.options.preprocess.tensor(&self.layout, self.layout.batch_size())
    }

    /// The memory it was planned to take, in exact bytes.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// The memory it holds now and how often it has allocated; `None` if its pump is gone.
    #[must_use]
    pub fn memory(&self) -> Option<MemoryUse> {
        self.ask(ToPump::Memory)
    }

    /// Waits until the device has finished everything that was submitted, delivered or not. For measuring: what uses a
    /// batch on the device needs no wait.
    ///
    /// # Errors
    /// [`LoadError::Device`] if the device is lost, [`LoadError::Stopped`] if the loader's thread is gone.
    pub fn wait_idle(&self) -> Result<(), LoadError> {
        match self.ask(ToPump::Idle) {
            Some(Ok(())) => Ok(()),
            Some(Err((batch, source))) => Err(LoadError::Device { batch, stage: Stage::Device, source }),
            None => Err(LoadError::Stopped { reason: self.stop_reason() }),
        }
    }

    /// What it has done so far, and where the time went.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        self.metrics.snapshot()
    }

    /// Starts counting anew.
    pub fn reset_stats(&self) {
        self.metrics.reset();
    }

    /// Asks the pump and waits for its answer; `None` if it is gone.
    fn ask<R>(&self, question: impl FnOnce(flume::Sender<R>) -> ToPump) -> Option<R> {
        let (reply, answer) = flume::bounded(1);
        self.pump.send(question(reply)).ok()?;
        loop {
            match answer.recv_timeout(Duration::from_millis(20)) {
                Ok(told) => return Some(told),
                Err(flume::RecvTimeoutError::Disconnected) => return None,
                // A question that came too late stays in the queue, unanswered.
                Err(flume::RecvTimeoutError::Timeout) if self.pump.is_disconnected() => return answer.try_recv().ok(),
                Err(flume::RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Puts the tensor of a delivery back, if it has one.
    fn put_back(&self, output: Option<Output<B::Tensor>>) {
        if let Some(output) = output {
            self.outputs.put(output);
        }
    }

    fn stop_reason(&self) -> String {
        self.threads.pump_panic().unwrap_or_else(|| "its thread has ended".to_owned())
    }
}

impl<B: Backend> Drop for Loader<B> {
    fn drop(&mut self) {
        let deadline = self.threads.deadline();
        // Fails only if the pump has ended already.
        let _ = self.pump.send(ToPump::Shutdown { deadline });
        self.threads.join(deadline);
    }
}

fn make_outputs<L: Lane>(lane: &mut L, options: &LoaderOptions) -> Result<Vec<Output<L::Tensor>>, OpenError> {
    (0..options.outputs).map(|_| Ok(Output::new(lane.output()?, options.batch_size))).collect()
}

/// The source's own memory, for a strategy that reads it directly.
fn own_memory(source: &dyn Source, strategy: Strategy) -> Result<Arc<dyn StableHostMemory>, OpenError> {
    let reason = "the source does not lie in memory that a device may read (see `Source::memory`)".to_owned();
    source.memory().ok_or(OpenError::Unsupported(Unsupported { strategy, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::HostBackend;
    use crate::layout::SampleLayout;
    use crate::source::SyntheticSource;

    #[test]
    fn a_region_that_ends_at_once_is_not_taken_for_the_slots_last() {
        let batches = if cfg!(miri) { 20 } else { 5000 };
        let source = SyntheticSource::blank(SampleLayout::bytes(&[8]).expect("bytes"), batches * 8);
        let options = LoaderOptions { batch_size: 8, workers: 4, ..LoaderOptions::default() };
        let mut loader = Loader::new(&HostBackend::new(), Arc::new(source), options).expect("a loader");
        for (number, batch) in loader.epoch(0).enumerate() {
            assert_eq!(batch.expect("a batch").indices().first(), Some(&(number as u64 * 8)));
        }
    }

    #[test]
    fn loaders_of_several_ranks_share_an_epoch() {
        let source: Arc<dyn Source> = Arc::new(SyntheticSource::blank(SampleLayout::bytes(&[8]).expect("bytes"), 20));
        let mut all = Vec::new();
        for rank in 0..3 {
            let options =
                LoaderOptions { batch_size: 4, workers: 1, seed: Some(1), rank, world: 3, ..Default::default() };
            let mut loader = Loader::new(&HostBackend::new(), Arc::clone(&source), options).expect("a loader");
            assert_eq!((loader.batches_per_epoch(), loader.samples_per_epoch()), (2, if rank < 2 { 7 } else { 6 }));
            loader.epoch(3).for_each(|batch| all.extend_from_slice(batch.expect("a batch").indices()));
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..20));
    }
}
