//! One batch while its samples are being read: what the workers share.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::bad::{BadRead, chain};
use super::host_fields::HostFields;
use super::outputs::reserved;
use crate::error::{DeviceError, LoadError, SourceError};
use crate::layout::BatchLayout;
use crate::staging::ShortField;

/// A batch being filled. There is one a slot, used again for every batch; the channel that hands it to the workers and the
/// countdown of the slot's regions order the relaxed stores.
#[derive(Debug)]
pub(super) struct Assembly {
    /// The epoch and the batch's number.
    batch: [AtomicU64; 2],
    samples: AtomicU64,
    /// The last `padding` samples repeat others.
    padding: AtomicU64,
    indices: Vec<AtomicU64>,
    host: Mutex<HostFields>,
    cancelled: AtomicBool,
    failure: Mutex<Option<Failure>>,
    noted: Mutex<Vec<BadRead>>,
    /// The first `dropped` of `noted` are out of the batch already.
    dropped: AtomicU64,
    read_ns: AtomicU64,
}

/// Why a batch cannot be sent.
#[derive(Debug)]
pub(super) enum Failure {
    Source { index: u64, source: SourceError },
    Panic { index: u64, message: String },
    Short { index: u64, short: ShortField },
}

impl Failure {
    pub(super) fn into_error(self, batch: u64) -> LoadError {
        match self {
            Self::Source { index, source } => LoadError::Sample { index, batch, source },
            Self::Panic { index, message } => LoadError::Panic { index, batch, message },
            Self::Short { index, short: ShortField { name: field, written, expected } } => {
                LoadError::ShortSample { index, batch, field, written, expected }
            }
        }
    }

    /// What was wrong with the sample itself, as text.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Source { source, .. } => chain(&**source),
            Self::Panic { message, .. } => format!("the source panicked: {message}"),
            Self::Short { short: ShortField { name, written, expected }, .. } => {
                format!("the source wrote {written} of the {expected} bytes of field `{name}`")
            }
        }
    }

    /// What was wrong with the sample itself.
    pub(super) fn into_cause(self) -> SourceError {
        match self {
            Self::Source { source, .. } => source,
            other => other.describe().into(),
        }
    }

    pub(super) fn index(&self) -> u64 {
        match self {
            Self::Source { index, .. } | Self::Panic { index, .. } | Self::Short { index, .. } => *index,
        }
    }
}

impl Assembly {
    /// With room for batches of at most `samples` samples.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn new(layout: &BatchLayout, samples: usize) -> Result<Self, DeviceError> {
        let mut indices = reserved(samples)?;
        indices.resize_with(samples, AtomicU64::default);
        Ok(Self {
            batch: [AtomicU64::new(0), AtomicU64::new(0)],
            samples: AtomicU64::new(0),
            padding: AtomicU64::new(0),
            indices,
            host: Mutex::new(HostFields::new(layout)?),
            cancelled: AtomicBool::new(false),
            failure: Mutex::new(None),
            noted: Mutex::default(),
            dropped: AtomicU64::new(0),
            read_ns: AtomicU64::new(0),
        })
    }

    /// Prepares for the batch of these samples. No worker may be at work on it.
    pub(super) fn start(
        &self,
        indices: impl ExactSizeIterator<Item = u64>,
        padding: usize,
        (epoch, batch): (u64, u64),
    ) {
        self.batch[0].store(epoch, Ordering::Relaxed);
        self.batch[1].store(batch, Ordering::Relaxed);
        self.padding.store(padding as u64, Ordering::Relaxed);
        self.samples.store(indices.len() as u64, Ordering::Relaxed);
        self.indices.iter().zip(indices).for_each(|(slot, index)| slot.store(index, Ordering::Relaxed));
        self.cancelled.store(false, Ordering::Relaxed);
        self.read_ns.store(0, Ordering::Relaxed);
        *self.failure() = None;
        self.noted().clear();
        self.dropped.store(0, Ordering::Relaxed);
    }

    /// The epoch and the batch's number.
    pub(super) fn batch(&self) -> (u64, u64) {
        (self.batch[0].load(Ordering::Relaxed), self.batch[1].load(Ordering::Relaxed))
    }

    pub(super) fn samples(&self) -> usize {
        usize::try_from(self.samples.load(Ordering::Relaxed)).unwrap_or(self.indices.len())
    }

    pub(super) fn padding(&self) -> usize {
        usize::try_from(self.padding.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    pub(super) fn index(&self, position: usize) -> u64 {
        self.indices[position].load(Ordering::Relaxed)
    }

    /// The index that errors name which belong to no sample.
    pub(super) fn first_index(&self) -> u64 {
        self.indices.first().map_or(0, |index| index.load(Ordering::Relaxed))
    }

    /// Another sample takes a position.
    pub(super) fn set_index(&self, position: usize, index: u64) {
        self.indices[position].store(index, Ordering::Relaxed);
    }

    /// Notes a bad sample, and the batch goes on.
    pub(super) fn note(&self, noted: BadRead) {
        self.noted().push(noted);
    }

    /// The bad samples, in the order of the batch.
    pub(super) fn take_noted(&self) -> Vec<BadRead> {
        let mut noted = std::mem::take(&mut *self.noted());
        // Those left out in an earlier pass come first, and within a pass workers note in any order.
        let first = usize::try_from(self.dropped.load(Ordering::Relaxed)).unwrap_or(usize::MAX).min(noted.len());
        noted[first..].sort_by_key(|noted| noted.position);
        noted
    }

    /// Removes the samples that were left out since the last call. Returns the position of the first of them; `None` if there are
    /// none. No worker may be at work.
    pub(super) fn drop_skipped(&self) -> Option<usize> {
        let mut noted = self.noted();
        let before = usize::try_from(self.dropped.load(Ordering::Relaxed)).unwrap_or(usize::MAX).min(noted.len());
        let skipped = &mut noted[before..];
        skipped.sort_by_key(|noted| noted.position);
        let mut out = skipped.iter().filter(|noted| noted.substitute.is_none()).map(|noted| noted.position).peekable();
        let first = *out.peek()?;
        let (samples, own) = (self.samples(), self.samples() - self.padding());
        let (mut kept, mut kept_own) = (0, 0);
        for position in 0..samples {
            if out.next_if_eq(&position).is_none() {
                self.set_index(kept, self.index(position));
                kept += 1;
                kept_own += usize::from(position < own);
            }
        }
        self.samples.store(kept as u64, Ordering::Relaxed);
        self.padding.store((kept - kept_own) as u64, Ordering::Relaxed);
        self.dropped.store(noted.len() as u64, Ordering::Relaxed);
        Some(first)
    }

    /// Takes over what a worker has read of a run's fields on the host.
    pub(super) fn add_host(&self, from: &HostFields, run: &Range<usize>) {
        if !from.is_empty() {
            self.host().copy_run(from, run);
        }
    }

    /// Copies the indices out, replacing what the list holds, and swaps the fields on the host, packed, with those of an earlier batch.
    pub(super) fn move_out(&self, indices: &mut Vec<u64>, host: &mut HostFields) {
        indices.clear();
        indices.extend(self.indices[..self.samples()].iter().map(|index| index.load(Ordering::Relaxed)));
        if !host.is_empty() {
            std::mem::swap(&mut *self.host(), host);
            host.pack(self.samples());
        }
    }

    /// Asks the workers to give their regions up.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Keeps the failure of the lowest index that was seen: the batch is lost.
    pub(super) fn fail(&self, failure: Failure) {
        let mut kept = self.failure();
        if kept.as_ref().is_none_or(|kept| failure.index() < kept.index()) {
            *kept = Some(failure);
        }
    }

    pub(super) fn take_failure(&self) -> Option<Failure> {
        self.failure().take()
    }

    pub(super) fn add_read_time(&self, time: Duration) {
        self.read_ns.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn read_time(&self) -> Duration {
        Duration::from_nanos(self.read_ns.load(Ordering::Relaxed))
    }

    fn host(&self) -> MutexGuard<'_, HostFields> {
        self.host.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn noted(&self) -> MutexGuard<'_, Vec<BadRead>> {
        self.noted.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
