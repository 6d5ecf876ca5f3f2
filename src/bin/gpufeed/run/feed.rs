//! Loading: one thread a device.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use gpufeed::AnyBatch;

use super::open::{Feed, named};
use super::progress::Progress;
use super::report::noun;
use crate::interrupt;

/// How loading onto one device ended.
pub struct Ending {
    /// From the common start until the device had done its last batch.
    pub elapsed: Duration,
    pub interrupted: bool,
    pub error: Option<Error>,
}

/// The error of a device that another's error has stopped.
#[derive(Debug, thiserror::Error)]
#[error("stopped: another device failed")]
pub struct Stopped;

/// What the devices of a run share.
struct Run {
    epochs: u32,
    start: Instant,
    progress: Progress,
    /// Whether one has failed.
    failed: AtomicBool,
}

/// Feeds all devices at once until each has had its share, or one fails, or Ctrl-C ends them all.
pub fn load(feeds: &mut [Feed], epochs: u32) -> Vec<Ending> {
    let per_epoch: u64 = feeds.iter().map(|feed| feed.loader.samples_per_epoch()).sum();
    let sample = feeds[0].loader.source().layout();
    let progress = Progress::new(per_epoch.saturating_mul(epochs.into()), noun(sample), sample.byte_len() as u64);
    let run = Run { epochs, start: Instant::now(), progress, failed: AtomicBool::new(false) };
    if let [only] = feeds {
        return vec![run.feed(only)];
    }
    scope(|scope| {
        let start = |feed| {
            let thread = Builder::new().name("gpufeed-run".to_owned());
            thread.spawn_scoped(scope, || run.feed_named(feed))
        };
        let threads: Vec<_> = feeds.iter_mut().map(start).collect();
        let ending = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, Ending>>| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(error) => run.ending(Err(Error::new(error).context("cannot start a thread"))),
        };
        threads.into_iter().map(ending).collect()
    })
}

impl Run {
    /// As [`feed`](Self::feed), with an error that names the device.
    fn feed_named(&self, feed: &mut Feed) -> Ending {
        let mut ending = self.feed(feed);
        ending.error = ending.error.map(|error| match error.is::<Stopped>() {
            true => error,
            false => named(&feed.loader.info().id, error),
        });
        ending
    }

    fn feed(&self, feed: &mut Feed) -> Ending {
        let mut last = None;
        let delivered = self.all_epochs(feed, &mut last);
        self.ending(delivered.and_then(|whole| finish(last.as_ref()).map(|()| whole)))
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

    /// Whether they were delivered whole; `last` is the last batch then.
    fn all_epochs(&self, feed: &mut Feed, last: &mut Option<AnyBatch>) -> Result<bool> {
        for epoch in 0..self.epochs {
            if !self.one_epoch(feed, epoch, last)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the epoch was delivered whole.
    fn one_epoch(&self, feed: &mut Feed, epoch: u32, last: &mut Option<AnyBatch>) -> Result<bool> {
        let mut epoch = feed.loader.epoch(epoch.into());
        while epoch.remaining() > 0 {
            if interrupt::requested() {
                return Ok(false);
            }
            if self.failed.load(Ordering::Relaxed) {
                return Err(Stopped.into());
            }
            // With one output there is no next batch while this one is held.
            drop(last.take());
            let Some(batch) = epoch.next().transpose()? else { break };
            if let Some(saver) = &mut feed.saver {
                saver.save(&batch)?;
            }
            self.progress.add(batch.len() as u64);
            *last = Some(batch);
        }
        Ok(true)
    }
}

/// Batches are delivered as soon as their work is queued: the clock runs until the device has done it.
fn finish(last: Option<&AnyBatch>) -> Result<()> {
    last.map_or(Ok(()), |batch| batch.read().map(drop).context("the last batch cannot be read back"))
}
