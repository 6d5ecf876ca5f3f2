//! Ending a loader's waits from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::pump::Delivery;

/// Cancels a loader from any thread, for good: whoever waits for its batches, or for it to become idle, now or later, gets
/// [`LoadError::Cancelled`](crate::LoadError::Cancelled) at once. Clones cancel the same loader, and may outlive it. Made by [`Loader::canceller`](super::Loader::canceller).
///
/// ```
/// # use std::sync::Arc;
/// # use gpufeed::{LoadError, Loader, LoaderOptions, SampleLayout, SyntheticSource, backend::host::HostBackend};
/// # let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 1 << 40));
/// # let mut loader = Loader::new(&HostBackend::new(), source, LoaderOptions::default())?;
/// let canceller = loader.canceller();
/// let other = std::thread::spawn(move || canceller.cancel());
/// let error = loader.epoch(0).find_map(Result::err);
/// assert!(matches!(error, Some(LoadError::Cancelled)));
/// # other.join().expect("no panic");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Canceller {
    cancelled: Arc<AtomicBool>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Canceller {
    pub(super) fn new<T: Send + 'static>(deliveries: flume::WeakSender<Delivery<T>>) -> Self {
        let wake = move || {
            if let Some(deliveries) = deliveries.upgrade() {
                // Whoever is woken looks at the flag. Without a receiver nobody waits.
                let _ = deliveries.send(Delivery::wake());
            }
        };
        Self { cancelled: Arc::default(), wake: Arc::new(wake) }
    }

    /// Cancels the loader.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        (self.wake)();
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canceller").field("cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}
