//! Submitting batches that have no slot.

use super::super::device::WgpuBackend;
use super::super::lane::WgpuLane;
use super::super::native::Region;
use super::super::tensor::WgpuTensor;
use super::super::work::Work;
use super::{Direct, GatherPath, SampleLocation};
use crate::backend::{SubmissionId, check_lists};
use crate::error::DeviceError;
use crate::preprocess::Geometry;

impl WgpuLane {
    /// Gathers the samples at these bytes of the memory.
    pub(in super::super) fn submit_direct(
        &mut self,
        offsets: &[u64],
        records: &[[f32; Geometry::WORDS]],
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<SubmissionId, DeviceError> {
        let refused = |message: String| DeviceError::Refused { message };
        let Some(direct) = &mut self.direct else {
            return Err(refused(format!("strategy `{}` is fed through slots", self.spec.strategy)));
        };
        check_lists(&self.spec, samples, offsets, records)?;
        direct.find(offsets)?;
        let all = self.slots.len();
        let in_flight = || refused(format!("{all} submissions are in flight: reap some first"));
        let slot = self.slots.claim()?.ok_or_else(in_flight)?;
        direct.write_records(slot, records);
        if self.transfers.is_some() {
            return self.transfer_found(slot, samples, output);
        }
        let (id, backend) = (self.completions.next_id(), self.backend.clone());
        match backend.scope(|| self.record_direct(id, slot, samples, output)).flatten() {
            Ok(work) => {
                output.written_by(work.clone());
                self.completions.push(id, Some(slot), work);
                Ok(id)
            }
            Err(error) => {
                self.slots.free(slot, None);
                Err(error)
            }
        }
    }

    fn record_direct(
        &mut self,
        id: SubmissionId,
        slot: usize,
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<Work, DeviceError> {
        let to = self.copies_to(output).0.clone();
        let Some(direct) = &mut self.direct else {
            return Err(DeviceError::Refused { message: "there is no memory to read".to_owned() });
        };
        let keep = direct.keeps[slot].clone();
        let device = self.backend.device();
        // Before copies, which are of their own.
        let (mut order, mut copies) = (None, None);
        let mut encoder = new_encoder(device);
        let bytes = self.spec.layout.payload(samples) as u64;
        let timed = self.timing.as_ref().map(|timing| {
            let set = timing.start(id, bytes, order.get_or_insert_with(|| new_encoder(device)));
            timing.copied(set, &mut encoder);
            (timing, set)
        });
        if let (GatherPath::Kernel(lists), Some(output)) = (&mut direct.path, output.gather()) {
            lists.record(slot, &direct.found, &mut encoder, output);
        } else {
            let order = order.get_or_insert_with(|| new_encoder(device));
            copies = Some(record_copies(&self.backend, direct, order, &to, self.spec.layout.payload(1))?);
            self.record_records(slot, &mut encoder, &to, samples);
            self.record_fields(&mut encoder, self.device_bytes.as_ref(), output, samples);
            if let Some(bindings) = output.bindings(0) {
                self.kernels.encode(&mut encoder, bindings, samples);
            }
        }
        if let Some((timing, set)) = timed {
            timing.end(set, &mut encoder);
        }
        let order = order.map(wgpu::CommandEncoder::finish);
        let commands = order.into_iter().chain(copies).chain([encoder.finish()]);
        self.backend.send(commands, Some(keep), || {
            if let Some((timing, set)) = timed {
                timing.sent(set);
            }
        })
    }

    /// Records the copy of the samples' geometries, where there are any, to a buffer that is laid out as a slot.
    pub(in super::super) fn record_records(
        &self,
        submission: usize,
        encoder: &mut wgpu::CommandEncoder,
        to: &wgpu::Buffer,
        samples: usize,
    ) {
        if let Some(records) = self.direct.as_ref().and_then(Direct::records) {
            records.record(submission, encoder, to, samples);
        }
    }
}

fn new_encoder(device: &wgpu::Device) -> wgpu::CommandEncoder {
    device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("gpufeed batch") })
}

/// Records one copy of all samples an import.
///
/// wgpu does not see the copies, and does not mix them with its own commands. It is told of the destination's use in `order`, a command
/// buffer before theirs, so that what ran before has ended and what follows waits; and it keeps the destination.
fn record_copies(
    backend: &WgpuBackend,
    direct: &mut Direct,
    order: &mut wgpu::CommandEncoder,
    to: &wgpu::Buffer,
    bytes: usize,
) -> Result<wgpu::CommandBuffer, DeviceError> {
    let used = wgpu::BufferTransition { buffer: to, state: wgpu::BufferUses::COPY_DST };
    order.transition_resources([used].into_iter(), std::iter::empty());
    let (native, mut copies) = (backend.native()?, new_encoder(backend.device()));
    if let GatherPath::Copy(regions) = &mut direct.path {
        gather(regions, &direct.found, bytes as u64);
        for (import, regions) in direct.imports.iter().zip(regions).filter(|(_, regions)| !regions.is_empty()) {
            if !native.record_copy(&mut copies, import, to, regions) {
                return Err(DeviceError::Refused { message: "the copy's destination is gone".to_owned() });
            }
        }
    }
    Ok(copies.finish())
}

/// Lists the samples by import. Those that lie together, in the batch's order, are one region: copies cost by the region.
pub(super) fn gather(regions: &mut [Vec<Region>], found: &[SampleLocation], bytes: u64) {
    regions.iter_mut().for_each(Vec::clear);
    for (index, sample) in (0u64..).zip(found) {
        let regions = &mut regions[sample.import];
        match regions.last_mut() {
            Some(last)
                if last.src_offset + last.size == sample.byte && last.dst_offset + last.size == index * bytes =>
            {
                last.size += bytes;
            }
            _ => regions.push(Region { src_offset: sample.byte, dst_offset: index * bytes, size: bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_lie_together_are_copied_as_one() {
        let at = |import, byte| SampleLocation { import, byte, window: 0, start: 0 };
        let mut regions = vec![vec![Region::default(); 3], Vec::new()];
        let found = [at(0, 100), at(0, 110), at(1, 120), at(0, 130), at(0, 120), at(1, 0), at(1, 10)];
        gather(&mut regions, &found, 10);
        let listed = |import: usize| -> Vec<_> {
            regions[import].iter().map(|region| (region.src_offset, region.dst_offset, region.size)).collect()
        };
        assert_eq!(listed(0), [(100, 0, 20), (130, 30, 10), (120, 40, 10)]);
        assert_eq!(listed(1), [(120, 20, 10), (0, 50, 20)]);
    }
}
