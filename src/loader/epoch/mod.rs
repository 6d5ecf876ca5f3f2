//! One pass over the source, or several.

mod hold;
mod receive;
mod stream;

pub(super) use hold::LoaderHold;
pub use stream::EpochStream;

use std::iter::FusedIterator;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::Loader;
use super::bad::BadSampleReport;
use super::batch::Batch;
use super::cancel::Canceller;
use super::observe::monitor::{self, Monitor};
use super::observe::stats::LoaderStats;
use super::observe::verdict::Verdict;
use super::order::resume::{EpochPosition, ResumeError, ResumeToken};
use super::pump::{Begin, ToPump};
use crate::backend::Backend;
use crate::error::LoadError;

/// The batches of one epoch, in order, or as they get ready where the loader is not
/// [`ordered`](super::LoaderOptions::ordered). An error takes the place of the batch it concerns, and the iteration goes on after
/// it, unless the device is lost, the loader is cancelled, or too many samples are bad. Dropping it early gives up what is left and
/// returns at once.
///
/// As an [`Iterator`] it always ends: an error that takes no batch's place and would only be repeated
/// ([`LoadError::AllTensorsLeased`], [`LoadError::Stalled`]) is the last item. [`try_next`](Self::try_next),
/// [`next_timeout`](Self::next_timeout) and [`next_async`](Self::next_async) return the same error and can be called again, even after
/// the iterator has ended with it: they go on with the same batch.
///
/// It borrows its loader ([`Loader::epoch`]) or owns it ([`Loader::into_epoch`]). One that owns it is `'static` and [`Send`]: it can be a
/// field of a struct or move to another thread or task, and [`into_loader`](Self::into_loader) gives the loader back.
#[must_use = "an epoch delivers nothing until it is iterated"]
pub struct Epoch<'a, B: Backend> {
    loader: LoaderHold<'a, B>,
    /// Of all epochs that it delivers.
    generation: u64,
    id: u64,
    epoch: u64,
    /// Batches answered, those before a resumed epoch's first included.
    at: u64,
    /// Batches in all: fewer than the epoch has, once it was wound down.
    end: u64,
    /// Epochs that follow this one. The first of them was asked for.
    following: Range<u64>,
    /// How many batches the next of them has, if it was wound down.
    following_end: Option<u64>,
    /// Bad samples in the batches answered.
    bad: u64,
    over: bool,
    /// The iterator has given an error that it would repeat.
    ended: bool,
    /// Time inside calls that came back without the batch they waited for.
    waited: Duration,
}

impl<'a, B: Backend> Epoch<'a, B> {
    /// Starts an epoch.
    pub(super) fn start(mut loader: LoaderHold<'a, B>, position: EpochPosition) -> Self {
        let EpochPosition { epoch, batch, bad } = position;
        let mut started = (0, 0);
        if let Some(loader) = loader.get_mut() {
            let sampler = loader.sampler(epoch);
            let (id, end) = (loader.next_id(), sampler.batches());
            loader.activity.epoch(id);
            loader.metrics.started(epoch);
            monitor::epoch_begins(epoch, batch..end);
            // A pump that is gone shows as an error of the first `next`.
            let _ = loader.pump.send(ToPump::Start(Begin { generation: id, id, first: batch, bad, sampler }));
            started = (id, end);
        }
        let (id, end) = started;
        Self {
            loader,
            generation: id,
            id,
            epoch,
            at: batch,
            end,
            following: 0..0,
            following_end: None,
            bad,
            over: false,
            ended: false,
            waited: Duration::ZERO,
        }
    }

    /// Of no batches.
    pub(super) fn empty(mut loader: LoaderHold<'a, B>, epoch: u64) -> Self {
        let batches = loader.get_mut().map_or(0, |loader| loader.batches_per_epoch());
        let mut epoch = Self::start(loader, EpochPosition { epoch, batch: batches, bad: 0 });
        epoch.at = epoch.end;
        epoch
    }

    /// Has other epochs follow this one without a pause: the first batches of the next begin as soon as the last one of this has
    /// begun. [`Batch::epoch`] says which epoch a batch belongs to. Without effect if others follow already.
    pub fn followed_by(mut self, epochs: Range<u64>) -> Self {
        if self.following.is_empty() && !epochs.is_empty() {
            self.following = epochs;
            self.ask_for_following();
        }
        self
    }

    /// Asks the pump for the next epoch.
    fn ask_for_following(&mut self) {
        let Some(epoch) = self.following.clone().next() else { return };
        let generation = self.generation;
        let Some(loader) = self.loader.get_mut() else { return };
        let (id, sampler) = (loader.next_id(), loader.sampler(epoch));
        // A pump that is gone shows as an error of the next `next`.
        let _ = loader.pump.send(ToPump::Follow(Begin { generation, id, first: 0, bad: 0, sampler }));
    }

    /// Whether anything is still to come; goes on with the next epoch where one is at its end.
    fn goes_on(&mut self) -> bool {
        while !self.over && self.at >= self.end {
            let Some(epoch) = self.following.next() else { return false };
            let batches = self.loader().batches_per_epoch();
            (self.epoch, self.at, self.bad) = (epoch, 0, 0);
            self.id += 1;
            match self.following_end.take() {
                Some(end) => self.end = end,
                None => {
                    self.end = batches;
                    self.ask_for_following();
                }
            }
            self.loader().metrics.started(epoch);
            monitor::epoch_begins(epoch, 0..self.end);
        }
        !self.over
    }

    fn loader(&self) -> &Loader<B> {
        self.loader.get().expect("an epoch has its loader until it is given back")
    }

    /// The epoch's number; where several follow each other, that of the batch that came last, or is the first to come.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.epoch
    }

    /// The batches still to come, errors included, and those of which no sample will be left; of all epochs that follow as well.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        if self.over {
            return 0;
        }
        let epochs = self.following.end.saturating_sub(self.following.start);
        let following = match self.following_end {
            Some(end) => end,
            None => epochs.saturating_mul(if epochs > 0 { self.loader().batches_per_epoch() } else { 0 }),
        };
        (self.end - self.at).saturating_add(following)
    }

    /// Ends the epoch early and loses no work: no further batch is begun, and those that are being filled or on their way
    /// are still delivered. [`remaining`](Self::remaining) says how many.
    ///
    /// Dropping the epoch instead returns at once, and gives those batches up.
    pub fn wind_down(&mut self) {
        // A lost device or a pump that is gone shows as an error of the next `next`.
        let Ok(Some((id, end))) = self.loader().ask(ToPump::WindDown) else { return };
        if id == self.id {
            self.end = end.max(self.at);
            self.following = 0..0;
        } else {
            // The next epoch's first batches have begun.
            self.following.end = self.following.end.min(self.following.start.saturating_add(1));
            self.following_end = Some(end);
        }
    }

    /// Where delivery stands: before the first batch that `next` has not answered. At the end it is the next epoch's beginning.
    ///
    /// # Errors
    /// [`ResumeError::Unordered`].
    pub fn resume_token(&self) -> Result<ResumeToken, ResumeError> {
        let loader = self.loader();
        if !loader.options.ordered {
            return Err(ResumeError::Unordered);
        }
        let batches = loader.batches_per_epoch();
        let at = EpochPosition { epoch: self.epoch, batch: self.at, bad: self.bad };
        Ok(ResumeToken::new((loader.samples, &loader.source.layout()), &loader.options, at, batches)
            .of_data(&*loader.source))
    }

    /// What ends the loader's waits, from another thread.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.loader().canceller()
    }

    /// What its loader has done so far, as [`Loader::stats`].
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        self.loader().stats()
    }

    /// What reads its loader's statistics from elsewhere, as [`Loader::monitor`].
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.loader().monitor()
    }

    /// What holds its loader back, as [`Loader::verdict`].
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.loader().verdict()
    }

    /// The samples that were left out or replaced, as [`Loader::bad_samples`].
    #[must_use]
    pub fn bad_samples(&self) -> BadSampleReport {
        self.loader().bad_samples()
    }

    /// Gives the loader back, if the epoch owns it; `None` if it is borrowed. What is left of the epoch is given up.
    pub fn into_loader(mut self) -> Option<Loader<B>> {
        self.finish();
        self.loader.release()
    }

    /// The same epoch as a [`Stream`](futures_core::Stream), which ends as the iterator does.
    pub fn stream(self) -> EpochStream<'a, B> {
        EpochStream::new(self)
    }

    /// Gives up what is left.
    fn finish(&mut self) {
        let left = self.remaining();
        let (unanswered, epoch) = (self.at < self.end || !self.following.is_empty(), self.epoch);
        let Some(loader) = self.loader.get() else { return };
        loader.metrics.ended();
        monitor::epoch_ends(epoch, left, || loader.stats());
        if unanswered {
            // Fails only if the pump is gone, and then there is nothing to stop.
            let _ = loader.pump.send(ToPump::Stop);
        }
    }

    /// The next batch, waited for as [`Iterator::next`] does. It can be called again after any error: after
    /// [`LoadError::AllTensorsLeased`] once a batch was dropped, after [`LoadError::Stalled`] at once. `None` at the end of the epoch.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use gpufeed::{LoadError, Loader, LoaderOptions, SampleLayout, SyntheticSource, backend::host::HostBackend};
    /// # let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 1000));
    /// # let options = LoaderOptions { outputs: 2, ..LoaderOptions::default() };
    /// # let mut loader = Loader::new(&HostBackend::new(), source, options)?;
    /// let mut epoch = loader.epoch(0);
    /// let mut held = Vec::new();
    /// while let Some(batch) = epoch.try_next() {
    ///     match batch {
    ///         Ok(batch) => held.push(batch),
    ///         Err(LoadError::AllTensorsLeased { .. }) => held.clear(),
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As `next`.
    pub fn try_next(&mut self) -> Option<Result<Batch<B>, LoadError>> {
        self.next_until(None)
    }

    /// The next batch, as [`try_next`](Self::try_next), if it comes within this time; a time of zero only looks.
    ///
    /// # Errors
    /// As `next`; [`LoadError::TimedOut`], which takes no batch's place: the next call waits for the same batch.
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Result<Batch<B>, LoadError>> {
        // A time that ends beyond the clock's reach does not end.
        let end = Instant::now().checked_add(timeout).map(|deadline| (deadline, timeout));
        self.next_until(end)
    }
}

/// Whether an error takes no batch's place and would only be repeated: an iterator ends with it.
fn is_last(item: Option<&Result<impl Sized, LoadError>>) -> bool {
    matches!(item, Some(Err(LoadError::AllTensorsLeased { .. } | LoadError::Stalled(_))))
}

impl<B: Backend> Iterator for Epoch<'_, B> {
    type Item = Result<Batch<B>, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let item = self.next_until(None);
        self.ended = is_last(item.as_ref());
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A lost device ends the epoch early, and an error that takes no batch's place comes on top.
        (0, None)
    }
}

impl<B: Backend> FusedIterator for Epoch<'_, B> {}

impl<B: Backend> Drop for Epoch<'_, B> {
    fn drop(&mut self) {
        if self.loader.get().is_some() {
            self.finish();
        }
    }
}
