//! Staging memory while it is being filled: who may write where, and when the slot is ready to be sent.
//!
//! A [`Fill`] is one slot's memory, handed out by a lane's `begin`. It is cut into [`Region`]s, one a worker; each region
//! is a run of the batch's samples, is owned, may cross threads, and can only be written. A region ends by being committed or by being dropped; the
//! last one to end makes the slot [`Filled`], or [`Cancelled`] if any was dropped uncommitted. Only a `Filled` can be
//! submitted, so a half-filled slot is never sent.
//!
//! The memory itself belongs to the lane, which lends it ([`Loan`]) and gets it back only when no region is open any more; a
//! region lost for good (a worker stuck in a source) costs its slot, never soundness.

mod countdown;
mod fence;
mod fill;
mod loan;
mod pool;
mod sample;
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
pub use sample::SampleBuffer;
pub(crate) use sample::as_integers;
pub(crate) use writer::finish::ShortField;
pub use writer::{FieldWriter, SampleWriter};

/// How memory is best written.
#[derive(Clone, Copy, Debug)]
struct Access {
    /// Only a device reads it next, so that writing past the CPU's caches is right.
    streamed: bool,
    /// It is initialised, and reading it costs what reading ordinary memory does.
    readable: bool,
}

impl Access {
    /// Ordinary memory.
    const HOST: Self = Self { streamed: false, readable: true };
}
