//! What physics forbids is no measurement, and what was passed is no ceiling. Pure.

/// No link between host and device and no host's memory moves more than this, in GB/s: PCIe 6 x16 and NVLink-C2C stay below
/// 500, unified memory below 1,000.
const MAX_HOST_GB_S: f64 = 2000.0;
/// No device's memory or cache moves more than this, in GB/s: HBM3e stays below 10,000, the caches of large devices below 30,000.
const MAX_DEVICE_GB_S: f64 = 50_000.0;
/// A ceiling is measured as well. Up to this factor a rate above it is noise, beyond it one of the two is wrong.
const NOISE: f64 = 1.05;

/// What is timed, and so what bounds its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A copy between host and device.
    Copy,
    /// A kernel within the device's memory.
    Kernel {
        /// Whether that memory is the host's.
        software: bool,
    },
}

impl Work {
    const fn bound(self) -> f64 {
        match self {
            Self::Copy | Self::Kernel { software: true } => MAX_HOST_GB_S,
            Self::Kernel { software: false } => MAX_DEVICE_GB_S,
        }
    }
}

/// The rate in GB/s where it can be true.
///
/// # Errors
/// Why it cannot.
pub(super) fn credible(work: Work, gb_s: f64, ceiling: Option<f64>) -> Result<f64, String> {
    let bound = work.bound();
    if !gb_s.is_finite() || gb_s <= 0.0 {
        return Err(format!("{gb_s} GB/s is no rate"));
    }
    if gb_s > bound {
        return Err(format!("{gb_s:.0} GB/s is no measurement: no memory and no link moves more than {bound:.0} GB/s"));
    }
    match ceiling {
        Some(ceiling) if gb_s > NOISE * ceiling => {
            Err(format!("{gb_s:.1} GB/s is no measurement: copying alone reached {ceiling:.1} GB/s"))
        }
        _ => Ok(gb_s),
    }
}

/// A rate as percent of its ceiling; `None` where the ceiling was passed, and so is none.
pub(super) fn percent_of(gb_s: f64, ceiling: f64) -> Option<f64> {
    let percent = 100.0 * gb_s / ceiling;
    (percent.is_finite() && gb_s <= NOISE * ceiling).then_some(percent.min(100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Work = Work::Kernel { software: false };

    #[test]
    fn what_physics_forbids_is_no_measurement() {
        // OpenGL's clock on an RTX card, and on a software driver.
        assert!(credible(GPU, 2_028_169.0, None).is_err_and(|why| why.contains("more than 50000 GB/s")));
        assert!(credible(Work::Kernel { software: true }, 2_028.0, None).is_err());
        assert!(credible(Work::Copy, 2_028.0, None).is_err());
        for nonsense in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert!(credible(Work::Copy, nonsense, None).is_err(), "{nonsense}");
        }
        assert_eq!(credible(GPU, 4_800.0, None), Ok(4_800.0));
    }

    #[test]
    fn a_rate_above_its_measured_ceiling_is_dropped_with_both_numbers() {
        let why = credible(GPU, 6_000.0, Some(4_000.0)).expect_err("above");
        assert_eq!(why, "6000.0 GB/s is no measurement: copying alone reached 4000.0 GB/s");
        assert_eq!(credible(GPU, 4_100.0, Some(4_000.0)), Ok(4_100.0), "noise of the ceiling");
    }

    #[test]
    fn no_share_is_above_its_ceiling() {
        assert_eq!(percent_of(2.0, 8.0), Some(25.0));
        assert_eq!(percent_of(8.2, 8.0), Some(100.0));
        assert_eq!(percent_of(9.6, 8.0), None, "120% of a ceiling: it is none");
        assert_eq!(percent_of(1.0, 0.0), None);
    }
}
