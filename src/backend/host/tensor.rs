//! Tensors in host memory.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::kernel::Kernel;
use crate::backend::Tensor;
use crate::error::DeviceError;
use crate::preprocess::{Fingerprint, TensorDesc, fingerprint};

/// A tensor in ordinary memory. Clones are the same memory.
#[derive(Clone, Debug)]
pub struct HostTensor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    written: Condvar,
}

#[derive(Debug)]
struct State {
    /// Words, so that floats are aligned.
    words: Vec<u32>,
    fingerprints: Option<Vec<Fingerprint>>,
    /// Whether a submission is on its way, and the error it ended with.
    pending: bool,
    error: Option<DeviceError>,
}

impl HostTensor {
    pub(super) fn new(bytes: usize, fingerprints: bool) -> Self {
        let state = State {
            words: vec![0; bytes.div_ceil(4)],
            fingerprints: fingerprints.then(Vec::new),
            pending: false,
            error: None,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), written: Condvar::new() }) }
    }

    /// Calls `look` with the tensor's elements, once they are written.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] if the device was lost before they were.
    pub fn with<R>(&self, desc: &TensorDesc, look: impl FnOnce(&[u8]) -> R) -> Result<R, DeviceError> {
        let state = self.wait()?;
        Ok(look(&bytemuck::cast_slice(&state.words)[..desc.byte_len()]))
    }

    /// Marks the tensor as on its way.
    pub(super) fn expect(&self) {
        let mut state = self.lock();
        state.pending = true;
        state.error = None;
    }

    /// Computes the tensor from the samples in `slot`.
    pub(super) fn write(&self, kernel: &Kernel, slot: &[u8], payload: Range<usize>, sample_bytes: usize) {
        let mut state = self.lock();
        let samples = &slot[payload];
        kernel.run(samples, bytemuck::cast_slice_mut(&mut state.words));
        if let Some(fingerprints) = &mut state.fingerprints {
            fingerprints.clear();
            fingerprints.extend(samples.chunks_exact(sample_bytes).map(fingerprint));
        }
        state.pending = false;
        state.error = None;
        self.shared.written.notify_all();
    }

    /// Gives up writing the tensor.
    pub(super) fn fail(&self, error: DeviceError) {
        let mut state = self.lock();
        state.pending = false;
        state.error = Some(error);
        self.shared.written.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait(&self) -> Result<MutexGuard<'_, State>, DeviceError> {
        let mut state = self.lock();
        while state.pending {
            state = self.shared.written.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        match &state.error {
            Some(error) => Err(error.clone()),
            None => Ok(state),
        }
    }
}

impl Tensor for HostTensor {
    const READS_ON_PUMP: bool = false;

    fn read(&self, desc: &TensorDesc) -> Result<Vec<u8>, DeviceError> {
        self.with(desc, <[u8]>::to_vec)
    }

    fn fingerprints(&self, samples: usize) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        let state = self.wait()?;
        Ok(state.fingerprints.as_ref().map(|all| all[..samples.min(all.len())].to_vec()))
    }
}
