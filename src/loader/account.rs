//! What a loader or a feeder holds, where tensors are taken out of it for good.

use crate::backend::{Footprint, MemoryUse};
use crate::error::DeviceError;

/// What the outputs of a lane count for: a lane counts what it has made, and does not learn which of them the caller has taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputAccount {
    /// Of one output.
    bytes: u64,
    /// Of the fields on the host, which no lane holds.
    host: u64,
    budget: Option<u64>,
}

impl OutputAccount {
    /// For a lane that was planned with `outputs` outputs, within a budget.
    pub(super) fn new(planned: Footprint, outputs: usize, budget: Option<u64>) -> Self {
        Self { bytes: planned.outputs / (outputs as u64).max(1), host: planned.host, budget }
    }

    /// What is held now, of what the lane has made and of which the caller has taken `taken` outputs.
    pub(super) fn held(&self, mut made: MemoryUse, taken: u64) -> MemoryUse {
        made.held.host = self.host;
        made.held.outputs = made.held.outputs.saturating_sub(taken.saturating_mul(self.bytes));
        made
    }

    /// Whether one more output is within the budget, beside what is held now.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn check(&self, made: MemoryUse, taken: u64) -> Result<(), DeviceError> {
        self.check_more(made, taken, "another output", self.bytes)
    }

    /// Whether `bytes` more are within the budget, which are for `what`.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(super) fn check_more(&self, made: MemoryUse, taken: u64, what: &str, bytes: u64) -> Result<(), DeviceError> {
        let total = self.held(made, taken).held.total().saturating_add(bytes);
        match self.budget {
            Some(budget) if total > budget => {
                let what = format!("{what}: {total} bytes would be held, and the budget is {budget}");
                Err(DeviceError::OutOfMemory { what, bytes })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_out_is_not_held_and_leaves_room_for_another() {
        let planned = Footprint { staging: 8, device: 0, outputs: 40, host: 2 };
        let account = OutputAccount::new(planned, 4, Some(50));
        let made = |outputs| MemoryUse { held: Footprint { outputs, host: 0, ..planned }, allocations: 0 };
        assert!(matches!(account.check(made(40), 0), Err(DeviceError::OutOfMemory { bytes: 10, .. })));
        assert_eq!(account.check(made(40), 1), Ok(()));
        assert_eq!(account.held(made(50), 1).held, planned);
    }
}
