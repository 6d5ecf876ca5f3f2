//! Loading: one thread a device.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use gpufeed::{AnyEpoch, LoadError};

use super::bar::SampleBar;
use super::ending::{Ending, Stopped};
use super::open::{DeviceRun, named};
use super::state::StateFile;
use crate::interrupt;
use crate::units::noun;

/// How often a wait looks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What the devices of a run share.
struct Run<'a> {
    epochs: u32,
    state: Option<&'a StateFile>,
    start: Instant,
    bar: SampleBar,
    /// Whether one has failed.
    failed: AtomicBool,
}

/// Feeds all devices at once until each has had its share, or one fails, or Ctrl-C ends them all.
pub fn load(feeds: &mut [DeviceRun], epochs: u32, state: Option<&StateFile>) -> Vec<Ending> {
    let samples = feeds.iter().map(|feed| samples_left(feed, epochs)).fold(0, u64::saturating_add);
    let sample = feeds[0].loader.source().layout();
    let bar = SampleBar::new(samples, noun(&sample), sample.byte_len() as u64);
    let run = Run { epochs, state, start: Instant::now(), bar, failed: AtomicBool::new(false) };
    if let [only] = feeds {
        return vec![run.feed(0, only)];
    }
    scope(|scope| {
        let run = &run;
        let start = |(number, feed)| {
            let thread = Builder::new().name("gpufeed-run".to_owned());
            thread.spawn_scoped(scope, move || run.feed_named(number, feed))
        };
        let threads: Vec<_> = feeds.iter_mut().enumerate().map(start).collect();
        let ending = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, Ending>>| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(error) => run.ending(Err(Error::new(error).context("cannot start a thread"))),
        };
        threads.into_iter().map(ending).collect()
    })
}

impl Run<'_> {
    /// As [`feed`](Self::feed), with an error that names the device.
    fn feed_named(&self, number: usize, feed: &mut DeviceRun) -> Ending {
        let mut ending = self.feed(number, feed);
        ending.error = ending.error.map(|error| match error.is::<Stopped>() {
            true => error,
            false => named(&feed.loader.info().id, error),
        });
        ending
    }

    fn feed(&self, number: usize, feed: &mut DeviceRun) -> Ending {
        let delivered = self.all_epochs(number, feed);
        // Batches are delivered as soon as their work is queued: the clock runs until the device has done it.
        self.ending(delivered.and_then(|whole| Ok(feed.loader.wait_idle().map(|()| whole)?)))
    }

    fn ending(&self, delivered: Result<bool>) -> Ending {
        let elapsed = self.start.elapsed();
        let (interrupted, error) = match delivered {
            Ok(whole) => (!whole, None),
            Err(error) => (false, Some(error)),
        };
        if error.is_some() {
            self.failed.store(true, Ordering::Relaxed);
        }
        Ending { elapsed, interrupted, error }
    }

    /// Whether all epochs were delivered whole. The next one begins while the last batches of one are on their way.
    fn all_epochs(&self, number: usize, feed: &mut DeviceRun) -> Result<bool> {
        let (batches, end) = (feed.loader.batches_per_epoch(), u64::from(self.epochs));
        let mut epoch = match feed.token.take() {
            Some(token) if token.epoch() >= end => return Ok(true),
            Some(token) => feed.loader.resume(&token)?.followed_by(token.epoch() + 1..end),
            None => feed.loader.epochs(0..end),
        };
        self.note(number, &epoch)?;
        loop {
            if interrupt::requested() {
                return Ok(false);
            }
            if self.failed.load(Ordering::Relaxed) {
                return Err(Stopped.into());
            }
            let batch = match epoch.next_timeout(POLL_INTERVAL) {
                Some(Err(LoadError::TimedOut(_))) => continue,
                Some(batch) => batch?,
                None => break,
            };
            if let Some(saver) = &feed.saver {
                saver.save(&batch, batches)?;
            }
            self.note(number, &epoch)?;
            self.bar.add(batch.len() as u64);
        }
        // Behind batches of which nothing was left, too.
        self.note(number, &epoch)?;
        Ok(true)
    }

    /// Notes where delivery stands: after what was dealt with, so that a batch that failed is tried again.
    fn note(&self, number: usize, epoch: &AnyEpoch<'_>) -> Result<()> {
        self.state.map_or(Ok(()), |state| state.note(number, epoch.resume_token()?))
    }
}

/// The samples that a device has yet to be fed.
fn samples_left(feed: &DeviceRun, epochs: u32) -> u64 {
    let (loader, batch_size) = (&feed.loader, feed.loader.options().batch_size as u64);
    let (epoch, batch) = feed.token.as_ref().map_or((0, 0), |token| (token.epoch(), token.batch()));
    let left = u64::from(epochs).saturating_sub(epoch).saturating_mul(loader.samples_per_epoch());
    left.saturating_sub(batch.saturating_mul(batch_size))
}
