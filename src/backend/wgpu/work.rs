//! Work on a device's queue: sent, waited for, and known to have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::vulkan::KeepAlive;

/// What can be waited for on a device that gpufeed opened: the value that its semaphore has once the work is done. Work that has none is
/// looked for once in a while.
pub(super) type Ticket = Option<u64>;

/// Work that was sent. Clones are the same work: the lane and the tensor look at one record.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) ticket: Ticket,
    ended: Ended,
}

impl Work {
    pub(super) fn new(ticket: Ticket, ended: Ended) -> Self {
        Self { ticket, ended }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_set()
    }
}

/// Whether work has ended: the one place where that is written down.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended(Arc<AtomicBool>);

impl Ended {
    /// What sets it when it is dropped.
    pub(super) fn on_drop(&self, keep: Option<KeepAlive>) -> Done {
        Done { ended: self.clone(), _keep: keep }
    }

    pub(super) fn is_set(&self) -> bool {
        // Acquire: what the work wrote happens before whatever is done with it.
        self.0.load(Ordering::Acquire)
    }
}

/// Goes with a submission, and ends its work whether wgpu runs the callback or drops it: a callback before it may panic. Lets go of what
/// the work read.
pub(super) struct Done {
    ended: Ended,
    _keep: Option<KeepAlive>,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.ended.0.store(true, Ordering::Release);
    }
}
