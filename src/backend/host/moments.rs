//! When the host's device ends what it was given.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// When the device ends each submission's copy, which frees the slot, and its kernel, after which the tensor is written. A kernel
/// never ends before its copy.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Moments {
    /// When the time that [`Faults`](super::Faults) give them has passed.
    #[default]
    Clock,
    /// After the submission was looked at this many times. Whoever polls the lane for long enough sees everything end, between any
    /// two looks of the lane's that the numbers choose.
    Looks {
        /// Looks that find the copy under way.
        copy: u32,
        /// Looks that find the kernel under way, those at the copy included.
        kernel: u32,
    },
    /// When somebody says so. Dropping a lane waits for whatever was not released.
    Released(Arc<Release>),
}

/// Ends copies and kernels one at a time, in the order of the submissions of all lanes of a device.
#[derive(Debug, Default)]
pub struct Release {
    copies: AtomicU64,
    kernels: AtomicU64,
}

impl Release {
    /// Lets the next copy end, which may still have to be submitted.
    pub fn end_copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets the next kernel end, once its copy has.
    pub fn end_kernel(&self) {
        self.kernels.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets everything end, now and later.
    pub fn end_all(&self) {
        // Far enough below the largest number for those that are let go one at a time.
        self.copies.store(u64::MAX / 2, Ordering::Relaxed);
        self.kernels.store(u64::MAX / 2, Ordering::Relaxed);
    }
}

/// When one submission's copy and kernel end.
#[derive(Debug)]
pub(super) struct Ends {
    /// Among the submissions of all lanes.
    pub(super) number: u64,
    pub(super) copy_due: Instant,
    pub(super) due: Instant,
    looks: Cell<u32>,
}

impl Ends {
    pub(super) fn new(number: u64, copy_due: Instant, due: Instant) -> Self {
        Self { number, copy_due, due, looks: Cell::new(0) }
    }

    fn looks_before(&self) -> u32 {
        self.looks.replace(self.looks.get().saturating_add(1))
    }
}

impl Moments {
    /// Whether the copy has ended by `now`. Counts as a look.
    pub(super) fn copy_has_ended(&self, ends: &Ends, now: Instant) -> bool {
        match self {
            Self::Clock => ends.copy_due <= now,
            Self::Looks { copy, .. } => ends.looks_before() >= *copy,
            Self::Released(release) => ends.number < release.copies.load(Ordering::Relaxed),
        }
    }

    /// Whether the kernel has ended by `now`, as its copy has. Counts as a look.
    pub(super) fn kernel_has_ended(&self, ends: &Ends, now: Instant) -> bool {
        match self {
            Self::Clock => ends.due <= now,
            Self::Looks { copy, kernel } => ends.looks_before() >= *kernel.max(copy),
            Self::Released(release) => ends.number < release.kernels.load(Ordering::Relaxed),
        }
    }
}
