//! Waiting for submissions without wgpu's lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use ash::vk;
use wgpu::hal::api::Vulkan;

/// How long the end of a device waits for the last signal.
const PATIENCE: Duration = Duration::from_secs(10);

/// A timeline semaphore that gpufeed's submissions signal. It only wakes threads: a signal may come with another thread's submission
/// that was sent a moment earlier, and whether work has ended is asked elsewhere.
#[derive(Debug)]
pub(in crate::backend::wgpu) struct Wakeup {
    semaphore: vk::Semaphore,
    raw: Raw,
    /// The value of the last signal. Held from staging a signal until its submission is sent, so that values rise in the
    /// queue's order.
    last: Mutex<u64>,
    queue: wgpu::Queue,
    /// Of a second device: the queue of the first, whose submissions are made to wait.
    waiting: Option<Waiting>,
    /// Keeps the `VkDevice`. Declared after the queue, and dropped after `drop` has freed the semaphore.
    _device: wgpu::Device,
}

#[derive(Debug)]
struct Waiting {
    queue: wgpu::Queue,
    /// Whether a wait was ever staged.
    staged: AtomicBool,
}

#[derive(Clone)]
struct Raw(ash::Device);

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ash::Device")
    }
}

impl Wakeup {
    /// For a device that wgpu itself opened. `None` where it is not Vulkan's, or has no timeline semaphores: wgpu enables them wherever
    /// the driver has them.
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Option<Self> {
        // SAFETY: the handle is used to make a child of the device, which is destroyed before the device is let go.
        let guard = unsafe { device.as_hal::<Vulkan>() }?;
        let instance = guard.shared_instance();
        // SAFETY: the guard keeps the instance, of which the physical device is.
        let properties = unsafe { instance.raw_instance().get_physical_device_properties(guard.raw_physical_device()) };
        if instance.instance_api_version().min(properties.api_version) < vk::API_VERSION_1_2 {
            return None;
        }
        let mut timeline = vk::PhysicalDeviceTimelineSemaphoreFeatures::default();
        let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut timeline);
        // SAFETY: as above; instance and device are of Vulkan 1.2, which has the call and the structure.
        unsafe { instance.raw_instance().get_physical_device_features2(guard.raw_physical_device(), &mut features) };
        if timeline.timeline_semaphore == vk::FALSE {
            return None;
        }
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let raw = guard.raw_device().clone();
        // SAFETY: the device exists and has the feature.
        let semaphore = unsafe { raw.create_semaphore(&info, None) }.ok()?;
        drop(guard);
        let (last, queue, raw) = (Mutex::new(0), queue.clone(), Raw(raw));
        Some(Self { semaphore, raw, last, queue, waiting: None, _device: device.clone() })
    }

    /// As [`new`](Self::new), for a second device, to whose queue nobody but gpufeed submits: each submission has a signal of its own.
    /// `main` is the first one's queue.
    pub fn of_twin(device: &wgpu::Device, queue: &wgpu::Queue, main: &wgpu::Queue) -> Option<Self> {
        let waiting = Some(Waiting { queue: main.clone(), staged: AtomicBool::new(false) });
        let mut wakeup = Self::new(device, queue)?;
        wakeup.waiting = waiting;
        Some(wakeup)
    }

    /// Makes what was written by the work of this value, which has ended, visible to all that is submitted to the first device's queue
    /// from now on: its next submission waits for the value, which holds up nothing. False where there is no such queue any more.
    pub fn show(&self, value: u64) -> bool {
        let Some(waiting) = &self.waiting else { return false };
        // SAFETY: the queue is only staged on, which its own lock allows from any thread.
        let Some(queue) = (unsafe { waiting.queue.as_hal::<Vulkan>() }) else { return false };
        waiting.staged.store(true, Ordering::Relaxed);
        queue.add_wait_semaphore(self.semaphore, Some(value), vk::PipelineStageFlags::ALL_COMMANDS);
        true
    }

    /// Runs `submit`, whose submission signals the value that is returned with what it gave.
    pub fn signal<T>(&self, submit: impl FnOnce() -> T) -> (T, Option<u64>) {
        // A callback that this thread runs while it submits may submit too, and must not wait for itself. A second device has none that
        // do.
        let lock = match self.waiting {
            Some(_) => self.last.lock().map_err(TryLockError::from),
            None => self.last.try_lock(),
        };
        let mut last = match lock {
            Ok(last) => last,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return (submit(), None),
        };
        // SAFETY: the queue's handle is not used; a signal is staged for its next submission.
        let Some(queue) = (unsafe { self.queue.as_hal::<Vulkan>() }) else { return (submit(), None) };
        // The signal of a submission that failed is still there, and one submission signals a semaphore once.
        if !queue.remove_signal_semaphore(self.semaphore) {
            *last += 1;
        }
        queue.add_signal_semaphore(self.semaphore, Some(*last));
        let value = *last;
        drop(queue);
        (submit(), Some(value))
    }

    /// Whether the semaphore has this value, within `at_most`.
    ///
    /// # Errors
    /// The driver's.
    pub fn wait(&self, value: u64, at_most: Duration) -> Result<bool, vk::Result> {
        let nanoseconds = u64::try_from(at_most.as_nanos()).unwrap_or(u64::MAX);
        let (semaphores, values) = ([self.semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: the semaphore is a timeline semaphore of this device, and both live as long as `self`.
        match unsafe { self.raw.0.wait_semaphores(&info, nanoseconds) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Wakeup {
    fn drop(&mut self) {
        let last = *self.last.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the queue's handle is not used; what was staged and never sent is taken back.
        let staged =
            unsafe { self.queue.as_hal::<Vulkan>() }.is_some_and(|queue| queue.remove_signal_semaphore(self.semaphore));
        // What was staged last was not sent, so the value before it is the last that is signalled.
        let sent = if staged { last.saturating_sub(1) } else { last };
        if !matches!(self.wait(sent, PATIENCE), Ok(true) | Err(vk::Result::ERROR_DEVICE_LOST)) {
            log::error!("a semaphore is leaked: the device does not finish its work");
            return;
        }
        let ended = Signalled { semaphore: self.semaphore, raw: self.raw.clone(), _device: self._device.clone() };
        if let Some(Waiting { queue, .. }) =
            self.waiting.take().filter(|waiting| waiting.staged.load(Ordering::Relaxed))
        {
            // SAFETY: as in `show`.
            if let Some(queue) = unsafe { queue.as_hal::<Vulkan>() } {
                queue.remove_wait_semaphore(self.semaphore);
            }
            // Somebody's submission may have taken a wait, and be under way.
            queue.on_submitted_work_done(move || drop(ended));
        }
    }
}

/// A semaphore that every submission has signalled that was to.
struct Signalled {
    semaphore: vk::Semaphore,
    raw: Raw,
    /// Keeps the `VkDevice`.
    _device: wgpu::Device,
}

impl Drop for Signalled {
    fn drop(&mut self) {
        // SAFETY: every submission that signals it has ended, or the device is lost; whoever was to wait for it has; and it is destroyed
        // once. The device exists: `_device` keeps it.
        unsafe { self.raw.0.destroy_semaphore(self.semaphore, None) };
    }
}
