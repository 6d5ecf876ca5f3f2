//! Copies on queues apart from wgpu's: recorded, submitted, and waited for without any lock of wgpu's.

use std::time::{Duration, Instant};

use super::{KeepAlive, RawBuffer};
use crate::error::DeviceError;

/// Queues that one lane's copies are shared out among, at most: so many copy engines serve one direction at a time.
pub(in crate::backend::wgpu) const MAX_QUEUES: usize = 2;

const SHORTEST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// A region of a copy.
#[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(in crate::backend::wgpu) type Region = ash::vk::BufferCopy;

/// A region of a copy.
#[cfg(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")))]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::backend::wgpu) struct Region {
    pub src_offset: u64,
    pub dst_offset: u64,
    pub size: u64,
}

/// A copy between two buffers.
#[derive(Clone, Copy)]
pub(in crate::backend::wgpu) struct Copy<'a> {
    pub from: &'a RawBuffer,
    pub to: &'a RawBuffer,
    pub regions: &'a [Region],
}

impl Copy<'_> {
    fn is_within(&self) -> bool {
        are_within(self.regions, self.from.size(), self.to.size())
    }
}

/// Whether no region is empty, and each lies within buffers of these sizes.
pub(in crate::backend::wgpu) fn are_within(regions: &[Region], from: u64, to: u64) -> bool {
    let fits = |start: u64, size: u64, end: u64| size > 0 && start.checked_add(size).is_some_and(|last| last <= end);
    regions.iter().all(|region| fits(region.src_offset, region.size, from) && fits(region.dst_offset, region.size, to))
}

/// Copies that are gone through more than once.
pub(in crate::backend::wgpu) trait Copies {
    fn each(&self, visit: &mut dyn FnMut(Copy<'_>));

    /// Regions of all of them.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] where one is outside of its buffers.
    fn regions(&self) -> Result<usize, DeviceError> {
        let (mut all, mut within) = (0, true);
        self.each(&mut |copy| {
            all += copy.regions.len();
            within &= copy.is_within();
        });
        if within { Ok(all) } else { Err(refused("a copy is outside of its buffers")) }
    }
}

impl<'a, I: Iterator<Item = Copy<'a>> + Clone> Copies for I {
    fn each(&self, visit: &mut dyn FnMut(Copy<'_>)) {
        self.clone().for_each(visit);
    }
}

/// What says when a transfer has ended: a value for each queue, zero where nothing was submitted to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::backend::wgpu) struct TransferTicket(pub [u64; MAX_QUEUES]);

/// Where copies are submitted. Dropping it waits for them.
///
/// One thread uses it, as `&mut self` says: the lane's. Whoever submits keeps the buffers until the ticket is reached.
pub(in crate::backend::wgpu) trait CopyQueue: Send {
    /// What a submission holds that waits for a transfer.
    fn keep(&self) -> KeepAlive;

    /// Records copies and submits them.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing of it is still under way then. It is refused where more transfers are under way than there is room for,
    /// or where a region is outside of a buffer.
    fn submit(&mut self, copies: &dyn Copies) -> Result<TransferTicket, DeviceError>;

    /// Whether a transfer has ended. Never waits.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn is_reached(&self, ticket: TransferTicket) -> Result<bool, DeviceError>;

    /// Waits for a transfer: whether it has ended in time. Where the API offers nothing to sleep on, it looks and naps.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn wait(&self, ticket: TransferTicket, timeout: Duration) -> Result<bool, DeviceError> {
        let (start, mut nap) = (Instant::now(), SHORTEST_NAP);
        while !self.is_reached(ticket)? {
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
                return Ok(false);
            };
            std::thread::sleep(nap.min(left));
            nap = nap.saturating_mul(2).min(LONGEST_NAP);
        }
        Ok(true)
    }

    /// Makes the next submission to the lane's queue wait for a transfer that was submitted, and makes the bytes visible there. The caller
    /// submits at once what holds [`keep`](Self::keep), or takes it back with [`unstage`](Self::unstage). For wgpu's own queue only
    /// through [`stage`](Self::stage): whatever is submitted there next would wait, whoever submits it.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], and nothing is staged.
    fn stage_ahead(&self, ticket: TransferTicket) -> Result<(), DeviceError>;

    /// Takes back what was staged for a submission that failed.
    fn unstage(&self);

    /// As [`stage_ahead`](Self::stage_ahead), of a transfer that has ended: it holds up nothing.
    ///
    /// # Errors
    /// [`DeviceError`], and nothing is staged: a wait for what is never signalled would hang the application's queue.
    fn stage(&self, ticket: TransferTicket) -> Result<(), DeviceError> {
        if self.is_reached(ticket)? { self.stage_ahead(ticket) } else { Err(refused("a transfer has not ended")) }
    }
}

fn refused(message: &str) -> DeviceError {
    DeviceError::Refused { message: message.to_owned() }
}
