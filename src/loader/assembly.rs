//! One batch while its samples are being read: what the workers share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::bad::{BadRead, chain};
use super::outputs::reserved;
use crate::error::{DeviceError, LoadError, SourceError};

/// A batch being filled. There is one a slot, used again for every batch; the channel that hands it to the workers and the
/// countdown of the slot's regions order the relaxed stores.
#[derive(Debug)]
pub(super) struct Assembly {
    /// The epoch and the batch's number.
    batch: [AtomicU64; 2],
    samples: AtomicU64,
    /// The last so many samples repeat others.
    padding: AtomicU64,
    indices: Vec<AtomicU64>,
    labels: Vec<AtomicI64>,
    labelled: AtomicBool,
    cancelled: AtomicBool,
    failure: Mutex<Option<Failure>>,
    noted: Mutex<Vec<BadRead>>,
    /// The first so many of `noted` are out of the batch already.
    dropped: AtomicU64,
    read_ns: AtomicU64,
}

/// Why a batch cannot be sent.
#[derive(Debug)]
pub(super) enum Failure {
    Source { index: u64, source: SourceError },
    Panic { index: u64, message: String },
    Short { index: u64, written: usize, expected: usize },
}

impl Failure {
    pub(super) fn into_error(self, batch: u64) -> LoadError {
        match self {
            Self::Source { index, source } => LoadError::Sample { index, batch, source },
            Self::Panic { index, message } => LoadError::Panic { index, batch, message },
            Self::Short { index, written, expected } => LoadError::ShortSample { index, batch, written, expected },
        }
    }

    /// What was wrong with the sample itself, in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Source { source, .. } => chain(&**source),
            Self::Panic { message, .. } => format!("the source panicked: {message}"),
            Self::Short { written, expected, .. } => {
                format!("the source wrote {written} of the sample's {expected} bytes")
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
    pub(super) fn new(samples: usize) -> Result<Self, DeviceError> {
        let (mut indices, mut labels) = (reserved(samples)?, reserved(samples)?);
        indices.resize_with(samples, AtomicU64::default);
        labels.resize_with(samples, AtomicI64::default);
        Ok(Self {
            batch: [AtomicU64::new(0), AtomicU64::new(0)],
            samples: AtomicU64::new(0),
            padding: AtomicU64::new(0),
            indices,
            labels,
            labelled: AtomicBool::new(false),
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
        self.labelled.store(false, Ordering::Relaxed);
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

    /// Another sample takes a place.
    pub(super) fn set_index(&self, position: usize, index: u64) {
        self.indices[position].store(index, Ordering::Relaxed);
    }

    /// Keeps a bad sample in mind, and the batch goes on.
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

    /// Takes the samples out that were left out since the last call, and tells the place of the first of them; `None` if there are
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

    pub(super) fn set_label(&self, position: usize, label: i64) {
        self.labels[position].store(label, Ordering::Relaxed);
        self.labelled.store(true, Ordering::Relaxed);
    }

    /// Copies indices and labels out, replacing what the vectors hold.
    pub(super) fn copy_out(&self, indices: &mut Vec<u64>, labels: &mut Vec<i64>) {
        let samples = self.samples();
        indices.clear();
        indices.extend(self.indices[..samples].iter().map(|index| index.load(Ordering::Relaxed)));
        labels.clear();
        if self.labelled.load(Ordering::Relaxed) {
            labels.extend(self.labels[..samples].iter().map(|label| label.load(Ordering::Relaxed)));
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

    fn noted(&self) -> std::sync::MutexGuard<'_, Vec<BadRead>> {
        self.noted.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
