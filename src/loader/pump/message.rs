//! What the pump is asked for, and what it delivers.

use std::time::Instant;

use super::super::bad::BadSample;
use super::super::host_fields::HostFields;
use super::super::order::sampler::Sampler;
use super::super::outputs::Output;
use crate::backend::MemoryUse;
use crate::error::{DeviceError, LoadError};

/// A message to the pump.
pub(in crate::loader) enum ToPump {
    /// Deliver an epoch; whatever is left of the one before is given up.
    Start(Begin),
    /// Deliver an epoch after the one under way.
    Follow(Begin),
    /// Give up whatever is under way.
    Stop,
    /// The last region of this slot has ended.
    SlotEnded(usize),
    /// An output came back while there was none.
    Wake,
    /// Run this on the pump's thread.
    Call(Box<dyn FnOnce() + Send>),
    /// Report what memory the lane holds.
    Memory(flume::Sender<MemoryUse>),
    /// Begin no further batch. The reply is the epoch that is being begun and how many batches it has then; `None` if there is
    /// none, or the device is lost.
    WindDown(flume::Sender<Option<(u64, u64)>>),
    /// Wait for the device. The reply is whether it was lost, and at which batch.
    Idle(flume::Sender<Result<(), (u64, DeviceError)>>),
    /// The user has taken a tensor for good: make another.
    Replace { indices: Vec<u64>, host: HostFields },
    /// Finish what is in flight and end.
    Shutdown { deadline: Instant },
}

/// An epoch to deliver, from batch `first` on.
pub(in crate::loader) struct Begin {
    /// Of the epochs that one iterator delivers.
    pub(in crate::loader) generation: u64,
    /// Tells this epoch apart from others; later ones have larger numbers.
    pub(in crate::loader) id: u64,
    pub(in crate::loader) first: u64,
    /// Bad samples of the batches before that.
    pub(in crate::loader) bad: u64,
    pub(in crate::loader) sampler: Sampler,
}

/// What the pump delivers. Every batch's delivery carries an output, so that their number bounds how far the pump runs ahead.
pub(in crate::loader) struct Delivery<T> {
    pub(in crate::loader) generation: u64,
    /// `None` with an error that takes no batch's place.
    pub(in crate::loader) output: Option<Output<T>>,
    pub(in crate::loader) result: Result<Delivered, LoadError>,
    /// The batch's samples that could not be read.
    pub(in crate::loader) bad: Vec<BadSample>,
}

impl<T> Delivery<T> {
    /// One that takes no batch's place.
    pub(in crate::loader) fn report(generation: u64, error: LoadError) -> Self {
        Self { generation, output: None, result: Err(error), bad: Vec::new() }
    }

    /// One of no epoch: whoever waits looks at what there is to be seen, and waits again.
    pub(in crate::loader) fn wake() -> Self {
        Self::report(0, LoadError::Cancelled)
    }
}

/// A batch on its way or ready.
pub(in crate::loader) struct Delivered {
    pub(in crate::loader) number: u64,
    /// Zero if all of the batch's samples were left out.
    pub(in crate::loader) samples: usize,
    /// How many of them repeat others.
    pub(in crate::loader) padding: usize,
    /// When it was submitted.
    pub(in crate::loader) at: Instant,
}
