//! Strategies without slots: the device reads the source's own memory.

use super::super::mapped::Memory;
use super::Staging;
use crate::error::DeviceError;

pub(super) struct NoSlots;

impl Staging for NoSlots {
    fn begin(&mut self, _: usize) -> Result<Memory, DeviceError> {
        Err(DeviceError::Refused { message: "this strategy has no slots".to_owned() })
    }

    fn record(&mut self, _: usize, _: Memory, _: &mut wgpu::CommandEncoder, _: wgpu::BufferSlice<'_>) {}

    fn cancel(&mut self, _: usize, _: Memory) {}

    fn recover(&mut self, _: usize) -> Result<(), DeviceError> {
        Ok(())
    }
}
