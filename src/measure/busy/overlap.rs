//! What the best possible is where copies and compute take place at once, and how near to it something came. Pure; times in any one
//! unit.

/// The shortest possible time of a step: copying and computing at once, each without a pause.
pub(in crate::measure) fn ideal(copy: f64, compute: f64) -> f64 {
    copy.max(compute)
}

/// How much of what could be hidden was: of the shorter of transfer and compute, the share that cost no time of its own, from 0 (one
/// after the other) to 1. `transfer` is a step without compute. `None` where there is nothing to hide.
pub(in crate::measure) fn hidden(transfer: f64, compute: f64, step: f64) -> Option<f64> {
    let shorter = transfer.min(compute);
    let share = (transfer + compute - step) / shorter;
    (shorter > 0.0 && share.is_finite()).then_some(share.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_copy_and_compute_is_the_ideal() {
        assert_eq!([ideal(769.0, 0.0), ideal(769.0, 400.0), ideal(769.0, 1000.0)], [769.0, 769.0, 1000.0]);
    }

    #[test]
    fn what_costs_no_time_of_its_own_is_hidden() {
        assert_eq!(hidden(800.0, 400.0, 800.0), Some(1.0), "the compute");
        assert_eq!(hidden(800.0, 1000.0, 1000.0), Some(1.0), "the copy");
        assert_eq!(hidden(800.0, 400.0, 1200.0), Some(0.0), "one after the other");
        assert_eq!(hidden(800.0, 400.0, 1100.0), Some(0.25));
        assert_eq!(hidden(800.0, 1600.0, 2000.0), Some(0.5));
    }

    #[test]
    fn noise_is_no_share_below_none_or_above_all_and_of_nothing_nothing_is_hidden() {
        assert_eq!((hidden(800.0, 400.0, 1300.0), hidden(800.0, 400.0, 700.0)), (Some(0.0), Some(1.0)));
        assert_eq!((hidden(800.0, 0.0, 800.0), hidden(0.0, 400.0, 400.0)), (None, None));
        assert_eq!(hidden(f64::NAN, 400.0, 400.0), None);
    }
}
