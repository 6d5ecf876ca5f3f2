//! Tensors in device memory.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use cudarc::driver::{CudaStream, DriverError};

use super::device::CudaBackend;
use super::driver::{self, DeviceMemory, Event};
use super::kernel::fingerprint_bytes;
use super::uses::Uses;
use crate::backend::{LOOK_OUT, Tensor};
use crate::error::DeviceError;
use crate::preprocess::{Fingerprint, TensorDesc};

/// A tensor in device memory. Clones are the same memory.
#[derive(Clone, Debug)]
pub struct CudaTensor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    memory: DeviceMemory,
    fingerprints: Option<DeviceMemory>,
    /// Reached when the batch that was submitted last has been written.
    ready: Event,
    /// On streams of an application.
    uses: Mutex<Uses<Event>>,
    backend: CudaBackend,
}

impl CudaTensor {
    pub(super) fn new(
        backend: &CudaBackend,
        memory: DeviceMemory,
        fingerprints: Option<DeviceMemory>,
    ) -> Result<Self, DriverError> {
        let ready = Event::new(backend.context())?;
        Ok(Self(Arc::new(Inner { memory, fingerprints, ready, uses: Mutex::default(), backend: backend.clone() })))
    }

    /// Makes `stream` wait for the tensor, on the device; the CPU does not wait. Work queued on the stream while the guard lives may
    /// use the tensor. The next batch is written into it only after that work: dropping the guard marks its end on the stream.
    ///
    /// While a guard is alive nothing can be submitted to its tensor, so keep the batch at least as long. A forgotten guard
    /// costs its tensor.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] for a stream of another context, and the device's error.
    pub fn on_stream<'a>(&'a self, stream: &'a CudaStream) -> Result<OnStream<'a>, DeviceError> {
        let lost = self.0.backend.lost();
        lost.check()?;
        if stream.context() != self.0.backend.context() {
            return Err(DeviceError::Refused { message: "the stream is of another context".to_owned() });
        }
        self.0.ready.hold(stream).map_err(|error| lost.error("waiting for a tensor", error))?;
        self.uses().begin();
        Ok(OnStream { tensor: self, stream })
    }

    /// The output's address on the device. A tensor is its [`TensorDesc::byte_len`] bytes from its [`TensorDesc::offset`] on; the rest
    /// is padding.
    ///
    /// # Safety
    /// The address is valid as long as the tensor or a clone of it lives. What uses it must be queued on a stream that holds
    /// an [`on_stream`](Self::on_stream) guard of it, must stay inside of its bytes, and must not outlive the guard.
    #[must_use]
    #[allow(unsafe_code)] // What the caller does with it is unsafe; this is not.
    pub unsafe fn device_address(&self) -> u64 {
        self.0.memory.address()
    }

    /// Bytes of device memory.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.0.memory.bytes()
    }

    pub(super) fn memory(&self) -> &DeviceMemory {
        &self.0.memory
    }

    pub(super) fn sums(&self) -> Option<&DeviceMemory> {
        self.0.fingerprints.as_ref()
    }

    /// Makes a stream that will write the tensor wait for its last batch and for all that used it, and for nothing else.
    pub(super) fn hold_for_uses(&self, stream: &CudaStream) -> Result<(), DeviceError> {
        let lost = self.0.backend.lost();
        let mut uses = self.uses();
        if uses.is_open() {
            return Err(DeviceError::Refused { message: "the output is still used on a stream".to_owned() });
        }
        let ordered = self.0.ready.hold(stream).and_then(|()| uses.order(|ended| ended.hold(stream)));
        ordered.map_err(|error| lost.error("waiting for the users of an output", error))
    }

    /// Marks what was queued on the stream so far as what the tensor waits for.
    pub(super) fn written_on(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.0.ready.record(stream)
    }

    fn uses(&self) -> MutexGuard<'_, Uses<Event>> {
        self.0.uses.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn read_back(&self, from: &DeviceMemory, start: usize, bytes: usize) -> Result<Vec<u8>, DeviceError> {
        let (lost, stream) = (self.0.backend.lost(), self.0.backend.reads());
        // Sleeps until the batch is there, and then copies: waiting for the stream alone would burn a core.
        Tensor::wait(self)?;
        driver::download(stream, from, start, bytes).map_err(|error| lost.error("reading a tensor back", error))
    }
}

impl crate::backend::sealed::Sealed for CudaTensor {}

impl Tensor for CudaTensor {
    fn wait(&self) -> Result<(), DeviceError> {
        let lost = self.0.backend.lost();
        lost.check()?;
        let start = Instant::now();
        while start.elapsed() < LOOK_OUT {
            if self.0.ready.is_reached().map_err(|error| lost.error("waiting for a tensor", error))? {
                return Ok(());
            }
        }
        // Sleeps: the event is one that blocks.
        self.0.ready.wait().map_err(|error| lost.error("waiting for a tensor", error))
    }

    fn is_written(&self) -> Result<bool, DeviceError> {
        let lost = self.0.backend.lost();
        lost.check()?;
        self.0.ready.is_reached().map_err(|error| lost.error("looking for a tensor", error))
    }

    fn is_idle(&self) -> Result<bool, DeviceError> {
        let lost = self.0.backend.lost();
        lost.check()?;
        let ended =
            self.0.ready.is_reached().and_then(|written| Ok(written && self.uses().have_ended(Event::is_reached)?));
        ended.map_err(|error| lost.error("looking for the users of a tensor", error))
    }

    fn is_held(&self) -> bool {
        self.uses().is_open()
    }

    fn read(&self, desc: &TensorDesc) -> Result<Vec<u8>, DeviceError> {
        self.read_back(&self.0.memory, desc.offset, desc.byte_len())
    }

    fn fingerprints(&self, count: usize) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        let Some(sums) = &self.0.fingerprints else { return Ok(None) };
        let bytes = self.read_back(sums, 0, fingerprint_bytes(count))?;
        Ok(Some(bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect()))
    }
}

/// A tensor in use on an application's stream: see [`CudaTensor::on_stream`].
#[must_use = "dropping it marks the end of the use"]
#[derive(Debug)]
pub struct OnStream<'a> {
    tensor: &'a CudaTensor,
    stream: &'a CudaStream,
}

impl OnStream<'_> {
    /// The tensor.
    #[must_use]
    pub fn tensor(&self) -> &CudaTensor {
        self.tensor
    }
}

impl Drop for OnStream<'_> {
    fn drop(&mut self) {
        let spare = self.tensor.uses().spare();
        let event = spare.map_or_else(|| Event::new(self.tensor.0.backend.context()), Ok);
        let marked = event.and_then(|event| event.record(self.stream).map(|()| event));
        let marked = marked.inspect_err(|error| {
            log::debug!("the end of a use cannot be marked, so it is waited for: {}", driver::explain(*error));
            // An error here is sticky, and then nothing uses the tensor any more.
            let _ = driver::wait_for(self.stream);
        });
        self.tensor.uses().end(marked.ok());
    }
}
