//! Tensors in host memory.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::kernel::Kernel;
use super::queue::Queue;
use crate::backend::{Tensor, Wait};
use crate::error::DeviceError;
use crate::preprocess::{Fingerprint, TensorDesc, fingerprint};
use crate::staging::HostMemory;

/// How often a wait looks.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Looks after which a tensor is idle that was given back, where somebody has to look.
const USED_FOR: u32 = 3;

/// A tensor in ordinary memory. Clones are the same memory.
#[derive(Clone, Debug)]
pub struct HostTensor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    queue: Arc<Queue>,
    /// How many looks the application's work goes on for, where it runs beside what writes the tensor.
    used_for: AtomicU32,
}

#[derive(Debug)]
struct State {
    /// Aligned for floats.
    memory: HostMemory,
    fingerprints: Option<Vec<Fingerprint>>,
    /// The submissions on their way, and the error that the last one ended with. There may be several: a batch that is dropped
    /// unread gives its tensor to a later one.
    pending: usize,
    error: Option<DeviceError>,
}

impl State {
    /// Computes the fingerprints of a field's samples, where they are asked for.
    fn sum(&mut self, samples: &[u8], sample_bytes: usize, first: usize) {
        let fingerprints = self.fingerprints.iter_mut().flat_map(|all| &mut all[first..]);
        for (sum, sample) in fingerprints.zip(samples.chunks_exact(sample_bytes)) {
            *sum = fingerprint(sample);
        }
    }
}

impl HostTensor {
    /// With room for so many fingerprints.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn new(bytes: usize, fingerprints: usize, queue: Arc<Queue>) -> Result<Self, DeviceError> {
        let refused = |_| DeviceError::OutOfMemory { what: "an output tensor".into(), bytes: bytes as u64 };
        let state = State {
            memory: HostMemory::new(bytes).map_err(refused)?,
            fingerprints: (fingerprints > 0).then(|| vec![0; fingerprints]),
            pending: 0,
            error: None,
        };
        Ok(Self { shared: Arc::new(Shared { state: Mutex::new(state), queue, used_for: AtomicU32::new(0) }) })
    }

    /// Calls `look` with the tensor's elements, once they are written.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] if the device was lost before they were.
    pub fn with<R>(&self, desc: &TensorDesc, look: impl FnOnce(&[u8]) -> R) -> Result<R, DeviceError> {
        let state = self.written()?;
        Ok(look(&state.memory[desc.offset..desc.offset + desc.byte_len()]))
    }

    /// Marks the tensor as on its way.
    pub(super) fn expect(&self) {
        let mut state = self.lock();
        state.pending += 1;
        state.error = None;
    }

    /// Computes the tensor from whole samples, the first `bytes` of a slot. It counts as written once it is [finished](Self::finish).
    pub(super) fn write(&self, kernel: &Kernel, slot: &[u8], bytes: usize, sample_bytes: usize) {
        let mut state = self.lock();
        kernel.run(slot, bytes, &mut state.memory);
        state.sum(&slot[..bytes], sample_bytes, 0);
    }

    /// Copies a field that nothing is computed from to a byte of the output: its samples, the bytes of each, and the place of the first
    /// one's fingerprint.
    pub(super) fn copy(&self, offset: usize, field: (&[u8], usize, usize)) {
        self.make(|out| out[..field.0.len()].copy_from_slice(field.0), offset, field);
    }

    /// Has a further tensor computed, from a byte of the output on, of such a field.
    pub(super) fn make(
        &self,
        make: impl FnOnce(&mut [u8]),
        offset: usize,
        (samples, sample_bytes, first): (&[u8], usize, usize),
    ) {
        let mut state = self.lock();
        make(&mut state.memory[offset..]);
        state.sum(samples, sample_bytes, first);
    }

    /// Marks one submission as finished.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.pending -= 1;
        state.error = None;
    }

    /// Gives up writing the tensor.
    pub(super) fn fail(&self, error: DeviceError) {
        let mut state = self.lock();
        state.pending -= 1;
        state.error = Some(error);
    }

    /// Refuses a submission that nothing would order behind the application's work.
    pub(super) fn check_idle(&self) -> Result<(), DeviceError> {
        match self.shared.used_for.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(DeviceError::Refused { message: "the tensor is written while it is used".to_owned() }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn written(&self) -> Result<MutexGuard<'_, State>, DeviceError> {
        let mut state = self.lock();
        while state.pending > 0 {
            drop(state);
            // Not for what was queued after it. Lost or not, the tensor tells.
            let _ = self.shared.queue.run(Wait::Poll);
            state = self.lock();
            if state.pending > 0 {
                drop(state);
                std::thread::sleep(POLL_INTERVAL);
                state = self.lock();
            }
        }
        match &state.error {
            Some(error) => Err(error.clone()),
            None => Ok(state),
        }
    }
}

impl crate::backend::sealed::Sealed for HostTensor {}

impl Tensor for HostTensor {
    fn wait(&self) -> Result<(), DeviceError> {
        self.written().map(drop)
    }

    fn is_written(&self) -> Result<bool, DeviceError> {
        if self.lock().pending > 0 {
            // Lost or not, the tensor tells.
            let _ = self.shared.queue.run(Wait::Poll);
        }
        let state = self.lock();
        state.error.clone().map_or(Ok(state.pending == 0), Err)
    }

    fn is_idle(&self) -> Result<bool, DeviceError> {
        let look = |left: u32| Some(left.saturating_sub(1));
        Ok(self.shared.used_for.fetch_update(Ordering::Relaxed, Ordering::Relaxed, look) == Ok(0))
    }

    fn must_be_idle(&self) -> bool {
        self.shared.queue.kernels_beside()
    }

    fn given_back(&self) {
        if self.must_be_idle() {
            self.shared.used_for.store(USED_FOR, Ordering::Relaxed);
        }
    }

    fn read(&self, desc: &TensorDesc) -> Result<Vec<u8>, DeviceError> {
        self.with(desc, <[u8]>::to_vec)
    }

    fn fingerprints(&self, count: usize) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        let state = self.written()?;
        Ok(state.fingerprints.as_ref().map(|all| all[..count.min(all.len())].to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults::{FaultState, Faults};
    use super::*;
    use crate::layout::{BatchLayout, SampleLayout};
    use crate::preprocess::{OutputLayout, Preprocess};

    #[test]
    fn a_tensor_that_memory_does_not_hold_is_an_error() {
        let layout = BatchLayout::new(SampleLayout::bytes(&[8]).expect("valid"), 1).expect("valid");
        let kernel = Kernel::new(&Preprocess::Raw, &layout).expect("valid");
        let faults = Arc::new(FaultState::new(Faults::default()));
        let tensors = OutputLayout::new(&Preprocess::Raw, &layout).expect("valid");
        let queue = Arc::new(Queue::new(kernel, layout, tensors, faults, 1, false));
        for bytes in [1 << 50, usize::MAX] {
            let refused = HostTensor::new(bytes, 0, Arc::clone(&queue)).expect_err("no machine has that");
            assert_eq!(refused, DeviceError::OutOfMemory { what: "an output tensor".into(), bytes: bytes as u64 });
        }
    }
}
