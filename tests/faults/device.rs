//! Devices that runs are made on.

use gpufeed::backend::host::{Faults, HostBackend};
use gpufeed::{Backend, Strategy};

use super::plan::{Plan, When};

/// A device that can be lost.
pub trait FaultyDevice: Backend {
    /// Loses it, from any thread.
    fn lose(&self);

    /// The strategies that it has.
    fn strategies(&self) -> Vec<Strategy> {
        Strategy::ALL.iter().copied().filter(|strategy| self.supports(*strategy).is_ok()).collect()
    }
}

impl FaultyDevice for HostBackend {
    fn lose(&self) {
        HostBackend::lose(self, "the run loses it");
    }
}

/// The host, with the plan's faults.
pub fn host(plan: &Plan) -> HostBackend {
    let lose_at_submission = match plan.loss {
        Some(When::AtSubmission(number)) => Some(number),
        _ => None,
    };
    #[allow(clippy::needless_update)] // Faults of other kinds come in time.
    let faults = Faults {
        delay: plan.delay,
        refuse_submission: plan.refuse,
        lose_at_submission,
        // Every other run is on a device with two queues.
        copies_beside: plan.seed % 2 == 1,
        kernels_beside: plan.seed % 4 == 3,
        ..Faults::default()
    };
    HostBackend::with_faults(faults)
}

#[cfg(feature = "wgpu")]
impl FaultyDevice for gpufeed::backend::wgpu::WgpuBackend {
    fn lose(&self) {
        self.device().destroy();
    }
}
