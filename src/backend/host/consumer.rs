//! A consumer on the host: the thread that takes the batches computes.

use std::hint::black_box;

use super::HostTensor;
use crate::backend::Consumer;
use crate::backend::consumer::{Seen, iterate, look};
use crate::error::DeviceError;
use crate::preprocess::TensorDesc;

/// Fixed work on the CPU.
#[derive(Debug, Default)]
pub struct HostConsumer {
    iterations: u32,
    seen: Seen,
}

impl HostConsumer {
    fn compute(&self, seed: u32) -> u32 {
        black_box((0..self.iterations).fold(black_box(seed), |x, _| iterate(x)))
    }
}

impl crate::backend::sealed::Sealed for HostConsumer {}

impl Consumer for HostConsumer {
    type Tensor = HostTensor;

    fn set_iterations(&mut self, iterations: u32) -> Result<(), DeviceError> {
        (self.iterations, self.seen) = (iterations, Seen::default());
        Ok(())
    }

    fn work(&mut self) -> Result<(), DeviceError> {
        self.compute(1);
        Ok(())
    }

    fn consume(&mut self, tensor: &HostTensor, desc: &TensorDesc) -> Result<(), DeviceError> {
        let before = tensor.with(desc, look)?;
        self.compute(before);
        let after = tensor.with(desc, look)?;
        self.seen.add(before, after);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn seen(&mut self) -> Result<Seen, DeviceError> {
        Ok(std::mem::take(&mut self.seen))
    }
}
