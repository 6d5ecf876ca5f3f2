//! The fixed pool of output tensors.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::host_fields::HostFields;
use super::observe::metrics::nanoseconds;
use super::pump::ToPump;
use super::waiter::Waiter;
use crate::backend::Tensor;
use crate::error::DeviceError;
use crate::layout::BatchLayout;

/// A tensor and the host-side lists that travel with it; all are used again.
#[derive(Debug)]
pub(super) struct Output<T> {
    pub(super) tensor: T,
    pub(super) indices: Vec<u64>,
    pub(super) host: HostFields,
    /// The frames' own, of a feeder; none of a loader.
    pub(super) tags: Vec<u64>,
}

impl<T> Output<T> {
    /// With room for batches of at most `samples` samples.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn new(tensor: T, layout: &BatchLayout, samples: usize) -> Result<Self, DeviceError> {
        Ok(Self { tensor, indices: reserved(samples)?, host: HostFields::new(layout)?, tags: Vec::new() })
    }

    /// As [`new`](Self::new), with room for the tags of a full batch of frames.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn for_feeder(tensor: T, layout: &BatchLayout) -> Result<Self, DeviceError> {
        let samples = layout.batch_size();
        Ok(Self { tags: reserved(samples)?, ..Self::new(tensor, layout, samples)? })
    }
}

/// An empty list with room for so many entries.
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

/// Tensors that nobody holds, and how many the user does. They are used oldest first, so that the device has had time to finish what
/// their last users queued.
#[derive(Debug)]
pub(super) struct OutputPool<T> {
    /// Oldest first.
    free: Mutex<VecDeque<Output<T>>>,
    leased: AtomicUsize,
    /// Of the free ones, how many a guard kept from being used when one was last looked for.
    guarded: AtomicUsize,
    /// Whether one of the free ones was not idle that has to be, when none could be used.
    busy: AtomicBool,
    size: AtomicUsize,
    /// How many the user has taken out for good.
    taken: AtomicU64,
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
            free: Mutex::new(free.into()),
            leased: AtomicUsize::new(0),
            guarded: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            taken: AtomicU64::new(0),
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

    /// How many tensors the user has taken out for good.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// A tensor takes the place of one that was gone, and is in use at once.
    pub(super) fn grow(&self) {
        self.size.fetch_add(1, Ordering::Relaxed);
    }

    /// Where asynchronous callers wait.
    pub(super) fn waiter(&self) -> &Waiter {
        &self.waiter
    }

    /// Puts a tensor back. After [`close`](Self::close) it is dropped instead.
    pub(super) fn put(&self, output: Output<T>) {
        let mut free = self.free();
        if self.closed.load(Ordering::Relaxed) {
            drop(free);
            drop(output);
            return;
        }
        free.push_back(output);
        drop(free);
        if self.hungry.load(Ordering::SeqCst) && self.hungry.swap(false, Ordering::SeqCst) {
            self.send(ToPump::Wake);
        }
    }

    /// The user takes a tensor.
    pub(super) fn lease(&self) {
        self.leased.fetch_add(1, Ordering::Relaxed);
    }

    /// The device is lost: what is told instead of the next batch needs no tensor.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Whether the user holds every tensor, so that none can be on its way.
    pub(super) fn all_leased(&self) -> bool {
        let away = self.leased.load(Ordering::Acquire) + self.guarded.load(Ordering::Acquire);
        away >= self.size() && !self.lost.load(Ordering::Acquire)
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
        let Output { tensor, indices, host, .. } = output;
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.leased.fetch_sub(1, Ordering::Release);
        if self.pump.is_some() {
            self.send(ToPump::Replace { indices, host });
        } else {
            self.shrink();
        }
        tensor
    }

    /// Sends the pump a message. One that is gone needs none.
    fn send(&self, message: ToPump) {
        if let Some(pump) = &self.pump {
            let _ = pump.send(message);
        }
    }

    fn is_closed(&self) -> bool {
        let _guard = self.free();
        self.closed.load(Ordering::Relaxed)
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<Output<T>>> {
        self.free.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<T: Tensor> OutputPool<T> {
    /// The user gives a tensor back, which was held for so long.
    pub(super) fn end_lease(&self, output: Output<T>, held: Duration) {
        output.tensor.given_back();
        self.held.fetch_add(nanoseconds(held), Ordering::Relaxed);
        self.leased.fetch_sub(1, Ordering::Release);
        self.put(output);
    }

    /// Takes a free tensor; if there is none, the pump is woken when one comes back.
    pub(super) fn take(&self) -> Option<Output<T>> {
        if let Some(output) = self.take_free() {
            return Some(output);
        }
        self.hungry.store(true, Ordering::SeqCst);
        // One may have come back between the look and the store.
        let output = self.take_free();
        if output.is_some() {
            self.hungry.store(false, Ordering::SeqCst);
        }
        output
    }

    /// The oldest tensor that the device has finished with, or else the oldest: then the device orders the uses. One that a guard
    /// holds is passed over, and so is one that must be idle and is not.
    fn take_free(&self) -> Option<Output<T>> {
        let mut free = self.free();
        let (mut oldest, mut guarded, mut busy) = (None, 0, false);
        for (position, Output { tensor, .. }) in free.iter().enumerate() {
            if tensor.is_held() {
                guarded += 1;
                continue;
            }
            // A device that fails says so at the submission.
            if tensor.is_idle().unwrap_or(true) {
                oldest = Some(position);
                break;
            }
            if tensor.must_be_idle() {
                busy = true;
            } else {
                oldest.get_or_insert(position);
            }
        }
        self.guarded.store(if oldest.is_none() { guarded } else { 0 }, Ordering::Release);
        self.busy.store(oldest.is_none() && busy, Ordering::Release);
        free.remove(oldest?)
    }

    /// Whether nothing but guards, or the device, keeps the free tensors from being used: nobody tells when that ends.
    pub(super) fn is_guarded(&self) -> bool {
        self.guarded.load(Ordering::Acquire) > 0 || self.busy.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
