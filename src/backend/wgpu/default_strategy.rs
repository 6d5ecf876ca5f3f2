//! The strategy that is used where nobody chooses: one rule for each kind of memory.
//! The [module](super) has the table.
//!
//! `imported` is never a default: it needs a source that lies in memory. [`AutoOptions`](crate::AutoOptions) measures instead.

use crate::backend::{DeviceType, Strategy};

/// The strategy for a device of this kind that can run those which `runs` says. Every device runs `mapped-ring`, or none at all.
pub(super) fn default_strategy(device: DeviceType, runs: impl Fn(Strategy) -> bool) -> Strategy {
    let wanted = match device {
        DeviceType::Integrated => Strategy::DirectMap,
        DeviceType::Discrete => Strategy::SystemRing,
        DeviceType::Virtual | DeviceType::Other | DeviceType::Software => Strategy::MappedRing,
    };
    if runs(wanted) { wanted } else { Strategy::MappedRing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_memory_has_its_default() {
        let all = |_| true;
        for (device, strategy) in [
            (DeviceType::Integrated, Strategy::DirectMap),
            (DeviceType::Discrete, Strategy::SystemRing),
            (DeviceType::Virtual, Strategy::MappedRing),
            (DeviceType::Other, Strategy::MappedRing),
            (DeviceType::Software, Strategy::MappedRing),
        ] {
            assert_eq!(default_strategy(device, all), strategy, "{device:?}");
            // Metal without MAPPABLE_PRIMARY_BUFFERS, a card under GL.
            assert_eq!(default_strategy(device, |strategy| strategy == Strategy::MappedRing), Strategy::MappedRing);
        }
    }
}
