//! What the device's own clock says of a configuration, in a pass of its own: asking for times costs time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::engine::Comparison;
use super::rounds::Contestant;
use super::verify::VerifyError;
use crate::backend::{Backend, GpuTimes};

/// How fast the device copied and computed, by its own clock, and not how often it was kept waiting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuRates {
    /// Batches that were timed.
    pub batches: u64,
    /// The copy from staging memory, in GB/s; `None` where it is no command of its own.
    pub copy_gb_s: Option<f64>,
    /// The kernels, bytes read and written, in GB/s; `None` where there is nothing to compute. Where a kernel reads the host's memory
    /// itself, the bus is what it is measured at.
    pub kernel_gb_s: Option<f64>,
    /// That, as percent of what a copying kernel reaches within the device's memory.
    pub kernel_of_ceiling: Option<f64>,
}

impl GpuRates {
    /// Of batches that are copied as `copied` bytes each; their kernels read and write `moved`, where there are any.
    pub(super) fn of(times: GpuTimes, copied: u64, moved: Option<u64>) -> Option<Self> {
        let rate = |bytes: u64, seconds: f64| {
            let rate = bytes as f64 * times.batches as f64 / 1e9 / seconds;
            (seconds > 0.0 && rate.is_finite()).then_some(rate)
        };
        (times.batches > 0).then(|| Self {
            batches: times.batches,
            copy_gb_s: rate(copied, times.copy_s),
            kernel_gb_s: moved.and_then(|moved| rate(moved, times.kernel_s)),
            kernel_of_ceiling: None,
        })
    }
}

impl<B: Backend> Comparison<'_, B> {
    /// Asks the device's clock about a configuration, once. Without one there is no answer, and none is no error.
    pub(super) fn ask_the_device(
        &mut self,
        place: usize,
        contestant: &Contestant<B>,
        time: Duration,
    ) -> Result<(), VerifyError> {
        match contestant.gpu(time, &|| self.stops()) {
            Err(error) if !error.is_lost() => {
                let strategy = self.plan.settings[place].strategy;
                log::warn!("{strategy}: the device's own times could not be had: {error}");
            }
            rates => self.report.configurations[place].gpu = rates?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_bytes_that_moved() {
        let times = GpuTimes { copy_s: 2.0, kernel_s: 0.5, batches: 10 };
        let rates = GpuRates::of(times, 400_000_000, Some(1_000_000_000)).expect("batches were timed");
        assert_eq!((rates.copy_gb_s, rates.kernel_gb_s, rates.batches), (Some(2.0), Some(20.0), 10));
        let in_place = GpuTimes { copy_s: 0.0, ..times };
        let rates = GpuRates::of(in_place, 400_000_000, None).expect("batches were timed");
        assert_eq!((rates.copy_gb_s, rates.kernel_gb_s), (None, None));
        assert_eq!(GpuRates::of(GpuTimes::default(), 1, None), None);
    }
}
