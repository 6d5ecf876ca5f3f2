//! The staged strategies: what a slot is made of, and when.

use std::sync::Arc;

use cudarc::driver::CudaContext;

use super::driver::{Memory, PinKind};
use super::health::{LostFlag, is_sticky};
use super::locks::LockBudget;
use crate::backend::Strategy;
use crate::error::DeviceError;
use crate::staging::HostMemory;

/// Makes the memory of slots.
pub(super) struct Slots {
    context: Arc<CudaContext>,
    lost: LostFlag,
    strategy: Strategy,
    bytes: usize,
    count: usize,
    /// How often memory was made.
    pub(super) made: u64,
}

impl Slots {
    pub(super) fn new(
        context: &Arc<CudaContext>,
        lost: &LostFlag,
        strategy: Strategy,
        bytes: usize,
        count: usize,
    ) -> Self {
        Self { context: Arc::clone(context), lost: lost.clone(), strategy, bytes, count, made: 0 }
    }

    /// Whether memory is made for each batch and freed after it.
    fn is_fresh(&self) -> bool {
        self.strategy == Strategy::PinPerBatch
    }

    /// What a slot keeps of its memory when its batch has been copied: memory that was made for one batch ends here.
    pub(super) fn keep(&self, memory: Memory) -> Option<Memory> {
        (!self.is_fresh()).then_some(memory)
    }

    /// Bytes of all slots.
    pub(super) fn total(&self) -> u64 {
        (self.bytes as u64).saturating_mul(self.count as u64)
    }

    /// The memory of one slot.
    pub(super) fn make(&mut self) -> Result<Memory, DeviceError> {
        let kind = match self.strategy {
            Strategy::Pageable => return HostMemory::new(self.bytes).map(Memory::Pageable).inspect(|_| self.made += 1),
            Strategy::PinnedWriteCombined => PinKind::WriteCombined,
            _ => PinKind::Cached,
        };
        let locked = Memory::pinned(&self.context, self.bytes, kind).map_err(|error| {
            if is_sticky(error) {
                return self.lost.error("page-locking a slot", error);
            }
            let cause = format!("a slot of {} bytes was refused: {}", self.bytes, super::driver::explain(error));
            LockBudget::read().error(self.total(), &cause)
        })?;
        self.made += 1;
        Ok(locked)
    }

    /// The memory of every slot; `None` for those that are made for each batch.
    pub(super) fn make_all(&mut self) -> Result<Vec<Option<Memory>>, DeviceError> {
        if self.strategy != Strategy::Pageable {
            LockBudget::read().allows(self.total())?;
        }
        let fresh = self.is_fresh();
        (0..self.count).map(|_| if fresh { Ok(None) } else { self.make().map(Some) }).collect()
    }
}
