//! What the device's own clock says of a configuration.

use serde::{Deserialize, Serialize};

use crate::backend::GpuTimes;

/// How fast the device copied and computed, by its own clock, and not how often it was kept waiting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuRates {
    /// The times that were measured.
    pub times: GpuTimes,
    /// The copy from staging memory, in GB/s; `None` where it is no command of its own.
    pub copy_gb_s: Option<f64>,
    /// The kernels, bytes read and written, in GB/s; `None` where there is nothing to compute. Where a kernel reads the host's memory
    /// itself, the bus is what it is measured at.
    pub kernel_gb_s: Option<f64>,
}

impl GpuRates {
    /// Of batches that are copied as `copied` bytes each; their kernels read and write `moved`, where there are any.
    pub(in crate::measure) fn of(times: GpuTimes, copied: u64, moved: Option<u64>) -> Option<Self> {
        let rate = |bytes: u64, seconds: f64| {
            let rate = bytes as f64 * times.batches as f64 / 1e9 / seconds;
            (seconds > 0.0 && rate.is_finite()).then_some(rate)
        };
        (times.batches > 0).then(|| Self {
            times,
            copy_gb_s: rate(copied, times.copy_s),
            kernel_gb_s: moved.and_then(|moved| rate(moved, times.kernel_s)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_bytes_that_moved() {
        let times = GpuTimes { copy_s: 2.0, kernel_s: 0.5, batches: 10 };
        let rates = GpuRates::of(times, 400_000_000, Some(1_000_000_000)).expect("batches were timed");
        assert_eq!((rates.copy_gb_s, rates.kernel_gb_s, rates.times.batches), (Some(2.0), Some(20.0), 10));
        let in_place = GpuTimes { copy_s: 0.0, ..times };
        let rates = GpuRates::of(in_place, 400_000_000, None).expect("batches were timed");
        assert_eq!((rates.copy_gb_s, rates.kernel_gb_s), (None, None));
        assert_eq!(GpuRates::of(GpuTimes::default(), 1, None), None);
    }
}
