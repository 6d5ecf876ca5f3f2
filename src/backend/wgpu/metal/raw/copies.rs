//! A second queue that copies. Metal runs command buffers of different queues beside each other where the device can.
//!
//! Each lane has one, with an event of its own.

use std::sync::Arc;
use std::time::Duration;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_metal::{
    MTLBlitCommandEncoder, MTLCommandBuffer, MTLCommandEncoder, MTLCommandQueue, MTLDevice, MTLSharedEvent,
};
use wgpu::hal::api::Metal;

use super::memory::Owned;
use super::{raw_device, refused_by};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Copies, CopyQueue, KeepAlive, RawBuffer, Region, TransferTicket};
use crate::error::DeviceError;

/// How long the end of a lane waits for its transfers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where copies are submitted. Dropping it waits for them.
pub(super) struct Copier {
    queue: Retained<ProtocolObject<dyn MTLCommandQueue>>,
    /// Its value is the number of the last submission that has ended.
    progress: Arc<Progress>,
    submitted: u64,
    room: u64,
    backend: WgpuBackend,
}

struct Progress(Retained<ProtocolObject<dyn MTLSharedEvent>>);

// SAFETY: Metal's queues and events may be used on any thread, and counting references is atomic.
unsafe impl Send for Copier {}
// SAFETY: as above.
unsafe impl Send for Progress {}
// SAFETY: as above.
unsafe impl Sync for Progress {}

impl Copier {
    /// With room for so many transfers at once.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing stays allocated.
    pub(super) fn new(backend: &WgpuBackend, room: usize) -> Result<Self, DeviceError> {
        let device = raw_device(backend.device())?;
        let queue = device.newCommandQueue().ok_or_else(|| refused_by("Metal makes no second queue"))?;
        let event = device.newSharedEvent().ok_or_else(|| refused_by("Metal makes no shared event"))?;
        let (progress, room) = (Arc::new(Progress(event)), room.max(1) as u64);
        Ok(Self { queue, progress, submitted: 0, room, backend: backend.clone() })
    }

    fn record(&self, value: u64, copies: &dyn Copies) -> Option<()> {
        let commands = self.queue.commandBuffer()?;
        let blit = commands.blitCommandEncoder()?;
        copies.each(&mut |copy| {
            let Some((from, to)) = copy.from.of::<Owned>().zip(copy.to.of::<Owned>()) else { return };
            for region in copy.regions {
                let [start, target, size] =
                    [region.src_offset, region.dst_offset, region.size].map(|number| number as usize);
                // SAFETY: the caller keeps the buffers, and the regions lie within them.
                unsafe {
                    blit.copyFromBuffer_sourceOffset_toBuffer_destinationOffset_size(
                        &from.buffer,
                        start,
                        &to.buffer,
                        target,
                        size,
                    );
                }
            }
        });
        blit.endEncoding();
        commands.encodeSignalEvent_value(self.progress.0.as_ref(), value);
        commands.commit();
        Some(())
    }
}

/// Metal copies whole words on macOS.
fn are_words(regions: &[Region]) -> bool {
    let word = wgpu::COPY_BUFFER_ALIGNMENT;
    let mut numbers = regions.iter().flat_map(|region| [region.src_offset, region.dst_offset, region.size]);
    numbers.all(|number| number % word == 0)
}

fn is_ours(raw: &RawBuffer) -> bool {
    raw.of::<Owned>().is_some()
}

impl CopyQueue for Copier {
    fn keep(&self) -> KeepAlive {
        Arc::clone(&self.progress) as KeepAlive
    }

    fn submit(&mut self, copies: &dyn Copies) -> Result<TransferTicket, DeviceError> {
        let (regions, mut here, mut words) = (copies.regions()?, true, true);
        copies.each(&mut |copy| {
            here &= is_ours(copy.from) && is_ours(copy.to);
            words &= are_words(copy.regions);
        });
        match (here, words) {
            (false, _) => return Err(refused_by("a buffer is not of Metal")),
            (_, false) => return Err(refused_by("Metal copies multiples of four bytes only")),
            _ if regions == 0 => return Ok(TransferTicket::default()),
            _ => {}
        }
        let value = self.submitted + 1;
        if value > self.room + self.progress.0.signaledValue() {
            return Err(refused_by("more transfers are under way than there is room for"));
        }
        autoreleasepool(|_| self.record(value, copies)).ok_or_else(|| refused_by("Metal gave no command buffer"))?;
        self.submitted = value;
        Ok(TransferTicket([value, 0]))
    }

    fn is_reached(&self, ticket: TransferTicket) -> Result<bool, DeviceError> {
        Ok(ticket.0[0] <= self.progress.0.signaledValue())
    }

    /// Of transfers that have ended only: wgpu orders what is submitted behind an event strictly only after a choice that cannot be taken
    /// back, which is not this lane's to make.
    fn stage_ahead(&self, ticket: TransferTicket) -> Result<(), DeviceError> {
        // SAFETY: the queue is only staged on, which its own lock allows from any thread.
        let queue = unsafe { self.backend.queue().as_hal::<Metal>() };
        let queue = queue.ok_or_else(|| self.backend.lose("its queue is gone"))?;
        if ticket != TransferTicket::default() {
            queue.add_wait_event(self.progress.0.clone(), ticket.0[0]);
        }
        Ok(())
    }

    fn unstage(&self) {
        // SAFETY: as in `stage_ahead`. What somebody else's submission has taken waits for an event that it counts, and that is signalled.
        if let Some(queue) = unsafe { self.backend.queue().as_hal::<Metal>() } {
            queue.remove_wait_event(&self.progress.0);
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        // Metal keeps what its command buffers use; what the lane frees next is read until they have ended.
        if !self.wait(TransferTicket([self.submitted, 0]), PATIENCE).unwrap_or(false) {
            log::error!("a device does not say that its transfers have ended");
        }
    }
}
