//! The fixed pool of output tensors.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::host_fields::HostFields;
use super::observe::metrics::nanoseconds;
use super::pump::ToPump;
use super::waiter::Waiter;
use crate::error::DeviceError;
use crate::layout::BatchLayout;

/// A tensor and the host-side lists that travel with it; all are used again.
#[derive(Debug)]
pub(super) struct Output<T> {
    pub(super) tensor: T,
    pub(super) indices: Vec<u64>,
    pub(super) host: HostFields,
}

impl<T> Output<T> {
    /// With room for batches of at most `samples` samples.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn new(tensor: T, layout: &BatchLayout, samples: usize) -> Result<Self, DeviceError> {
        Ok(Self { tensor, indices: reserved(samples)?, host: HostFields::new(layout)? })
    }
}

/// An empty list with room for `entries` entries.
///
/// # Errors
/// [`DeviceError::OutOfMemory`].
pub(super) fn reserved<T>(entries: usize) -> Result<Vec<T>, DeviceError> {
    let mut list = Vec::new();
    match list.try_reserve_exact(entries) {
        Ok(()) => Ok(list),
        Err(_) => {
            let bytes = (entries as u64).saturating_mul(size_of::<T>() as u64);
            Err(DeviceError::OutOfMemory { what: "the list of a batch's samples".to_owned(), bytes })
        }
    }
}

/// Tensors that nobody holds, and how many the user does.
#[derive(Debug)]
pub(super) struct OutputPool<T> {
    free: Mutex<Vec<Output<T>>>,
    leased: AtomicUsize,
    size: AtomicUsize,
    hungry: AtomicBool,
    /// Set once the device is lost: no tensor is waited for then, and every epoch is told of the loss.
    lost: AtomicBool,
    closed: AtomicBool,
    /// None for a feeder, which has no pump.
    pump: Option<flume::Sender<ToPump>>,
    /// Nanoseconds.
    held: Arc<AtomicU64>,
    waiter: Waiter,
}

impl<T> OutputPool<T> {
    /// `held` counts the nanoseconds that the user holds tensors.
    pub(super) fn new(free: Vec<Output<T>>, pump: Option<flume::Sender<ToPump>>, held: Arc<AtomicU64>) -> Self {
        Self {
            size: AtomicUsize::new(free.len()),
            free: Mutex::new(free),
            leased: AtomicUsize::new(0),
            hungry: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            pump,
            held,
            waiter: Waiter::default(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// One tensor is gone for good.
    pub(super) fn shrink(&self) {
        self.size.fetch_sub(1, Ordering::Relaxed);
    }

    /// Where asynchronous callers wait.
    pub(super) fn waiter(&self) -> &Waiter {
        &self.waiter
    }

    /// Takes a free tensor; if there is none, the pump is woken when one comes back.
    pub(super) fn take(&self) -> Option<Output<T>> {
        if let Some(output) = self.free().pop() {
            return Some(output);
        }
        self.hungry.store(true, Ordering::SeqCst);
        // One may have come back between the look and the store.
        let output = self.free().pop();
        if output.is_some() {
            self.hungry.store(false, Ordering::SeqCst);
        }
        output
    }

    /// Puts a tensor back. After [`close`](Self::close) it is dropped instead.
    pub(super) fn put(&self, output: Output<T>) {
        let mut free = self.free();
        if self.closed.load(Ordering::Relaxed) {
            drop(free);
            drop(output);
            return;
        }
        free.push(output);
        drop(free);
        if self.hungry.load(Ordering::SeqCst) && self.hungry.swap(false, Ordering::SeqCst) {
            self.tell(ToPump::Wake);
        }
    }

    /// The user takes a tensor.
    pub(super) fn lease(&self) {
        self.leased.fetch_add(1, Ordering::Relaxed);
    }

    /// The user gives a tensor back, which was held for so long.
    pub(super) fn end_lease(&self, output: Output<T>, held: Duration) {
        self.held.fetch_add(nanoseconds(held), Ordering::Relaxed);
        self.leased.fetch_sub(1, Ordering::Release);
        self.put(output);
    }

    /// The device is lost: what is told instead of the next batch needs no tensor.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Whether the user holds every tensor, so that none can be on its way.
    pub(super) fn all_leased(&self) -> bool {
        self.leased.load(Ordering::Acquire) >= self.size() && !self.lost.load(Ordering::Acquire)
    }

    /// Drops the free tensors, and every other one as it comes back.
    pub(super) fn close(&self) {
        let mut free = self.free();
        self.closed.store(true, Ordering::Relaxed);
        let outputs = std::mem::take(&mut *free);
        drop(free);
        drop(outputs);
    }

    /// Runs a call on the pump's thread and waits for its result; `None` if the pump has ended before it.
    pub(super) fn call<R: Send + 'static>(&self, call: impl FnOnce() -> R + Send + 'static) -> Option<R> {
        let (reply, answer) = flume::bounded(1);
        let call = move || {
            // The receiver waits below.
            let _ = reply.send(call());
        };
        self.pump.as_ref()?.send(ToPump::Call(Box::new(call))).ok()?;
        loop {
            match answer.recv_timeout(Duration::from_millis(20)) {
                Ok(result) => return Some(result),
                Err(flume::RecvTimeoutError::Disconnected) => return None,
                // A message that came too late stays in the queue as long as this pool lives.
                Err(flume::RecvTimeoutError::Timeout) => {
                    if self.is_closed() {
                        return answer.try_recv().ok();
                    }
                }
            }
        }
    }

    /// The user keeps a tensor: its lease ends, and another takes its place.
    pub(super) fn take_out(&self, output: Output<T>) -> T {
        let Output { tensor, indices, host } = output;
        self.leased.fetch_sub(1, Ordering::Release);
        if self.pump.is_some() {
            self.tell(ToPump::Replace { indices, host });
        } else {
            self.shrink();
        }
        tensor
    }

    /// Sends the pump a message. One that is gone needs none.
    fn tell(&self, message: ToPump) {
        if let Some(pump) = &self.pump {
            let _ = pump.send(message);
        }
    }

    fn is_closed(&self) -> bool {
        let _guard = self.free();
        self.closed.load(Ordering::Relaxed)
    }

    fn free(&self) -> MutexGuard<'_, Vec<Output<T>>> {
        self.free.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_memory_does_not_hold_are_an_error() {
        let sample = crate::layout::SampleLayout::bytes(&[1]).expect("a sample");
        let layout = BatchLayout::new(sample, 1).expect("a batch");
        for entries in [1 << 46, usize::MAX] {
            let refused = Output::new((), &layout, entries).expect_err("no machine has that");
            assert!(matches!(refused, DeviceError::OutOfMemory { bytes, .. } if bytes >= 1 << 49), "{refused}");
        }
    }
}
