//! A batch between its bytes and the device: ready to be submitted, or why it is not.

use std::time::{Duration, Instant};

use super::super::bad::BadSample;
use super::super::host_fields::HostFields;
use super::super::observe::metrics::BatchTimestamps;
use super::super::schedule::BatchId;
use super::Delivered;
use crate::backend::Input;
use crate::error::LoadError;

/// The lists that go with a batch: its samples' indices, and their fields on the host.
pub(super) type Lists<'a> = (&'a mut Vec<u64>, &'a mut HostFields);

/// A batch that can be submitted.
pub(super) struct Prepared<'a> {
    pub(super) input: Input<'a>,
    pub(super) samples: usize,
    pub(super) padding: usize,
    pub(super) bad: Vec<BadSample>,
    /// The time that the workers took, in all.
    pub(super) read_time: Duration,
    pub(super) times: BatchTimestamps,
}

/// What is delivered in place of a batch that cannot be submitted.
pub(super) struct Unsent {
    pub(super) result: Result<Delivered, LoadError>,
    pub(super) bad: Vec<BadSample>,
    pub(super) ends_epoch: bool,
}

impl Unsent {
    /// A defect of the loader.
    pub(super) fn stopped(reason: String) -> Box<Self> {
        Box::new(Self { result: Err(LoadError::Stopped { reason }), bad: Vec::new(), ends_epoch: false })
    }

    /// A batch of which no sample is left, or with too many bad ones.
    pub(super) fn settled(
        batch: BatchId,
        padding: usize,
        bad: Vec<BadSample>,
        error: Option<LoadError>,
        at: Instant,
    ) -> Box<Self> {
        let ends_epoch = error.is_some();
        let result = error.map_or(Ok(Delivered { number: batch.number, samples: 0, padding, at }), Err);
        Box::new(Self { result, bad, ends_epoch })
    }
}
