//! Work on a device's queue: sent, waited for, and known to have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::native::KeepAlive;

/// What can be waited for on a device that gpufeed opened: the value that its semaphore has once the work is done. Work that has none is
/// looked for once in a while.
pub(super) type Ticket = Option<u64>;

/// Work that was sent, or whose last part will be. Clones are the same work: the lane and the tensor look at one record.
#[derive(Clone, Debug)]
pub(super) struct Work(Ended);

impl Work {
    pub(super) fn new(ticket: Ticket, ended: Ended) -> Self {
        let work = Self(ended);
        work.was_sent(ticket);
        work
    }

    /// Its last part was sent.
    pub(super) fn was_sent(&self, ticket: Ticket) {
        self.0.0.ticket.store(ticket.unwrap_or(NO_TICKET), Ordering::Relaxed);
    }

    pub(super) fn ticket(&self) -> Ticket {
        Some(self.0.0.ticket.load(Ordering::Relaxed)).filter(|ticket| *ticket != NO_TICKET)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.is_set()
    }
}

/// Semaphores have this value from the start.
const NO_TICKET: u64 = 0;

/// Whether work has ended: the one place where that is written down.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended(Arc<Record>);

#[derive(Debug, Default)]
struct Record {
    ended: AtomicBool,
    ticket: AtomicU64,
}

impl Ended {
    /// What sets it when it is dropped.
    pub(super) fn on_drop(&self, keep: Option<KeepAlive>) -> Done {
        Done { ended: self.clone(), _keep: keep }
    }

    pub(super) fn is_set(&self) -> bool {
        // Acquire: what the work wrote happens before whatever is done with it.
        self.0.ended.load(Ordering::Acquire)
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
        self.ended.0.ended.store(true, Ordering::Release);
    }
}
