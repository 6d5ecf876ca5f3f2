//! Reading registered memory by copies.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError, result, sys};

use super::batch::Lists;
use super::context::{Stream, bind, wait_for};
use super::{BatchCopy, DeviceMemory, Registration};

/// Registered memory and the streams that read it. Dropping it waits for them.
pub(in super::super) struct RegisteredReader {
    memory: Registration,
    streams: Vec<Arc<Stream>>,
    lists: Lists,
}

impl RegisteredReader {
    /// Lets these streams read the memory, `samples` samples at once.
    pub(in super::super) fn new(memory: Registration, streams: Vec<Arc<Stream>>, samples: usize) -> Self {
        Self { memory, streams, lists: Lists::with_capacity(samples) }
    }

    /// The memory.
    pub(in super::super) fn memory(&self) -> &Registration {
        &self.memory
    }

    /// Queues one copy a sample on stream number `stream`, one after the other into `to`.
    pub(in super::super) fn copy(
        &mut self,
        stream: usize,
        batch: Option<BatchCopy>,
        offsets: &[u64],
        sample_bytes: usize,
        to: &DeviceMemory,
    ) -> Result<(), DriverError> {
        let stream = &self.streams[stream];
        match batch {
            Some(batch) => batch.gather(stream, &self.memory, offsets, sample_bytes, to, &mut self.lists),
            None => copy_each(stream, &self.memory, offsets, sample_bytes, to),
        }
    }
}

impl Drop for RegisteredReader {
    fn drop(&mut self) {
        for stream in &self.streams {
            // An error is sticky: then nothing runs on the device any more.
            let _ = wait_for(stream);
        }
    }
}

fn copy_each(
    stream: &CudaStream,
    memory: &Registration,
    offsets: &[u64],
    sample_bytes: usize,
    to: &DeviceMemory,
) -> Result<(), DriverError> {
    if !memory.covers(offsets, sample_bytes) || offsets.len() * sample_bytes > to.bytes() {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    bind(stream.context())?;
    for (index, offset) in offsets.iter().enumerate() {
        let (to, from) = (to.address + (index * sample_bytes) as u64, memory.address() + offset);
        // SAFETY: both ranges were checked above. The registration and the device memory outlive the copies: whoever owns
        // them waits for the stream.
        unsafe { result::memcpy_dtod_async(to, from, sample_bytes, stream.cu_stream()) }?;
    }
    Ok(())
}
