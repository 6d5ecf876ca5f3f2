//! What a lane has of its own for one of the shared queues: command buffers, and the semaphore that says how far they have come.

use std::sync::Arc;

use ash::vk;

use super::queues::SharedQueues;

/// Command buffers that are used in turn, and their progress. Dropped when none of them is pending.
pub(super) struct Stream {
    pool: vk::CommandPool,
    commands: Vec<vk::CommandBuffer>,
    pub(super) timeline: Arc<Timeline>,
    /// The value that the last submission signals.
    pub(super) submitted: u64,
}

/// A timeline semaphore. Whoever submits work that waits for it holds a reference until that work has ended.
pub(super) struct Timeline {
    pub(super) semaphore: vk::Semaphore,
    shared: Arc<SharedQueues>,
}

impl Stream {
    /// With so many command buffers.
    pub(super) fn new(shared: &Arc<SharedQueues>, room: usize) -> Result<Self, vk::Result> {
        let timeline = Arc::new(Timeline::new(shared)?);
        let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER | vk::CommandPoolCreateFlags::TRANSIENT;
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(shared.family).flags(flags);
        // SAFETY: the device exists and was opened with this family.
        let pool = unsafe { shared.raw.create_command_pool(&info, None) }?;
        let mut made = Self { pool, commands: Vec::new(), timeline, submitted: 0 };
        let count = u32::try_from(room.max(1)).unwrap_or(u32::MAX);
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(count);
        // SAFETY: the pool was made above.
        made.commands = unsafe { shared.raw.allocate_command_buffers(&info) }?;
        Ok(made)
    }

    /// Whether the command buffer whose turn it is has been executed.
    pub(super) fn has_room(&self) -> Result<bool, vk::Result> {
        Ok(self.submitted < self.commands.len() as u64 + self.timeline.reached()?)
    }

    /// The command buffer whose turn it is, begun, and the value that its submission is to signal.
    ///
    /// # Safety
    /// There [is room](Self::has_room).
    pub(super) unsafe fn begin(&mut self) -> Result<(vk::CommandBuffer, u64), vk::Result> {
        let (value, count) = (self.submitted + 1, self.commands.len() as u64);
        let commands = self.commands[(value % count) as usize];
        let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is of this device and not pending: the last submission that used it was reached, as the caller says.
        // Its pool, which is this thread's, lets it be recorded anew.
        unsafe { self.timeline.shared.raw.begin_command_buffer(commands, &begin) }?;
        Ok((commands, value))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: none of its command buffers is pending: the queue that had this waited for them.
        unsafe { self.timeline.shared.raw.destroy_command_pool(self.pool, None) };
    }
}

impl Timeline {
    fn new(shared: &Arc<SharedQueues>) -> Result<Self, vk::Result> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: wgpu enables timeline semaphores on devices that have them, and those without have no such queues.
        let semaphore = unsafe { shared.raw.create_semaphore(&info, None) }?;
        Ok(Self { semaphore, shared: Arc::clone(shared) })
    }

    pub(super) fn reached(&self) -> Result<u64, vk::Result> {
        // SAFETY: the semaphore is a timeline semaphore of this device.
        unsafe { self.shared.raw.get_semaphore_counter_value(self.semaphore) }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        // SAFETY: nothing signals it any more, since its stream was dropped, and whatever waited for it has ended: that held a reference.
        // The device exists: `shared` keeps it.
        unsafe { self.shared.raw.destroy_semaphore(self.semaphore, None) };
    }
}
