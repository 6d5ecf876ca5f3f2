//! Copies on queues of families apart from wgpu's.
//!
//! A lane has command buffers and a timeline semaphore of its own for each of the family's queues, and shares only those with other lanes.

use std::sync::Arc;
use std::time::Duration;

use ash::vk;
use wgpu::hal::api::Vulkan;

use super::super::transfer_split::{part, within};
use super::queues::SharedQueues;
use super::stream::Stream;
use super::{failed, handle};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Copies, CopyQueue, KeepAlive, MAX_QUEUES, TransferTicket};
use crate::error::DeviceError;

/// How long the end of a lane waits for its transfers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where copies are submitted. Dropping it waits for them.
pub(super) struct TransferQueue {
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

    /// Waits for a part of a transfer whose other part failed.
    fn settle(&self, ticket: TransferTicket) {
        if let Err(error) = self.wait(ticket, PATIENCE) {
            log::error!("half of a failed transfer may still be under way: {error}");
        }
    }

    /// # Safety
    /// The queue's stream has room.
    unsafe fn submit_part(
        &mut self,
        queue: usize,
        copies: &dyn Copies,
        share: &std::ops::Range<usize>,
    ) -> Result<u64, vk::Result> {
        let raw = &self.shared.raw;
        let stream = &mut self.streams[queue];
        // SAFETY: the caller says that there is room.
        let (commands, value) = unsafe { stream.begin() }?;
        let mut first = 0;
        copies.each(&mut |copy| {
            let here = within(share, first, copy.regions.len());
            first += copy.regions.len();
            if let (false, Some((from, to))) = (here.is_empty(), handle(copy.from).zip(handle(copy.to))) {
                // SAFETY: it is recording; the buffers exist, since the caller holds them, and the regions lie within them.
                unsafe { raw.cmd_copy_buffer(commands, from, to, &copy.regions[here]) };
            }
        });
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

    fn failed(&self, error: vk::Result) -> DeviceError {
        failed(&self.backend, "a transfer", 0, error)
    }
}

impl CopyQueue for TransferQueue {
    fn keep(&self) -> KeepAlive {
        Arc::clone(&self.semaphores)
    }

    /// Shared out among the queues by the number of regions.
    fn submit(&mut self, copies: &dyn Copies) -> Result<TransferTicket, DeviceError> {
        let refused = |message: &str| Err(DeviceError::Refused { message: message.to_owned() });
        let (regions, mut here) = (copies.regions()?, true);
        copies.each(&mut |copy| here &= handle(copy.from).is_some() && handle(copy.to).is_some());
        if !here {
            return refused("a buffer is not of Vulkan");
        }
        // Of all queues, before anything is submitted to one: what they had done is known then, too.
        for stream in &self.streams {
            if !stream.has_room().map_err(|error| self.failed(error))? {
                return refused("more transfers are under way than there is room for");
            }
        }
        let mut ticket = TransferTicket::default();
        for queue in 0..self.streams.len() {
            let share = part(regions, queue, self.streams.len());
            if share.is_empty() {
                continue;
            }
            // SAFETY: there is room, as was seen above, and each queue is submitted to once.
            match unsafe { self.submit_part(queue, copies, &share) } {
                Ok(value) => ticket.0[queue] = value,
                Err(error) => {
                    self.settle(ticket);
                    return Err(self.failed(error));
                }
            }
        }
        Ok(ticket)
    }

    fn is_reached(&self, ticket: TransferTicket) -> Result<bool, DeviceError> {
        for (stream, value) in self.streams.iter().zip(ticket.0) {
            let reached = stream.timeline.reached().map_err(|error| self.failed(error))?;
            if reached < value {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn wait(&self, ticket: TransferTicket, timeout: Duration) -> Result<bool, DeviceError> {
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

    fn stage_ahead(&self, ticket: TransferTicket) -> Result<(), DeviceError> {
        // SAFETY: the queue is only staged on, which its own lock allows from any thread.
        let queue = unsafe { self.backend.queue().as_hal::<Vulkan>() };
        let queue = queue.ok_or_else(|| self.failed(vk::Result::ERROR_DEVICE_LOST))?;
        for (stream, value) in self.streams.iter().zip(ticket.0).filter(|(_, value)| *value > 0) {
            queue.add_wait_semaphore(stream.timeline.semaphore, Some(value), vk::PipelineStageFlags::ALL_COMMANDS);
        }
        Ok(())
    }

    fn unstage(&self) {
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
