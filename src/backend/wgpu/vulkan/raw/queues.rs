//! Queues apart from wgpu's: which ones an adapter has, which ones a device was opened with, and who may submit to them.

use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use ash::vk;
use ash::vk::Handle;
use wgpu::hal::api::Vulkan;

use super::super::EXTERNAL_MEMORY_HOST;
use super::super::families::{Families, Family, FamilyQueues, MAX_FAMILY_QUEUES, NoSecondQueue, WGPU_FAMILY};
use super::query::adapter_imports;

/// What buffers of several families need. In the core of Vulkan 1.3, whose drivers list it all the same.
pub(super) const SYNCHRONIZATION2: &CStr = vk::KHR_SYNCHRONIZATION2_NAME;

/// As wgpu's own queue, but for the last: kernels that may wait.
const PRIORITIES: [f32; MAX_FAMILY_QUEUES] = [1.0, 1.0, 1.0, 0.0];

/// The name of an extension, at an address that only [`open_device`](super::open_device) hands to wgpu. A device whose list of
/// extensions holds this very pointer was opened there, with the families that its adapter had then, which do not change.
///
/// A device cannot be marked in another way, and a list of its handles would outlive it: drivers use handles again.
pub(super) fn mark() -> &'static CStr {
    static MARK: OnceLock<&'static CStr> = OnceLock::new();
    MARK.get_or_init(|| Box::leak(CString::from(EXTERNAL_MEMORY_HOST).into_boxed_c_str()))
}

fn is_marked(extensions: &[&'static CStr]) -> bool {
    extensions.iter().any(|name| std::ptr::eq(name.as_ptr(), mark().as_ptr()))
}

/// The families apart from wgpu's that a device of this adapter can be opened with.
///
/// # Errors
/// [`NoSecondQueue`] says why there are none.
pub(in crate::backend::wgpu) fn adapter_families(adapter: &wgpu::Adapter) -> Result<Families, NoSecondQueue> {
    // SAFETY: the handle is only read from.
    let Some(guard) = (unsafe { adapter.as_hal::<Vulkan>() }) else { return Err(NoSecondQueue::OneQueue) };
    // The core of Vulkan 1.2 has timeline semaphores, and wgpu enables them there.
    let new = guard.physical_device_capabilities().properties().api_version >= vk::API_VERSION_1_2
        && guard.shared_instance().instance_api_version() >= vk::API_VERSION_1_2;
    let barriers = guard.physical_device_capabilities().supports_extension(SYNCHRONIZATION2);
    if !new || !barriers || !adapter_imports(adapter) {
        return Err(NoSecondQueue::OldDriver);
    }
    Families::choose(&families(guard.shared_instance().raw_instance(), guard.raw_physical_device()))
}

/// The families apart from wgpu's that this device was opened with.
///
/// # Errors
/// As [`adapter_families`].
pub(in crate::backend::wgpu) fn device_families(device: &wgpu::Device) -> Result<Families, NoSecondQueue> {
    // SAFETY: the handle is only read from.
    let Some(guard) = (unsafe { device.as_hal::<Vulkan>() }) else { return Err(NoSecondQueue::OneQueue) };
    let instance = guard.shared_instance();
    let families = families(instance.raw_instance(), guard.raw_physical_device());
    // SAFETY: the instance exists, and the physical device is of it.
    let properties = unsafe { instance.raw_instance().get_physical_device_properties(guard.raw_physical_device()) };
    let new = properties.api_version >= vk::API_VERSION_1_2 && instance.instance_api_version() >= vk::API_VERSION_1_2;
    match Families::choose(&families) {
        Err(reason) => Err(reason),
        Ok(_) if !new => Err(NoSecondQueue::OldDriver),
        Ok(chosen) if is_marked(guard.enabled_device_extensions()) => Ok(chosen),
        Ok(_) => Err(NoSecondQueue::NotOpened),
    }
}

fn families(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Vec<Family> {
    // SAFETY: the callers hold a guard that keeps the instance, of which the physical device is.
    let all = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    all.iter().map(|one| Family { flags: one.queue_flags.as_raw(), queues: one.queue_count }).collect()
}

/// What a device is opened with for these families. wgpu's own is not among them.
pub(super) fn create_infos(families: &Families) -> impl Iterator<Item = vk::DeviceQueueCreateInfo<'static>> + use<> {
    families.created().filter(|created| created.family != WGPU_FAMILY).map(|FamilyQueues { family, queues }| {
        vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&PRIORITIES[..queues as usize])
    })
}

/// The queues of one family of one device. All lanes on the device share them, and Vulkan wants one thread at a time to submit: so each
/// is behind a lock, which is held for a submission and never for a wait.
pub(in crate::backend::wgpu) struct SharedQueues {
    pub(super) raw: ash::Device,
    pub(super) family: u32,
    queues: Vec<Mutex<vk::Queue>>,
    /// Keeps the `VkDevice`, and so the queues.
    _device: wgpu::Device,
}

/// Those in use. As long as one is, its device exists and no other has its handle.
static IN_USE: Mutex<Vec<(u64, u32, Weak<SharedQueues>)>> = Mutex::new(Vec::new());

impl SharedQueues {
    /// The queues of a family that `device` was opened with; the same for every caller.
    ///
    /// # Errors
    /// [`NoSecondQueue`].
    pub(in crate::backend::wgpu) fn of(
        device: &wgpu::Device,
        wanted: FamilyQueues,
    ) -> Result<Arc<Self>, NoSecondQueue> {
        let families = device_families(device)?;
        if !families.opened().any(|opened| opened == wanted) {
            return Err(NoSecondQueue::NotOpened);
        }
        // SAFETY: the handle is used to reach queues and to make children of the device, which is kept as long as they are.
        let guard = unsafe { device.as_hal::<Vulkan>() }.ok_or(NoSecondQueue::OneQueue)?;
        let raw = guard.raw_device().clone();
        let key = raw.handle().as_raw();
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|(_, _, queues)| queues.strong_count() > 0);
        let same = |(handle, family, _): &&(u64, u32, Weak<Self>)| (*handle, *family) == (key, wanted.family);
        if let Some(shared) = in_use.iter().find(same).and_then(|(_, _, queues)| queues.upgrade()) {
            return Ok(shared);
        }
        // SAFETY: the device was opened with so many queues of this family, as was checked above.
        let queue = |index| Mutex::new(unsafe { raw.get_device_queue(wanted.family, index) });
        let queues = (0..wanted.queues).map(queue).collect();
        let shared = Arc::new(Self { queues, family: wanted.family, raw, _device: device.clone() });
        in_use.push((key, wanted.family, Arc::downgrade(&shared)));
        Ok(shared)
    }

    pub(super) fn count(&self) -> usize {
        self.queues.len()
    }

    /// The right to submit to a queue.
    pub(super) fn lock(&self, queue: usize) -> MutexGuard<'_, vk::Queue> {
        self.queues[queue].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl SharedQueues {
    /// wgpu's own queue, taken for one apart from it, so that what is here can be run on drivers with one queue. A test that submits to
    /// it does so on the one thread that submits to wgpu.
    pub(in crate::backend::wgpu) fn wgpus_own(device: &wgpu::Device) -> Option<Arc<Self>> {
        // SAFETY: as in `of`.
        let guard = unsafe { device.as_hal::<Vulkan>() }?;
        let queues = vec![Mutex::new(guard.raw_queue())];
        let raw = guard.raw_device().clone();
        Some(Arc::new(Self { queues, family: WGPU_FAMILY, raw, _device: device.clone() }))
    }
}
