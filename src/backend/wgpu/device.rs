//! An opened device: gpufeed's own, or an application's.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::abilities::Abilities;
use super::adapters::{self, FoundAdapter};
use super::apis;
use super::health::LostFlag;
use super::open_device::{device_descriptor, open_device};
use super::requirements::requirements;
use super::second::{QueueIndex, Second};
use super::tuning::Tuning;
use super::vulkan::{NoSecondQueue, Wakeup};
use super::work::Ticket;
use crate::backend::{AdapterInfo, Api, select};
use crate::error::{DeviceError, OpenError};

/// A wgpu device that batches can be fed to. Clones are the same device.
#[derive(Clone, Debug)]
pub struct WgpuBackend(Arc<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    device: wgpu::Device,
    queue: wgpu::Queue,
    info: AdapterInfo,
    lost: LostFlag,
    /// Whether its timestamps are times, once that was tried.
    clock: Arc<OnceLock<bool>>,
    /// Of a device that gpufeed opened, where there is such a thing.
    wakeup: Option<Arc<Wakeup>>,
    tuning: Tuning,
    /// Kept for lanes to come.
    seconds: Arc<Mutex<Vec<Arc<Second>>>>,
    /// Of a device that is not wgpu's own.
    second: Option<Arc<Second>>,
}

impl Inner {
    fn new(device: wgpu::Device, queue: wgpu::Queue, info: AdapterInfo) -> Self {
        let (lost, tuning, clock, seconds) = (LostFlag::default(), Tuning::default(), Arc::default(), Arc::default());
        Self { device, queue, info, lost, clock, wakeup: None, tuning, seconds, second: None }
    }
}

impl WgpuBackend {
    /// Opens a device chosen by text: see [`select`](mod@crate::backend::select). Where the text names an API, the drivers of
    /// the others are not loaded.
    ///
    /// # Errors
    /// [`OpenError::NoDevice`] and [`OpenError::Option`] where the text chooses none or several, [`OpenError::Device`] where
    /// the driver refuses.
    #[cfg_attr(
        target_arch = "wasm32",
        deprecated(note = "type-checks only: a page has no threads, and no way to wait for the device")
    )]
    pub fn open(wanted: &str) -> Result<Self, OpenError> {
        let only = select::api_of(wanted);
        let found = adapters::find(only);
        let infos: Vec<AdapterInfo> = found.iter().map(|found| found.info.clone()).collect();
        let id = match select::select(&infos, wanted) {
            Ok(info) => &info.id,
            // What else there is helps more than what this API lacks.
            Err(_) if only.is_some() => return Err(select::no_device(wanted, &adapters::adapters())),
            Err(error) => return Err(error),
        };
        let chosen = found.into_iter().find(|found| found.info.id == *id);
        chosen.ok_or_else(|| select::no_device(wanted, &infos)).and_then(Self::open_found)
    }

    /// Opens the device with this id, and loads the drivers of its API only.
    ///
    /// # Errors
    /// [`OpenError::NoDevice`], and [`OpenError::Device`] where the driver refuses.
    #[cfg_attr(
        target_arch = "wasm32",
        deprecated(note = "type-checks only: a page has no threads, and no way to wait for the device")
    )]
    pub fn open_adapter(id: &str) -> Result<Self, OpenError> {
        let found = select::api_of(id).map(|api| adapters::find(Some(api))).unwrap_or_default();
        let chosen = found.into_iter().find(|found| found.info.id.eq_ignore_ascii_case(id));
        chosen.ok_or_else(|| select::no_device(id, &adapters::adapters())).and_then(Self::open_found)
    }

    fn open_found(found: FoundAdapter) -> Result<Self, OpenError> {
        let needs = requirements(&found.adapter, None)?;
        let desc = wgpu::DeviceDescriptor {
            required_features: needs.features,
            required_limits: needs.limits,
            ..device_descriptor()
        };
        let (device, queue) = open_device(&found.adapter, &desc).map_err(|error| DeviceError::Refused {
            message: format!("{} cannot be opened: {error}", found.info.id),
        })?;
        let mut info = found.info;
        if info.api == Api::Dx12 {
            // Whether it opens heaps over memory that exists only an open device tells.
            info.strategies = Abilities::of_device(&device).support();
        }
        let mut inner = Inner::new(device, queue, info);
        let flag = inner.lost.clone();
        inner.device.set_device_lost_callback(move |reason, message| flag.set(lost_reason(reason, &message)));
        // Whatever gpufeed does is in an error scope; the default handler panics.
        inner.device.on_uncaptured_error(Arc::new(|error| log::error!("outside of gpufeed's calls: {error}")));
        inner.wakeup = Wakeup::new(&inner.device, &inner.queue).map(Arc::new);
        Ok(Self(Arc::new(inner)))
    }

    /// A device that an application opened.
    pub(super) fn of_application(
        device: wgpu::Device,
        queue: wgpu::Queue,
        info: AdapterInfo,
    ) -> Result<Self, OpenError> {
        let backend = Self(Arc::new(Inner::new(device, queue, info)));
        backend.check()?;
        Ok(backend)
    }

    /// The same device, seen from another of its queues, which nobody else uses. It is lost when the first is.
    ///
    /// # Errors
    /// What wgpu or the driver says.
    pub(super) fn on_queue(&self, index: QueueIndex) -> Result<Self, DeviceError> {
        let Inner { device: first, queue: main, .. } = &*self.0;
        let desc = wgpu::DeviceDescriptor {
            required_features: first.features(),
            required_limits: first.limits(),
            ..device_descriptor()
        };
        let second = Second::open(first, main, &desc, index)?;
        let flag = self.0.lost.clone();
        second.device.set_device_lost_callback(move |reason, message| flag.set(lost_reason(reason, &message)));
        second.device.on_uncaptured_error(Arc::new(|error| log::error!("outside of gpufeed's calls: {error}")));
        let mut seconds = self.0.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        if !seconds.iter().any(|kept| Arc::ptr_eq(kept, &second)) {
            seconds.push(Arc::clone(&second));
        }
        Ok(Self(Arc::new(Inner {
            device: second.device.clone(),
            queue: second.queue.clone(),
            wakeup: second.wakeup.clone(),
            clock: Arc::default(),
            seconds: Arc::default(),
            second: Some(second),
            ..(*self.0).clone()
        })))
    }

    #[cfg(test)]
    pub(super) fn is_same_queue(&self, other: &Self) -> bool {
        self.0.second.as_ref().map(Arc::as_ptr) == other.0.second.as_ref().map(Arc::as_ptr)
    }

    /// The devices that must be there for this one to be.
    pub(super) fn devices(&self) -> impl Iterator<Item = &wgpu::Device> {
        std::iter::once(&self.0.device).chain(self.0.second.iter().map(|second| &second.first))
    }

    /// Of a device that is not wgpu's own: makes what the work of this ticket wrote visible to all that is submitted to wgpu's from now
    /// on. The work has ended.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(super) fn show(&self, ticket: Ticket) -> Result<(), DeviceError> {
        let shown = ticket.zip(self.0.wakeup.as_ref()).is_some_and(|(value, wakeup)| wakeup.show(value));
        if shown { Ok(()) } else { Err(self.lose("its queue is gone")) }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &wgpu::Device {
        &self.0.device
    }

    /// Its queue.
    #[must_use]
    pub fn queue(&self) -> &wgpu::Queue {
        &self.0.queue
    }

    /// The device and its driver, and the strategies it can run.
    #[must_use]
    pub fn info(&self) -> &AdapterInfo {
        &self.0.info
    }

    /// The same device, whose lanes do what [`Tuning`] leaves open in another way. For measuring what is best on a device.
    #[must_use]
    pub fn with_tuning(&self, tuning: Tuning) -> Self {
        Self(Arc::new(Inner { tuning, ..(*self.0).clone() }))
    }

    /// Whether copies can go through a queue of their own, beside the application's work: see [`CopyQueue`](super::CopyQueue).
    ///
    /// # Errors
    /// [`NoSecondQueue`] says why not.
    pub fn has_second_queue(&self) -> Result<(), NoSecondQueue> {
        apis::device_families(&self.0.device).map(drop)
    }

    pub(crate) fn tuning(&self) -> Tuning {
        self.0.tuning
    }

    /// The interface it is reached through.
    pub(crate) fn api(&self) -> Api {
        self.0.info.api
    }

    /// Whether the device's clock can be believed: asks `compare`, the first time.
    ///
    /// # Errors
    /// Those of `compare`.
    pub(super) fn clock_agrees(
        &self,
        compare: impl FnOnce() -> Result<bool, DeviceError>,
    ) -> Result<bool, DeviceError> {
        if let Some(&agrees) = self.0.clock.get() {
            return Ok(agrees);
        }
        let agrees = compare()?;
        Ok(*self.0.clock.get_or_init(|| agrees))
    }

    /// Runs `submit`, so that what it submits can be waited for.
    ///
    /// # Errors
    /// Those of `submit`.
    pub(super) fn signalled(&self, submit: impl FnOnce() -> Result<(), DeviceError>) -> Result<Ticket, DeviceError> {
        match &self.0.wakeup {
            None => submit().map(|()| None),
            Some(wakeup) => {
                let (sent, ticket) = wakeup.signal(submit);
                sent.map(|()| ticket)
            }
        }
    }

    /// Sleeps until the work of this ticket may have ended: whether its signal came within `at_most`. `None`, at once, where there is
    /// nothing to sleep on.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub(super) fn sleep_until_signal(&self, ticket: Ticket, at_most: Duration) -> Result<Option<bool>, DeviceError> {
        let Some((value, wakeup)) = ticket.zip(self.0.wakeup.as_ref()) else { return Ok(None) };
        let signalled = wakeup.wait(value, at_most);
        signalled.map(Some).map_err(|error| self.lose(format!("waiting for it failed: {error}")))
    }

    pub(crate) fn lost_flag(&self) -> &LostFlag {
        &self.0.lost
    }
}

fn lost_reason(reason: wgpu::DeviceLostReason, message: &str) -> String {
    match reason {
        wgpu::DeviceLostReason::Destroyed => "it was destroyed".to_owned(),
        wgpu::DeviceLostReason::Unknown => message.to_owned(),
    }
}
