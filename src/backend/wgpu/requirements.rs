//! What a device must be created with, and which strategies it can run then.

use crate::backend::{Strategy, StrategySupport};
use crate::error::Unsupported;

/// The strategies of this backend.
pub(super) const STRATEGIES: [Strategy; 6] = [
    Strategy::WriteBuffer,
    Strategy::WriteBufferWith,
    Strategy::StagingBelt,
    Strategy::FreshMapped,
    Strategy::MappedRing,
    Strategy::DirectMap,
];

/// Used where present, and done without otherwise.
const OPTIONAL: wgpu::Features = wgpu::Features::MAPPABLE_PRIMARY_BUFFERS
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

pub(super) const ADAPTER_LACKS_MAPPABLE: &str = "the adapter lacks MAPPABLE_PRIMARY_BUFFERS";
pub(super) const DEVICE_LACKS_MAPPABLE: &str =
    "the device was created without MAPPABLE_PRIMARY_BUFFERS; ask gpufeed's requirements() first";
const NO_COMPUTE: &str = "there are no compute shaders with storage buffers";

/// What to put into a [`wgpu::DeviceDescriptor`], together with the application's own needs.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// For `required_features`.
    pub features: wgpu::Features,
    /// For `required_limits`: all that the adapter has. With wgpu's defaults a binding ends at 128 MiB and a buffer at
    /// 256 MiB, whatever the card has, and both are easily exceeded by one batch.
    pub limits: wgpu::Limits,
}

/// The features and limits that a device needs for one strategy, or, with `None`, for everything that gpufeed can use of this
/// adapter.
///
/// # Errors
/// [`Unsupported`] where no device of this adapter can run the strategy.
pub fn requirements(adapter: &wgpu::Adapter, strategy: Option<Strategy>) -> Result<Requirements, Unsupported> {
    let (features, limits) = (adapter.features(), adapter.limits());
    let needed = match strategy {
        None => features & OPTIONAL,
        Some(strategy) => {
            if let Some(reason) = missing(strategy, features, &limits, ADAPTER_LACKS_MAPPABLE) {
                return Err(Unsupported { strategy, reason });
            }
            needed_by(strategy)
        }
    };
    Ok(Requirements { features: needed, limits })
}

/// Each strategy of this backend, for a device or adapter with these features and limits.
pub(super) fn support(
    features: wgpu::Features,
    limits: &wgpu::Limits,
    lacks_mappable: &'static str,
) -> Vec<StrategySupport> {
    let support = |strategy| StrategySupport { strategy, missing: missing(strategy, features, limits, lacks_mappable) };
    STRATEGIES.into_iter().map(support).collect()
}

fn missing(
    strategy: Strategy,
    features: wgpu::Features,
    limits: &wgpu::Limits,
    lacks_mappable: &'static str,
) -> Option<String> {
    if !STRATEGIES.contains(&strategy) {
        Some("it is not one of the wgpu backend's".to_owned())
    } else if !computes(limits) {
        Some(NO_COMPUTE.to_owned())
    } else {
        (!features.contains(needed_by(strategy))).then(|| lacks_mappable.to_owned())
    }
}

fn needed_by(strategy: Strategy) -> wgpu::Features {
    match strategy {
        Strategy::DirectMap => wgpu::Features::MAPPABLE_PRIMARY_BUFFERS,
        _ => wgpu::Features::empty(),
    }
}

/// Old GL has no compute shaders, and limits of WebGL ask for none.
fn computes(limits: &wgpu::Limits) -> bool {
    limits.max_compute_workgroups_per_dimension > 0 && limits.max_storage_buffers_per_shader_stage > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing_of(strategy: Strategy, features: wgpu::Features, limits: &wgpu::Limits) -> Option<String> {
        support(features, limits, DEVICE_LACKS_MAPPABLE).into_iter().find(|s| s.strategy == strategy)?.missing
    }

    #[test]
    fn direct_map_needs_its_feature_and_everything_needs_compute() {
        let (none, limits) = (wgpu::Features::empty(), wgpu::Limits::default());
        assert_eq!(missing_of(Strategy::MappedRing, none, &limits), None);
        assert_eq!(missing_of(Strategy::DirectMap, none, &limits).as_deref(), Some(DEVICE_LACKS_MAPPABLE));
        assert_eq!(missing_of(Strategy::DirectMap, OPTIONAL, &limits), None);
        let webgl = wgpu::Limits::downlevel_webgl2_defaults();
        assert_eq!(missing_of(Strategy::MappedRing, OPTIONAL, &webgl).as_deref(), Some(NO_COMPUTE));
    }

    #[test]
    fn strategies_of_other_backends_are_not_listed_and_refused() {
        let limits = wgpu::Limits::default();
        assert!(!STRATEGIES.contains(&Strategy::Memcpy));
        assert!(missing(Strategy::Memcpy, OPTIONAL, &limits, ADAPTER_LACKS_MAPPABLE).is_some());
    }
}
