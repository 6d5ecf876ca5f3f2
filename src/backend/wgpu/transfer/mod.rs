//! Transfers beside wgpu's queue, and so beside what the application computes there.
//!
//! ```text
//! submit ──▶ copies on a queue of another family ──▶ arrival buffer ──▶ kernel (or copy) on wgpu's queue ──▶ tensor
//!            (host memory to the device)             (one a slot)       (sent once the copies have ended)
//! ```
//!
//! Nothing on wgpu's queue ever waits for a transfer: the second half is sent when the first has ended, and only then the batch is to be
//! delivered ([`Lane::has_arrived`](crate::backend::Lane::has_arrived)). So an application's own work is held up by the kernel alone.
//! The tensor itself is written on wgpu's queue, behind all that was submitted there while an earlier batch was in it: applications keep
//! the order that they have without a second queue.
//!
//! In a lane whose kernels run [beside](super::beside) wgpu's queue as well, both halves are sent at once, and the second one waits for the
//! first on the device. Where nothing is computed, the copies go straight to the tensor.
//!
//! What the second half reads was written on another queue, which needs a dependency for the bytes to be seen. Its submission is given
//! a wait for the transfer's semaphore, which has its value already.

mod plan;
mod submit;

use plan::lands_in_tensor;
pub(super) use plan::{arrivals, device_bytes, family, family_of};

use std::collections::VecDeque;
use std::time::Duration;

use super::buffers::clear;
use super::device::WgpuBackend;
use super::native::{Copy, CopyQueue, RawBuffer, Region, TransferTicket};
use super::tensor::WgpuTensor;
use super::work::{Done, Work};
use crate::backend::{LaneSpec, SubmissionId};
use crate::error::{DeviceError, OpenError};

/// How long the end of a lane waits for each transfer before it leaves its memory behind.
const PATIENCE: Duration = Duration::from_secs(10);

/// A lane's transfers.
pub(super) struct Transfers {
    queue: Box<dyn CopyQueue>,
    arrivals: Vec<Arrival>,
    /// Oldest first.
    under_way: VecDeque<Transfer>,
    /// Submissions whose second half could not be sent, until they are asked for.
    failed: Vec<(SubmissionId, DeviceError)>,
}

/// Where a slot's bytes arrive on the device.
struct Arrival {
    buffer: wgpu::Buffer,
    raw: RawBuffer,
}

/// A batch between its two halves.
struct Transfer {
    id: SubmissionId,
    slot: usize,
    ticket: TransferTicket,
    samples: usize,
    output: WgpuTensor,
    /// What the lane and the tensor look at.
    work: Work,
    /// Holds what the copies read; its end is the end of the output's writing.
    done: Done,
}

impl Transfers {
    /// `None` where the lane's copies go through wgpu's queue.
    ///
    /// # Errors
    /// [`OpenError::Unsupported`] where a queue was asked for that the device does not have, and the device's error.
    pub(super) fn open(backend: &WgpuBackend, spec: &LaneSpec) -> Result<Option<Self>, OpenError> {
        let Some(queues) = family(backend, spec)? else { return Ok(None) };
        let count = arrivals(spec);
        let buffers = if lands_in_tensor(backend, spec)? { 0 } else { count };
        let arrivals = (0..buffers).map(|_| Arrival::new(backend, spec)).collect::<Result<Vec<_>, _>>()?;
        // Before anything else writes them.
        backend.wait_for_all()?;
        let queue = backend.native()?.copy_queue(backend, queues, count)?;
        let (under_way, failed) = (VecDeque::with_capacity(count), Vec::new());
        Ok(Some(Self { queue, arrivals, under_way, failed }))
    }

    /// Where kernels find the bytes, by slot.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &wgpu::Buffer> {
        self.arrivals.iter().map(|arrival| &arrival.buffer)
    }

    /// Batches between their two halves.
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Whether the second half of a batch was sent.
    ///
    /// # Errors
    /// Why it could not be, once.
    pub(super) fn has_arrived(&mut self, id: SubmissionId) -> Result<bool, DeviceError> {
        if let Some(at) = self.failed.iter().position(|(failed, _)| *failed == id) {
            return Err(self.failed.swap_remove(at).1);
        }
        Ok(self.under_way.iter().all(|transfer| transfer.id != id))
    }

    /// Waits until the oldest transfer has ended, at most for this long.
    pub(super) fn wait(&self, at_most: Duration) -> Result<(), DeviceError> {
        self.under_way.front().map_or(Ok(()), |oldest| self.queue.wait(oldest.ticket, at_most).map(drop))
    }

    /// Where the bytes of a slot arrive: a buffer of its own, or the tensor itself.
    fn target(&self, slot: usize, output: &WgpuTensor) -> Result<RawBuffer, DeviceError> {
        let arrival = self.arrivals.get(slot).map(|arrival| &arrival.raw);
        arrival.or(output.raw()).cloned().ok_or_else(no_transfers)
    }

    /// Copies `regions` of each source to `to`. The caller keeps all of them until the ticket is reached.
    fn send<'a>(
        &'a mut self,
        to: &'a RawBuffer,
        sources: impl Iterator<Item = (&'a RawBuffer, &'a [Region])> + Clone,
    ) -> Result<TransferTicket, DeviceError> {
        self.queue.submit(&sources.map(|(from, regions)| Copy { from, to, regions }))
    }

    /// The oldest transfer, if it has ended.
    fn next_arrived(&mut self) -> Result<Option<Transfer>, DeviceError> {
        match self.under_way.front() {
            Some(oldest) if self.queue.is_reached(oldest.ticket)? => Ok(self.under_way.pop_front()),
            _ => Ok(None),
        }
    }

    /// A second half could not be sent.
    fn failed(&mut self, id: SubmissionId, error: DeviceError) -> Result<(), DeviceError> {
        self.queue.unstage();
        self.failed.push((id, error.clone()));
        if matches!(error, DeviceError::Lost { .. }) { Err(error) } else { Ok(()) }
    }

    /// The device is gone, or the lane: waits for the copies, whose second halves will never be sent. A device that was only destroyed
    /// still copies.
    pub(super) fn give_up(&mut self) {
        for transfer in self.under_way.drain(..) {
            let reason = "it was lost before the batch had arrived".to_owned();
            self.failed.push((transfer.id, DeviceError::Lost { reason }));
            match self.queue.wait(transfer.ticket, PATIENCE) {
                Ok(true) | Err(DeviceError::Lost { .. }) => drop(transfer),
                _ => {
                    log::error!(
                        "the device does not say that a transfer has ended: what it reads and writes is left behind"
                    );
                    Box::leak(Box::new(transfer));
                }
            }
        }
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Arrival {
    fn new(backend: &WgpuBackend, spec: &LaneSpec) -> Result<Self, DeviceError> {
        let bytes = spec.layout.slot_bytes() as u64;
        let (buffer, raw) = backend.native()?.device_buffer(backend, "gpufeed arrival", bytes)?;
        clear(backend, &buffer)?;
        Ok(Self { buffer, raw })
    }
}

fn no_transfers() -> DeviceError {
    DeviceError::Refused { message: "this lane has nothing that another queue could read".to_owned() }
}

#[cfg(test)]
pub(super) mod test_lanes;
#[cfg(test)]
mod tests;
