//! An epoch as a stream.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_core::Stream;

use super::super::batch::Batch;
use super::super::pump::Delivery;
use super::{Epoch, is_last};
use crate::backend::Backend;
use crate::error::LoadError;

/// The batches of an [`Epoch`] as a [`Stream`]. As the iterator it always ends: with an error that would only be repeated, too.
///
/// ```
/// # use std::sync::Arc;
/// # use gpufeed::{Loader, LoaderOptions, SampleLayout, SyntheticSource, backend::host::HostBackend};
/// use std::pin::pin;
///
/// use futures_core::Stream;
///
/// # let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 1000));
/// # let loader = Loader::new(&HostBackend::new(), source, LoaderOptions::default())?;
/// let mut stream = pin!(loader.into_epoch(0).stream());
/// # pollster::block_on(async {
/// // With `StreamExt` of a crate for futures: `while let Some(batch) = stream.next().await`.
/// while let Some(batch) = std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await {
///     println!("{} samples", batch?.len());
/// }
/// # Ok::<(), gpufeed::LoadError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a stream delivers nothing until it is polled"]
pub struct EpochStream<'a, B: Backend> {
    epoch: Epoch<'a, B>,
    deliveries: flume::r#async::RecvStream<'static, Delivery<B::Tensor>>,
    /// Since when the next batch is waited for.
    since: Option<Instant>,
}

impl<'a, B: Backend> EpochStream<'a, B> {
    pub(super) fn new(epoch: Epoch<'a, B>) -> Self {
        let deliveries = epoch.loader().deliveries.clone().into_stream();
        Self { epoch, deliveries, since: None }
    }

    /// The epoch, for its statistics and its place.
    pub fn epoch(&self) -> &Epoch<'a, B> {
        &self.epoch
    }

    /// The epoch, for whatever the stream does not offer.
    pub fn epoch_mut(&mut self) -> &mut Epoch<'a, B> {
        &mut self.epoch
    }

    /// The next item, or `None` within `Some` at the end; `None` while it is waited for.
    fn look(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Batch<B>, LoadError>>> {
        while self.epoch.goes_on() {
            if let Err(error) = self.epoch.check() {
                return Poll::Ready(Some(Err(error)));
            }
            let Poll::Ready(received) = Pin::new(&mut self.deliveries).poll_next(context) else {
                self.since.get_or_insert_with(Instant::now);
                self.epoch.loader().activity.await_batch();
                return Poll::Pending;
            };
            self.epoch.loader().activity.end_wait();
            let Some(delivery) = received else {
                let error = self.epoch.stopped();
                return Poll::Ready(Some(Err(self.epoch.end_on(error))));
            };
            let Some(delivery) = self.epoch.own(delivery) else { continue };
            if let Some(batch) = self.epoch.hand_over(delivery, self.since.take()) {
                return Poll::Ready(Some(batch));
            }
        }
        Poll::Ready(None)
    }
}

impl<B: Backend> Stream for EpochStream<'_, B> {
    type Item = Result<Batch<B>, LoadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.epoch.ended {
            return Poll::Ready(None);
        }
        let looked = self.look(context);
        if let Poll::Ready(item) = &looked {
            self.epoch.ended = is_last(item.as_ref());
        }
        looked
    }
}

impl<B: Backend> Drop for EpochStream<'_, B> {
    fn drop(&mut self) {
        self.epoch.loader().activity.end_wait();
    }
}
