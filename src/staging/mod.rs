//! Staging memory while it is being filled: who may write where, and when the slot is ready to be sent.
//!
//! A [`Fill`] is one slot's memory, handed out by a lane's `begin`. It is cut into [`Region`]s, one a worker; each region
//! is owned, may cross threads, and can only be written. A region ends by being committed or by being dropped; the
//! last one to end makes the slot [`Filled`], or [`Cancelled`] if any was dropped uncommitted. Only a `Filled` can be
//! submitted, so a half-filled slot is never sent.
//!
//! The memory itself belongs to the lane, which lends it ([`Loan`]) and gets it back only when no region is open any more; a
//! region lost for good (a worker stuck in a source) costs its slot, never soundness.

mod countdown;
mod fill;
mod loan;
mod pool;
mod stream;
mod writer;

/// The atomics of `countdown`, which its model replaces.
mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
}

pub(crate) use crate::memory::HostMemory;
pub use countdown::FillState;
pub use fill::{Cancelled, Fill, Filled, Finish, Region};
pub use loan::{Loan, SlotMemory};
pub(crate) use pool::SlotPool;
pub use writer::SampleWriter;
