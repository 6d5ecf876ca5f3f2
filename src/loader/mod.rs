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
//!
//! # What can be relied on
//!
//! - **The same batches everywhere.** Source, [`subset`](LoaderOptions::subset), `seed`, epoch, `rank` and `world` fix which samples are in
//!   which batch, whatever the number of workers, slots and outputs, the strategy and the backend. The [`Permutation`] is computed, so that
//!   a shuffle of 2^40 samples takes no memory. [`fingerprints`](LoaderOptions::fingerprints), computed by the device over the bytes that
//!   it got, prove it.
//! - **Going on.** [`Epoch::resume_token`] is a place in that order, of constant size. [`Loader::resume`] goes on there, on another device as
//!   well, and refuses, by name, what would give other samples.
//! - **Samples that cannot be read** fail their batch, are left out of it, or are replaced, as [`BadSamples`] says: counted, listed by
//!   [`Loader::bad_samples`], and within a limit, which resuming does not forget. No other batch changes.
//! - **Nobody gets stuck.** The wait for a batch ends by [`Canceller`] from another thread, by [`Epoch::next_timeout`] in time, by dropping
//!   what is awaited, and where nothing moves at all by [`LoadError::Stalled`], which tells who waits for what. [`Batch::wait`], `read` and
//!   `fingerprints`, and [`Feeder::feed`] wait for the device as long as it takes; [`Batch::wait_timeout`], [`Feeder::feed_timeout`] and
//!   [`FrameBatcher::next_timeout`] do not. Dropping a loader takes no longer than its
//!   [`shutdown_timeout`](LoaderOptions::shutdown_timeout) and a second: a worker that does not come back from the source is left
//!   behind then with its slot, and so is a pump that does not come back from the device; the log says so.

mod account;
mod assembly;
mod bad;
mod batch;
mod batcher;
mod cancel;
mod epoch;
mod feeder;
mod geometry;
mod host_fields;
mod into_source;
mod observe;
mod open;
mod options;
mod order;
mod outputs;
mod pump;
mod schedule;
mod spin_wait;
mod threads;
mod tolerance;
mod waiter;
mod worker;

pub use bad::{BadSample, BadSampleReport};
pub use batch::Batch;
pub use batcher::{
    BatcherOptions, BatcherStats, FrameBatch, FrameBatcher, FrameOrigin, FrameStream, Overflow, PushError, StreamStats,
    WaitingFrame,
};
pub use cancel::Canceller;
pub use epoch::{Epoch, EpochStream};
#[cfg(feature = "wgpu")]
pub use feeder::TargetBatch;
pub use feeder::{AsFrame, FeedError, Feeder, FeederOptions, FieldProblem, FillError, Frame, FrameWriter};
pub use into_source::IntoSource;
pub use observe::distribution::{Bucket, Distribution};
pub use observe::monitor::Monitor;
pub use observe::stats::{LoaderStats, Occupancy, Percentiles, PumpWaits};
pub use observe::trace::Trace;
pub use observe::verdict::{Advice, Beside, Bottleneck, Evidence, Finding, Setup, Verdict};
pub use options::{LastBatch, LoaderOptions};
pub use order::permutation::Permutation;
pub use order::resume::{ResumeError, ResumeToken};
pub use order::sampler::{Order, Sampler};
pub use order::share::{Share, ShareError};
pub use order::subset::Subset;
pub use tolerance::{BadSamples, Tolerance};

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bad::BadSampleLog;
use epoch::LoaderHold;
pub(crate) use geometry::{Geometries, staged_layout};
use observe::activity::Activity;
use observe::metrics::Metrics;
use observe::trace::Recorder;
use order::resume::EpochPosition;
use outputs::{Output, OutputPool};
use pump::{Delivery, ToPump};
use threads::Threads;

use crate::backend::{Backend, Footprint, MemoryUse, Strategy};
use crate::error::{LoadError, Stage};
use crate::layout::BatchLayout;
use crate::preprocess::{OutputLayout, TensorDesc};
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
    activity: Arc<Activity>,
    bad_log: Arc<BadSampleLog>,
    canceller: Canceller,
    backend: B,
    source: Arc<dyn Source>,
    /// Of a slot.
    layout: BatchLayout,
    /// Of a loader with a pipeline.
    geometries: Option<Arc<Geometries>>,
    tensors: Arc<OutputLayout>,
    options: LoaderOptions,
    strategy: Strategy,
    footprint: Footprint,
    /// The source's number of samples when the loader was made: it is asked once.
    samples: u64,
    /// The id of the last epoch.
    epochs: u64,
    recorder: Option<Recorder>,
}

impl<B: Backend> Loader<B> {
    /// Starts epoch number `epoch`. The number chooses the shuffle; any number may be used in any order, and twice.
    ///
    /// The iterator borrows the loader, so that two epochs cannot run at once.
    pub fn epoch(&mut self, epoch: u64) -> Epoch<'_, B> {
        Epoch::start(LoaderHold::Borrowed(self), EpochPosition { epoch, ..EpochPosition::default() })
    }

    /// As [`epoch`](Self::epoch), and the epoch owns the loader: fit for a struct, another thread or a task.
    /// [`Epoch::into_loader`] gives the loader back.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use gpufeed::{Loader, LoaderOptions, SampleLayout, SyntheticSource, backend::host::HostBackend};
    /// # let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 1000));
    /// # let loader = Loader::new(&HostBackend::new(), source, LoaderOptions::default())?;
    /// let epoch = loader.into_epoch(0);
    /// let batches = std::thread::spawn(move || epoch.filter(Result::is_ok).count());
    /// assert_eq!(batches.join().expect("no panic"), 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_epoch(self, epoch: u64) -> Epoch<'static, B> {
        let position = EpochPosition { epoch, ..EpochPosition::default() };
        Epoch::start(LoaderHold::Owned(Box::new(self)), position)
    }

    /// Several epochs in turn, without a pause in between: the first batches of the next begin while the last ones of one are still on
    /// their way. [`Batch::epoch`] says which epoch a batch belongs to.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use gpufeed::{Loader, LoaderOptions, SampleLayout, SyntheticSource, backend::host::HostBackend};
    /// # let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 1000));
    /// # let mut loader = Loader::new(&HostBackend::new(), source, LoaderOptions::default())?;
    /// let mut batches = [0; 3];
    /// for batch in loader.epochs(0..3) {
    ///     batches[batch?.epoch() as usize] += 1;
    /// }
    /// assert_eq!(batches, [16; 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn epochs(&mut self, epochs: Range<u64>) -> Epoch<'_, B> {
        several(LoaderHold::Borrowed(self), epochs)
    }

    /// As [`epochs`](Self::epochs), and the iterator owns the loader, as that of [`into_epoch`](Self::into_epoch).
    pub fn into_epochs(self, epochs: Range<u64>) -> Epoch<'static, B> {
        several(LoaderHold::Owned(Box::new(self)), epochs)
    }

    /// Goes on where a token was made, by this loader or another: what it had not delivered follows, and nothing twice.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use gpufeed::{Loader, LoaderOptions, SampleLayout, SyntheticSource, backend::host::HostBackend};
    /// # let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 1000));
    /// # let options = LoaderOptions { seed: Some(1), ..LoaderOptions::default() };
    /// # let mut loader = Loader::new(&HostBackend::new(), source, options)?;
    /// let mut epoch = loader.epoch(3);
    /// epoch.next();
    /// let token = serde_json::to_string(&epoch.resume_token()?)?;
    /// drop(epoch);
    /// // Later, in another process:
    /// let mut epoch = loader.resume(&serde_json::from_str(&token)?)?;
    /// assert_eq!(epoch.next().expect("a batch")?.number(), 1);
    /// # drop(epoch);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ResumeError`] names what differs between the token's loader and this one, of what fixes the batches. Between two epochs
    /// `rank` and `world` may differ.
    pub fn resume(&mut self, token: &ResumeToken) -> Result<Epoch<'_, B>, ResumeError> {
        self.check_resume(token)?;
        Ok(Epoch::start(LoaderHold::Borrowed(self), token.standing()))
    }

    /// As [`resume`](Self::resume), and the epoch owns the loader, as that of [`into_epoch`](Self::into_epoch).
    ///
    /// # Errors
    /// As `resume`, with the loader.
    pub fn into_resumed(self, token: &ResumeToken) -> Result<Epoch<'static, B>, (Box<Self>, ResumeError)> {
        match self.check_resume(token) {
            Ok(()) => Ok(Epoch::start(LoaderHold::Owned(Box::new(self)), token.standing())),
            Err(error) => Err((Box::new(self), error)),
        }
    }

    /// Whether [`resume`](Self::resume) would take this token. Begins nothing.
    ///
    /// # Errors
    /// As `resume`.
    pub fn check_resume(&self, token: &ResumeToken) -> Result<(), ResumeError> {
        token.check((self.samples, &self.source.layout()), &self.options, self.batches_per_epoch())?;
        token.check_data(&*self.source)
    }

    /// The id of another epoch.
    fn next_id(&mut self) -> u64 {
        self.epochs += 1;
        self.epochs
    }

    /// What ends the loader's waits, from another thread.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// The samples that were left out or replaced: see [`BadSamples`].
    #[must_use]
    pub fn bad_samples(&self) -> BadSampleReport {
        self.bad_log.report()
    }

    fn sampler(&self, epoch: u64) -> Sampler {
        Sampler::new(Order::new(self.samples, &self.options), epoch)
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

    /// The memory it holds now and how often it has allocated; tensors that were [taken out](Batch::into_tensor) are not its own any
    /// more. `None` if its pump is gone, or has not answered within a second since
    /// the device does not finish.
    #[must_use]
    pub fn memory(&self) -> Option<MemoryUse> {
        self.ask_for(ToPump::Memory, Some(Duration::from_secs(1))).ok()
    }

    /// Waits until the device has finished everything that was submitted, delivered or not. For measuring: what uses a
    /// batch on the device needs no wait.
    ///
    /// # Errors
    /// [`LoadError::Device`] if the device is lost, [`LoadError::Stopped`] if the loader's thread is gone,
    /// [`LoadError::Stalled`] if the device finishes nothing for [`stall_timeout`](LoaderOptions::stall_timeout), and
    /// [`LoadError::Cancelled`].
    pub fn wait_idle(&self) -> Result<(), LoadError> {
        let idle = self.ask(ToPump::Idle)?;
        idle.map_err(|(batch, source)| LoadError::Device { batch, stage: Stage::Device, source })
    }

    /// What it has done so far, and where the time went.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        self.monitor().stats()
    }

    /// How the [latencies](LoaderStats::latency) of its batches are distributed, since it was made or [reset](Self::reset_stats).
    #[must_use]
    pub fn latencies(&self) -> Distribution {
        self.metrics.latencies()
    }

    /// What reads its [`stats`](Self::stats) from elsewhere, while an epoch borrows the loader.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        Monitor::new(&self.metrics, &self.bad_log)
    }

    /// What holds it back, by what it has counted so far.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let beside = Beside { hidden_by: self.hidden_by(), ..Beside::default() };
        Verdict::of(&self.stats(), &self.options, self.strategy, beside)
    }

    /// A strategy of the device whose copies run beside its user's work, where those of this one do not.
    fn hidden_by(&self) -> Option<Strategy> {
        let in_memory = self.source.direct().is_some();
        let hides = |strategy: &&Strategy| {
            !strategy.allocates_per_batch()
                && (in_memory || !strategy.is_direct())
                && self.backend.supports(**strategy).is_ok()
                && self.backend.copies_beside(**strategy)
        };
        if self.backend.copies_beside(self.strategy) { None } else { Strategy::ALL.iter().find(hides).copied() }
    }

    /// Starts counting anew.
    pub fn reset_stats(&self) {
        self.metrics.reset();
    }

    /// Asks the pump and waits for its answer, unless it is gone, the loader is cancelled, or nothing moves any more.
    fn ask<R>(&self, question: impl FnOnce(flume::Sender<R>) -> ToPump) -> Result<R, LoadError> {
        self.ask_for(question, self.options.stall_timeout)
    }

    /// As [`ask`](Self::ask), with the time that nothing may move.
    fn ask_for<R>(
        &self,
        question: impl FnOnce(flume::Sender<R>) -> ToPump,
        timeout: Option<Duration>,
    ) -> Result<R, LoadError> {
        let (mut seen, mut since) = (self.activity.moves(), Instant::now());
        let stopped = || LoadError::Stopped { reason: self.stop_reason() };
        let (reply, answer) = flume::bounded(1);
        self.pump.send(question(reply)).map_err(|_| stopped())?;
        loop {
            match answer.recv_timeout(Duration::from_millis(20)) {
                Ok(reply) => return Ok(reply),
                Err(flume::RecvTimeoutError::Disconnected) => return Err(stopped()),
                // A question that came too late stays in the queue, unanswered.
                Err(flume::RecvTimeoutError::Timeout) if self.pump.is_disconnected() => {
                    return answer.try_recv().map_err(|_| stopped());
                }
                Err(flume::RecvTimeoutError::Timeout) if self.canceller.is_cancelled() => {
                    return Err(LoadError::Cancelled);
                }
                Err(flume::RecvTimeoutError::Timeout) => {}
            }
            let moves = self.activity.moves();
            if moves != seen {
                (seen, since) = (moves, Instant::now());
            } else if timeout.is_some_and(|timeout| since.elapsed() >= timeout) {
                return Err(LoadError::Stalled(Box::new(self.activity.stall(since.elapsed()))));
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

/// Epochs that follow each other.
fn several<B: Backend>(loader: LoaderHold<'_, B>, epochs: Range<u64>) -> Epoch<'_, B> {
    let Range { start, end } = epochs;
    if start >= end {
        return Epoch::empty(loader, start);
    }
    Epoch::start(loader, EpochPosition { epoch: start, ..EpochPosition::default() }).followed_by(start + 1..end)
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
