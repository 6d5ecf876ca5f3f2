//! A consumer on a stream of its own: a kernel behind each batch.

use std::sync::Arc;

use cudarc::driver::DriverError;

use super::device::CudaBackend;
use super::driver::{Consume, DeviceMemory, Stream, download, wait_for};
use super::kernel::Modules;
use super::tensor::CudaTensor;
use crate::backend::Consumer;
use crate::backend::consumer::{LOOKS, MAX_SUMS, Seen};
use crate::error::DeviceError;
use crate::preprocess::TensorDesc;

/// Fixed work on a stream of its own, as an application's is.
#[derive(Debug)]
pub struct CudaConsumer {
    kernel: Consume,
    seen: DeviceMemory,
    /// What work without a batch looks at.
    blank: DeviceMemory,
    iterations: u32,
    stream: Arc<Stream>,
    backend: CudaBackend,
}

impl CudaConsumer {
    pub(super) fn new(backend: &CudaBackend) -> Result<Self, DeviceError> {
        backend.lost().check()?;
        let context = backend.context();
        let make = || {
            let consumer = Self {
                kernel: Modules::consume(context)?,
                seen: DeviceMemory::new(context, (2 + MAX_SUMS) * 4)?,
                blank: DeviceMemory::new(context, LOOKS * 4)?,
                iterations: 0,
                stream: Stream::new(context)?,
                backend: backend.clone(),
            };
            consumer.blank.clear(&consumer.stream)?;
            consumer.seen.clear(&consumer.stream)?;
            Ok(consumer)
        };
        make().map_err(|error| backend.lost().allocation("a measured consumer", (MAX_SUMS * 4) as u64, error))
    }

    fn failed(&self, error: DriverError) -> DeviceError {
        self.backend.lost().error("a measured consumer", error)
    }
}

impl crate::backend::sealed::Sealed for CudaConsumer {}

impl Consumer for CudaConsumer {
    type Tensor = CudaTensor;

    fn set_iterations(&mut self, iterations: u32) -> Result<(), DeviceError> {
        self.seen()?;
        self.iterations = iterations;
        Ok(())
    }

    fn work(&mut self) -> Result<(), DeviceError> {
        let queued = self.kernel.launch(&self.stream, &self.blank, self.blank.bytes(), &self.seen, self.iterations);
        queued.map_err(|error| self.failed(error))
    }

    fn consume(&mut self, tensor: &CudaTensor, desc: &TensorDesc) -> Result<(), DeviceError> {
        let stream = Arc::clone(&self.stream);
        // Its end marks the end of the use.
        let guard = tensor.on_stream(&stream)?;
        let bytes = desc.byte_len().next_multiple_of(4).min(tensor.buffer_bytes());
        let queued = self.kernel.launch(&stream, guard.tensor().memory(), bytes, &self.seen, self.iterations);
        queued.map_err(|error| self.failed(error))
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        wait_for(&self.stream).map_err(|error| self.failed(error))
    }

    fn seen(&mut self) -> Result<Seen, DeviceError> {
        let read = download(&self.stream, &self.seen, 0, self.seen.bytes());
        let bytes = read.map_err(|error| self.failed(error))?;
        self.seen.clear(&self.stream).map_err(|error| self.failed(error))?;
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|&word| u32::from_ne_bytes(word)).collect();
        Ok(Seen::of_words(&words))
    }
}
