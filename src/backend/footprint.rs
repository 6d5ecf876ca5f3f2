//! Bytes: what a lane will take, summed before anything is allocated, and what it has taken.

use serde::{Deserialize, Serialize};

use crate::error::OpenError;

/// The memory that a lane, or the loader or feeder around it, takes for its whole life, in exact bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Footprint {
    /// Staging memory: all slots.
    pub staging: u64,
    /// Device memory between staging and tensor.
    pub device: u64,
    /// Output tensors.
    pub outputs: u64,
    /// Ordinary memory of the samples' fields on the host and of the row counts of ragged ones. A lane has none.
    #[serde(default)]
    pub host: u64,
}

impl Footprint {
    /// The sum.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.staging.saturating_add(self.device).saturating_add(self.outputs).saturating_add(self.host)
    }

    /// Checks the sum against a budget.
    ///
    /// # Errors
    /// [`OpenError::OverBudget`] with the sum and its parts.
    pub fn within(&self, budget: Option<u64>) -> Result<(), OpenError> {
        match budget {
            Some(budget) if self.total() > budget => {
                Err(OpenError::OverBudget { needed: self.total(), budget, breakdown: self.breakdown() })
            }
            _ => Ok(()),
        }
    }

    fn breakdown(&self) -> String {
        let Self { staging, device, outputs, host } = self;
        let on_host = if *host > 0 { format!(" + {host} host") } else { String::new() };
        format!("{staging} staging + {device} device + {outputs} outputs{on_host}")
    }
}

/// What a lane holds now, and how often it has allocated. Constant after warm-up, except for strategies that
/// allocate for every batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Bytes held.
    pub held: Footprint,
    /// Allocations made since the lane was opened.
    pub allocations: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_refused_with_its_sum() {
        let footprint = Footprint { staging: 10, device: 20, outputs: 30, host: 0 };
        assert_eq!(footprint.within(Some(60)).map_err(|e| e.to_string()), Ok(()));
        let error = footprint.within(Some(59)).expect_err("over").to_string();
        assert!(error.contains("60 bytes") && error.contains("10 staging + 20 device + 30 outputs"), "{error}");
        let error = Footprint { host: 5, ..footprint }.within(Some(64)).expect_err("over").to_string();
        assert!(error.contains("65 bytes") && error.contains("30 outputs + 5 host"), "{error}");
    }
}
