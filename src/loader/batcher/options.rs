//! What a batcher can be told.

use std::time::Duration;

use crate::error::OpenError;

/// Options of a [`FrameBatcher`](super::FrameBatcher).
///
/// # Sizing
///
/// A batch has at most as many frames as the feeder's [`batch_size`](crate::FeederOptions::batch_size). `max_wait` is what a frame pays at
/// most for company: with `n` streams of `f` frames a second each, about `n * f * max_wait` of them share a batch. A camera whose newest
/// frame matters takes [`Overflow::DropOldest`] and a queue of 1; requests that all need an answer take [`Overflow::Block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatcherOptions {
    /// How long the first frame of a batch waits for more.
    pub max_wait: Duration,
    /// The most frames of one stream that wait. At least 1.
    pub queue: usize,
    /// What becomes of a frame that finds its stream's queue full.
    pub overflow: Overflow,
}

impl Default for BatcherOptions {
    fn default() -> Self {
        Self { max_wait: Duration::from_millis(5), queue: 8, overflow: Overflow::Block }
    }
}

impl BatcherOptions {
    pub(super) fn check(&self) -> Result<(), OpenError> {
        match self.queue {
            0 => Err(OpenError::Option {
                option: "queue",
                reason: "a stream's queue holds at least one frame".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// What becomes of a frame that finds its stream's queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// Whoever pushes it waits.
    #[default]
    Block,
    /// It takes the place of its stream's oldest, which whoever pushes gets back.
    DropOldest,
    /// Whoever pushes gets it back.
    DropNewest,
}
