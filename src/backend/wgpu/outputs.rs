//! Making the tensors of a lane.

use super::buffers::{clear, device_buffer, output_bytes};
use super::direct::Direct;
use super::kernel::fingerprint_bytes;
use super::lane::WgpuLane;
use super::tensor::{TensorMemory, WgpuTensor, Written};
use super::transfer::Transfers;
use super::vulkan::SharedBuffer;
use crate::error::DeviceError;
use crate::preprocess::Preprocess;

impl WgpuLane {
    pub(super) fn make_output(&mut self) -> Result<WgpuTensor, DeviceError> {
        let spec = &self.spec;
        let sums = fingerprint_bytes(spec.fingerprint_count());
        let tensor = self.memory_of_output("gpufeed tensor", output_bytes(spec) - sums)?;
        let fingerprints = match sums {
            0 => None,
            bytes => Some(self.memory_of_output("gpufeed fingerprints", bytes)?),
        };
        let written = tensor.target().clone();
        let raw = matches!(spec.preprocess, Preprocess::Raw);
        let arrivals: Vec<_> = self.transfers.iter().flat_map(Transfers::buffers).cloned().collect();
        let sources = match (self.staging.in_place(), &self.device_bytes) {
            // The bytes end up in the tensor, and the kernels find them there.
            _ if raw => std::slice::from_ref(&written),
            _ if !arrivals.is_empty() => &arrivals,
            ([], Some(device_bytes)) => std::slice::from_ref(device_bytes),
            (slots, _) => slots,
        };
        let (device, sums_buffer) = (self.backend.device(), fingerprints.as_ref().map(TensorMemory::target));
        let lists = self.direct.as_ref().and_then(Direct::lists);
        let (bindings, gather) = self.backend.scope(|| {
            let bind = |source| self.kernels.bind(device, source, &written, sums_buffer);
            let gather = lists.map(|lists| lists.kernels.bind_output(device, &written, sums_buffer));
            (sources.iter().map(bind).collect(), gather)
        })?;
        let user = self.beside.as_ref().map_or(&self.backend, |beside| beside.user()).clone();
        let fingerprints = fingerprints.map(|sums| sums.buffer);
        let index = self.note_output(output_bytes(&self.spec), 1 + u64::from(fingerprints.is_some()));
        Ok(WgpuTensor::new(user, index, tensor, fingerprints, bindings, gather))
    }

    /// Zeroed memory that the lane's queue writes and the application's reads.
    fn memory_of_output(&self, label: &str, bytes: u64) -> Result<TensorMemory, DeviceError> {
        let Some(beside) = &self.beside else {
            return Ok(TensorMemory {
                buffer: device_buffer(&self.backend, label, bytes)?,
                offset: 0,
                is_given: false,
                written: None,
            });
        };
        let SharedBuffer { main, twin, raw } = SharedBuffer::new(beside.user(), &self.backend, label, bytes)?;
        clear(&self.backend, &twin)?;
        // Before a queue of copies writes it.
        self.backend.wait_for_all()?;
        let written = Written { backend: self.backend.clone(), buffer: twin, raw };
        Ok(TensorMemory { buffer: main, offset: 0, is_given: false, written: Some(written) })
    }
}
