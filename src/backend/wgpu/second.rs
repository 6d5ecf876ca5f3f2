//! Second wgpu devices over the same `VkDevice`, each with a queue of its own: one for each queue, whoever asks for it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::vulkan::{self, Wakeup};
use crate::error::DeviceError;

/// The family of a queue, and its number within that.
pub(super) type QueueIndex = (u32, u32);

/// A device and its queue, of which wgpu's own is the first.
#[derive(Debug)]
pub(super) struct Second {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub wakeup: Option<Arc<Wakeup>>,
    pub first: wgpu::Device,
}

/// Those in use, by the handle of their `VkDevice`. As long as one is, no other device has that handle.
static IN_USE: Mutex<Vec<(u64, QueueIndex, Weak<Second>)>> = Mutex::new(Vec::new());

impl Second {
    /// The second device with this queue, which `first` was opened with and nobody else uses; the same for every caller. `desc` is for
    /// the first of them.
    ///
    /// # Errors
    /// What wgpu or the driver says.
    pub(super) fn open(
        first: &wgpu::Device,
        main: &wgpu::Queue,
        desc: &wgpu::DeviceDescriptor<'_>,
        index: QueueIndex,
    ) -> Result<Arc<Self>, DeviceError> {
        let handle = vulkan::device_handle(first)
            .ok_or_else(|| DeviceError::Refused { message: "this is no Vulkan device".to_owned() })?;
        // Held until the device is open: a queue has one owner.
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|(_, _, second)| second.strong_count() > 0);
        let same = |(other, queue, _): &&(u64, QueueIndex, Weak<Self>)| (*other, *queue) == (handle, index);
        if let Some(second) = in_use.iter().find(same).and_then(|(_, _, second)| second.upgrade()) {
            return Ok(second);
        }
        let (device, queue) = vulkan::twin(first, desc, index)?;
        let wakeup = Wakeup::of_twin(&device, &queue, main).map(Arc::new);
        let second = Arc::new(Self { device, queue, wakeup, first: first.clone() });
        in_use.push((handle, index, Arc::downgrade(&second)));
        Ok(second)
    }
}
