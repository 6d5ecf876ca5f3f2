//! Copies on queues apart from wgpu's: recorded, submitted, and waited for without any lock of wgpu's.
//!
//! One thread uses a [`TransferQueue`], as `&mut self` says: the lane's. It has command buffers and a timeline semaphore of its own for
//! each of the family's queues, and shares only those with other lanes.

use std::sync::Arc;
use std::time::Duration;

use ash::vk;
use wgpu::hal::api::Vulkan;

use super::super::families::MAX_QUEUES;
use super::super::transfer_split::{part, within};
use super::import::Region;
use super::queues::SharedQueues;
use super::stream::Stream;
use super::{KeepAlive, RawBuffer, failed};
use crate::backend::wgpu::WgpuBackend;
use crate::error::DeviceError;

/// How long the end of a lane waits for its transfers.
const PATIENCE: Duration = Duration::from_secs(10);

/// A copy between two buffers.
#[derive(Clone, Copy)]
pub(in crate::backend::wgpu) struct Copy<'a> {
    pub from: &'a RawBuffer,
    pub to: &'a RawBuffer,
    pub regions: &'a [Region],
}

/// What says when a transfer has ended: a value for each queue, zero where nothing was submitted to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::backend::wgpu) struct TransferTicket([u64; MAX_QUEUES]);

/// Where copies are submitted. Dropping it waits for them.
///
/// Whoever submits keeps the buffers until the ticket is reached.
pub(in crate::backend::wgpu) struct TransferQueue {
    streams: Vec<Stream>,
    shared: Arc<SharedQueues>,
    backend: WgpuBackend,
    /// For submissions that wait for the semaphores.
    semaphores: KeepAlive,
}

impl TransferQueue {
    /// With room for so many transfers at once.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing stays allocated.
    pub fn new(backend: &WgpuBackend, shared: Arc<SharedQueues>, room: usize) -> Result<Self, DeviceError> {
        let stream = |_| Stream::new(&shared, room);
        let streams = (0..shared.count()).map(stream).collect::<Result<Vec<_>, _>>();
        let streams = streams.map_err(|error| failed(backend, "a transfer queue", 0, error))?;
        let semaphores: Vec<_> = streams.iter().map(|stream| Arc::clone(&stream.timeline)).collect();
        Ok(Self { streams, shared, backend: backend.clone(), semaphores: Arc::new(semaphores) })
    }

    /// What a submission holds that waits for a transfer.
    pub fn keep(&self) -> KeepAlive {
        Arc::clone(&self.semaphores)
    }

    /// Records copies and submits them, shared out among the queues by the number of their regions.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing of it is still under way then. It is refused where more transfers are under way than there is room for,
    /// or where a region is outside of a buffer.
    pub fn submit<'a>(
        &mut self,
        copies: &(impl Iterator<Item = Copy<'a>> + Clone),
    ) -> Result<TransferTicket, DeviceError> {
        let refused = |message: &str| Err(DeviceError::Refused { message: message.to_owned() });
        if !copies.clone().all(|copy| copy.is_within()) {
            return refused("a copy is outside of its buffers");
        }
        // Of all queues, before anything is submitted to one: what they had done is known then, too.
        for stream in &self.streams {
            if !stream.has_room().map_err(|error| self.failed(error))? {
                return refused("more transfers are under way than there is room for");
            }
        }
        let regions = copies.clone().map(|copy| copy.regions.len()).sum();
        let mut ticket = TransferTicket::default();
        for queue in 0..self.streams.len() {
            let share = part(regions, queue, self.streams.len());
            if share.is_empty() {
                continue;
            }
            // SAFETY: there is room, as was seen above, and each queue is submitted to once.
            match unsafe { self.submit_part(queue, copies.clone(), share) } {
                Ok(value) => ticket.0[queue] = value,
                Err(error) => {
                    self.settle(ticket);
                    return Err(self.failed(error));
                }
            }
        }
        Ok(ticket)
    }

    /// Waits for a part of a transfer whose other part failed.
    fn settle(&self, ticket: TransferTicket) {
        if let Err(error) = self.wait(ticket, PATIENCE) {
            log::error!("half of a failed transfer may still be under way: {error}");
        }
    }

    /// # Safety
    /// The queue's stream has room.
    unsafe fn submit_part<'a>(
        &mut self,
        queue: usize,
        copies: impl Iterator<Item = Copy<'a>>,
        share: std::ops::Range<usize>,
    ) -> Result<u64, vk::Result> {
        let raw = &self.shared.raw;
        let stream = &mut self.streams[queue];
        // SAFETY: the caller says that there is room.
        let (commands, value) = unsafe { stream.begin() }?;
        let mut first = 0;
        for copy in copies {
            let here = within(&share, first, copy.regions.len());
            first += copy.regions.len();
            if !here.is_empty() {
                let regions = &copy.regions[here];
                // SAFETY: it is recording; the buffers exist, since the caller holds them, and the regions lie within them.
                unsafe { raw.cmd_copy_buffer(commands, copy.from.handle(), copy.to.handle(), regions) };
            }
        }
        // SAFETY: it is recording.
        unsafe { raw.end_command_buffer(commands) }?;
        let (buffers, semaphores, values) = ([commands], [stream.timeline.semaphore], [value]);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info =
            vk::SubmitInfo::default().command_buffers(&buffers).signal_semaphores(&semaphores).push_next(&mut timeline);
        let target = self.shared.lock(queue);
        // SAFETY: the lock gives the right to submit; the command buffer is recorded, and of a pool of this queue's family; the value
        // is above every one that the semaphore was given. What the host wrote before is visible to it.
        unsafe { raw.queue_submit(*target, &[info], vk::Fence::null()) }?;
        stream.submitted = value;
        Ok(value)
    }

    /// Whether a transfer has ended. Never waits.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn is_reached(&self, ticket: TransferTicket) -> Result<bool, DeviceError> {
        for (stream, value) in self.streams.iter().zip(ticket.0) {
            let reached = stream.timeline.reached().map_err(|error| self.failed(error))?;
            if reached < value {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for a transfer: whether it has ended in time.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn wait(&self, ticket: TransferTicket, timeout: Duration) -> Result<bool, DeviceError> {
        let (mut semaphores, mut count) = ([vk::Semaphore::null(); MAX_QUEUES], 0);
        let mut values = [0; MAX_QUEUES];
        for (stream, value) in self.streams.iter().zip(ticket.0).filter(|(_, value)| *value > 0) {
            (semaphores[count], values[count]) = (stream.timeline.semaphore, value);
            count += 1;
        }
        if count == 0 {
            return Ok(true);
        }
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores[..count]).values(&values[..count]);
        let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the semaphores are timeline semaphores of this device, and live as long as `self`.
        match unsafe { self.shared.raw.wait_semaphores(&info, nanoseconds) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Makes the next submission to wgpu's queue wait for a transfer that has ended: it holds up nothing, and makes the bytes visible
    /// there. The caller submits at once what holds [`keep`](Self::keep), or takes it back with [`unstage`](Self::unstage).
    ///
    /// # Errors
    /// [`DeviceError`], and nothing is staged: a wait for what is never signalled would hang the application's queue.
    pub fn stage(&self, ticket: TransferTicket) -> Result<(), DeviceError> {
        if !self.is_reached(ticket)? {
            return Err(DeviceError::Refused { message: "a transfer has not ended".to_owned() });
        }
        self.stage_ahead(ticket)
    }

    /// Makes the next submission to the queue of this lane's second device wait for a transfer that was submitted, and makes the bytes
    /// visible there. The caller submits at once what holds [`keep`](Self::keep), or takes it back with [`unstage`](Self::unstage).
    /// Never for wgpu's own queue: whatever is submitted there next would wait, whoever submits it.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], and nothing is staged.
    pub fn stage_ahead(&self, ticket: TransferTicket) -> Result<(), DeviceError> {
        // SAFETY: the queue is only staged on, which its own lock allows from any thread.
        let queue = unsafe { self.backend.queue().as_hal::<Vulkan>() };
        let queue = queue.ok_or_else(|| self.failed(vk::Result::ERROR_DEVICE_LOST))?;
        for (stream, value) in self.streams.iter().zip(ticket.0).filter(|(_, value)| *value > 0) {
            queue.add_wait_semaphore(stream.timeline.semaphore, Some(value), vk::PipelineStageFlags::ALL_COMMANDS);
        }
        Ok(())
    }

    /// Takes back what was staged for a submission that failed.
    pub fn unstage(&self) {
        // SAFETY: as in `stage`.
        let Some(queue) = (unsafe { self.backend.queue().as_hal::<Vulkan>() }) else { return };
        let is_gone = |stream: &&Stream| !queue.remove_wait_semaphore(stream.timeline.semaphore);
        let gone = self.streams.iter().filter(is_gone).count();
        drop(queue);
        if gone > 0 {
            // Somebody else's submission may have taken it, and be under way.
            let keep = self.keep();
            self.backend.queue().on_submitted_work_done(move || drop(keep));
        }
    }

    fn failed(&self, error: vk::Result) -> DeviceError {
        failed(&self.backend, "a transfer", 0, error)
    }
}

impl Copy<'_> {
    fn is_within(&self) -> bool {
        let fits =
            |start: u64, size: u64, end: u64| size > 0 && start.checked_add(size).is_some_and(|last| last <= end);
        self.regions.iter().all(|region| {
            fits(region.src_offset, region.size, self.from.size())
                && fits(region.dst_offset, region.size, self.to.size())
        })
    }
}

impl Drop for TransferQueue {
    fn drop(&mut self) {
        let mut last = TransferTicket::default();
        self.streams.iter().zip(&mut last.0).for_each(|(stream, value)| *value = stream.submitted);
        let ended = match self.wait(last, PATIENCE) {
            // What a lost device was doing has ended.
            Err(DeviceError::Lost { .. }) => true,
            ended => ended.unwrap_or(false),
        };
        if !ended {
            log::error!("a device does not say that its transfers have ended: a few of its objects are leaked");
            Box::leak(Box::new(std::mem::take(&mut self.streams)));
        }
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
