//! A queue of the kind that only copies: on a card, its copy engines.
//!
//! Each lane has one, with a fence of its own. Buffers need no barriers here: the first use in a submission promotes them from the common
//! state, and they decay to it when the submission ends.

use std::sync::Arc;
use std::time::Duration;

use wgpu::hal::api::Dx12;
use windows::Win32::Graphics::Direct3D12::{
    D3D12_COMMAND_LIST_TYPE_COPY, D3D12_COMMAND_QUEUE_DESC, D3D12_FENCE_FLAG_NONE, ID3D12CommandAllocator,
    ID3D12CommandList, ID3D12CommandQueue, ID3D12Device, ID3D12Fence, ID3D12GraphicsCommandList,
};
use windows::core::Interface;

use super::memory::Owned;
use super::{failed, raw_device};
use crate::backend::wgpu::WgpuBackend;
use crate::backend::wgpu::native::{Copies, CopyQueue, KeepAlive, RawBuffer, TransferTicket};
use crate::error::DeviceError;

const WHAT: &str = "a transfer";
/// How long the end of a lane waits for its transfers.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a fence says once its device is gone.
const GONE: u64 = u64::MAX;

/// Where copies are submitted. Dropping it waits for them.
pub(super) struct Copier {
    queue: ID3D12CommandQueue,
    /// Used in turn, each again when its last submission has ended.
    allocators: Vec<ID3D12CommandAllocator>,
    list: ID3D12GraphicsCommandList,
    /// Its value is the number of the last submission that has ended.
    fence: Arc<ID3D12Fence>,
    submitted: u64,
    backend: WgpuBackend,
}

impl Copier {
    /// With room for so many transfers at once.
    ///
    /// # Errors
    /// [`DeviceError`]; nothing stays allocated.
    pub(super) fn new(backend: &WgpuBackend, room: usize) -> Result<Self, DeviceError> {
        let device = raw_device(backend.device())?;
        Self::make(&device, backend, room).map_err(|error| failed(backend, "a transfer queue", 0, &error))
    }

    fn make(device: &ID3D12Device, backend: &WgpuBackend, room: usize) -> windows::core::Result<Self> {
        let desc = D3D12_COMMAND_QUEUE_DESC { Type: D3D12_COMMAND_LIST_TYPE_COPY, ..Default::default() };
        // SAFETY: the description is complete.
        let queue = unsafe { device.CreateCommandQueue(&raw const desc) }?;
        // SAFETY: it takes no pointers.
        let allocator = |_| unsafe { device.CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_COPY) };
        let allocators: Vec<ID3D12CommandAllocator> =
            (0..room.max(1)).map(allocator).collect::<windows::core::Result<_>>()?;
        // SAFETY: the allocator is of this kind.
        let list = unsafe { device.CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_COPY, &allocators[0], None) };
        let list: ID3D12GraphicsCommandList = list?;
        // SAFETY: a list is open when it is made.
        unsafe { list.Close() }?;
        // SAFETY: it takes no pointers.
        let fence = Arc::new(unsafe { device.CreateFence(0, D3D12_FENCE_FLAG_NONE) }?);
        Ok(Self { queue, allocators, list, fence, submitted: 0, backend: backend.clone() })
    }

    fn reached(&self) -> Result<u64, DeviceError> {
        // SAFETY: a plain question.
        match unsafe { self.fence.GetCompletedValue() } {
            GONE => Err(self.backend.lose("the driver gave it up")),
            value => Ok(value),
        }
    }

    fn record(&self, allocator: &ID3D12CommandAllocator, copies: &dyn Copies) -> windows::core::Result<()> {
        // SAFETY: no submission that uses the allocator is pending.
        unsafe { allocator.Reset() }?;
        // SAFETY: the list is closed, and the allocator of its kind.
        unsafe { self.list.Reset(allocator, None) }?;
        copies.each(&mut |copy| {
            let Some((from, to)) = resource(copy.from).zip(resource(copy.to)) else { return };
            for region in copy.regions {
                let (start, target, size) = (region.src_offset, region.dst_offset, region.size);
                // SAFETY: the list is open; the caller keeps the buffers, and the regions lie within them.
                unsafe { self.list.CopyBufferRegion(&to.resource, target, &from.resource, start, size) };
            }
        });
        // SAFETY: the list is open.
        unsafe { self.list.Close() }
    }

    fn failed(&self, error: &windows::core::Error) -> DeviceError {
        failed(&self.backend, WHAT, 0, error)
    }
}

fn resource(raw: &RawBuffer) -> Option<&Owned> {
    raw.of()
}

impl CopyQueue for Copier {
    fn keep(&self) -> KeepAlive {
        Arc::clone(&self.fence) as KeepAlive
    }

    fn submit(&mut self, copies: &dyn Copies) -> Result<TransferTicket, DeviceError> {
        let refused = |message: &str| Err(DeviceError::Refused { message: message.to_owned() });
        let (regions, mut here) = (copies.regions()?, true);
        copies.each(&mut |copy| here &= resource(copy.from).is_some() && resource(copy.to).is_some());
        if !here {
            return refused("a buffer is not of DX12");
        }
        if regions == 0 {
            return Ok(TransferTicket::default());
        }
        let (value, room) = (self.submitted + 1, self.allocators.len() as u64);
        if value > room + self.reached()? {
            return refused("more transfers are under way than there is room for");
        }
        let allocator = &self.allocators[(value % room) as usize];
        self.record(allocator, copies).map_err(|error| self.failed(&error))?;
        let list: ID3D12CommandList = self.list.cast().map_err(|error| self.failed(&error))?;
        // SAFETY: the list is closed, of the queue's kind, and of the same device.
        unsafe { self.queue.ExecuteCommandLists(&[Some(list)]) };
        // Where the signal fails the device is gone: nothing else does that.
        // SAFETY: the fence is of the same device, and the value above every one that it was given.
        unsafe { self.queue.Signal(&*self.fence, value) }.map_err(|error| self.failed(&error))?;
        self.submitted = value;
        Ok(TransferTicket([value, 0]))
    }

    fn is_reached(&self, ticket: TransferTicket) -> Result<bool, DeviceError> {
        Ok(ticket.0[0] <= self.reached()?)
    }

    fn stage_ahead(&self, ticket: TransferTicket) -> Result<(), DeviceError> {
        // SAFETY: the queue is only staged on, which its own lock allows from any thread.
        let queue = unsafe { self.backend.queue().as_hal::<Dx12>() };
        let queue = queue.ok_or_else(|| self.backend.lose("its queue is gone"))?;
        if ticket != TransferTicket::default() {
            queue.add_wait_fence(ID3D12Fence::clone(&self.fence), ticket.0[0]);
        }
        Ok(())
    }

    fn unstage(&self) {
        // SAFETY: as in `stage_ahead`. What somebody else's submission has taken waits for a fence that it counts, and that is reached.
        if let Some(queue) = unsafe { self.backend.queue().as_hal::<Dx12>() } {
            queue.remove_wait_fence(&self.fence);
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        let ended = match self.wait(TransferTicket([self.submitted, 0]), PATIENCE) {
            // What a lost device was doing has ended.
            Err(DeviceError::Lost { .. }) => true,
            ended => ended.unwrap_or(false),
        };
        if !ended {
            log::error!("a device does not say that its transfers have ended: a few of its objects are leaked");
            Box::leak(Box::new((self.queue.clone(), std::mem::take(&mut self.allocators), self.list.clone())));
        }
    }
}
