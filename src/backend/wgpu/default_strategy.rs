//! The strategy that is used where nobody chooses: one rule for each kind of memory.
//! The [module](super) has the table.
//!
//! `imported` is never a default: it needs a source that lies in memory. [`AutoOptions`](crate::AutoOptions) measures instead.

use crate::backend::{Api, DeviceType, Strategy};

/// The strategy for a device of this kind that can run those which `runs` says. Every device runs `mapped-ring`, or none at all.
pub(super) fn default_strategy(api: Api, device: DeviceType, runs: impl Fn(Strategy) -> bool) -> Strategy {
    let wanted = match (device, api) {
        (DeviceType::Integrated, _) => Strategy::DirectMap,
        (DeviceType::Discrete, Api::Vulkan) => Strategy::SystemRing,
        _ => Strategy::MappedRing,
    };
    if runs(wanted) { wanted } else { Strategy::MappedRing }
}

/// What it is for frames that are pushed and waited for: with no batch to copy beside, `system-ring` is late by its way over the bus.
pub(super) fn for_pushes(default: Strategy) -> Strategy {
    if default == Strategy::SystemRing { Strategy::MappedRing } else { default }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_memory_has_its_default() {
        let all = |_| true;
        for (api, device, strategy) in [
            (Api::Vulkan, DeviceType::Integrated, Strategy::DirectMap),
            (Api::Metal, DeviceType::Integrated, Strategy::DirectMap),
            (Api::Dx12, DeviceType::Integrated, Strategy::DirectMap),
            (Api::Vulkan, DeviceType::Discrete, Strategy::SystemRing),
            // Its mapped ring is in memory of the system too.
            (Api::Dx12, DeviceType::Discrete, Strategy::MappedRing),
            (Api::Vulkan, DeviceType::Virtual, Strategy::MappedRing),
            (Api::Vulkan, DeviceType::Other, Strategy::MappedRing),
            (Api::Vulkan, DeviceType::Software, Strategy::MappedRing),
        ] {
            assert_eq!(default_strategy(api, device, all), strategy, "{api:?} {device:?}");
            let direct = strategy == Strategy::DirectMap;
            assert_eq!(for_pushes(strategy), if direct { strategy } else { Strategy::MappedRing });
            // Metal without MAPPABLE_PRIMARY_BUFFERS, a card under GL.
            let ring = |strategy| strategy == Strategy::MappedRing;
            assert_eq!(default_strategy(api, device, ring), Strategy::MappedRing);
        }
    }
}
