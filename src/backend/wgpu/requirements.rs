//! What a device must be created with.

use std::ffi::CStr;

use super::abilities::{Abilities, OPTIONAL, needed_by};
use super::vulkan;
use crate::backend::Strategy;
use crate::error::Unsupported;

/// What to put into a [`wgpu::DeviceDescriptor`], together with the application's own needs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Requirements {
    /// For `required_features`.
    pub features: wgpu::Features,
    /// For `required_limits`: all that the adapter has. With wgpu's defaults a binding ends at 128 MiB and a buffer at
    /// 256 MiB, whatever the card has, and both are easily exceeded by one batch.
    pub limits: wgpu::Limits,
    /// Vulkan extensions that wgpu does not enable by itself. [`open_device`](super::open_device) does.
    pub extensions: Vec<&'static CStr>,
}

impl Requirements {
    /// These, and whatever else the adapter has, for a library on the same device that asks the adapter what it can use and not the
    /// device: cubecl does, and so does burn, and on a device that was created with less their first kernel may be refused.
    ///
    /// Experimental features are left out: [`wgpu::DeviceDescriptor`] takes them only with a token that is `unsafe` to make. Whoever wants
    /// one adds it.
    #[must_use]
    pub fn with_all_of(self, adapter: &wgpu::Adapter) -> Self {
        let offered = adapter.features() - wgpu::Features::all_experimental_mask();
        Self { features: self.features | offered, limits: adapter.limits(), ..self }
    }
}

/// The features and limits that a device needs for one strategy, or, with `None`, for everything that gpufeed can use of this
/// adapter.
///
/// # Errors
/// [`Unsupported`] where no device of this adapter can run the strategy.
pub fn requirements(adapter: &wgpu::Adapter, strategy: Option<Strategy>) -> Result<Requirements, Unsupported> {
    let abilities = Abilities::of_adapter(adapter);
    let features = match strategy {
        None => abilities.features & OPTIONAL,
        Some(strategy) => {
            if let Some(reason) = abilities.missing(strategy) {
                return Err(Unsupported { strategy, reason });
            }
            needed_by(strategy)
        }
    };
    let imports = abilities.imports && strategy.is_none_or(|strategy| strategy == Strategy::Imported);
    let extensions = if imports { vec![vulkan::EXTERNAL_MEMORY_HOST] } else { Vec::new() };
    Ok(Requirements { features, limits: abilities.limits, extensions })
}

#[cfg(test)]
mod tests {
    use super::super::{WgpuBackend, adapters, open_device, tests::opened};
    use super::*;

    #[test]
    fn a_device_with_all_of_its_adapter_has_every_feature_that_is_not_experimental_and_runs_every_strategy() {
        for own in opened() {
            let adapter = adapters::find(Some(own.api())).remove(0).adapter;
            let needs = requirements(&adapter, None).expect("it computes").with_all_of(&adapter);
            let desc = wgpu::DeviceDescriptor {
                required_features: needs.features,
                required_limits: needs.limits,
                ..Default::default()
            };
            let (device, queue) = open_device(&adapter, &desc).expect("it opens");
            let offered = adapter.features() - wgpu::Features::all_experimental_mask();
            assert!(device.features().contains(offered), "{:?} is missing", offered - device.features());
            assert_eq!(device.limits(), adapter.limits());
            let shared = WgpuBackend::from_device(device, queue).expect("a backend");
            let runs = |backend: &WgpuBackend| -> Vec<Strategy> {
                let all = backend.info().strategies.iter();
                all.filter(|support| support.missing.is_none()).map(|support| support.strategy).collect()
            };
            assert_eq!(runs(&shared), runs(&own));
        }
    }

    #[test]
    fn all_of_an_adapter_takes_nothing_away_that_was_asked_for() {
        for own in opened() {
            let adapter = adapters::find(Some(own.api())).remove(0).adapter;
            let mut needs = requirements(&adapter, Some(Strategy::MappedRing)).expect("it computes");
            let before = needs.extensions.clone();
            needs.features |= wgpu::Features::EXPERIMENTAL_RAY_QUERY; // An application's own wish, which it has the token for.
            let all = needs.with_all_of(&adapter);
            assert!(all.features.contains(wgpu::Features::EXPERIMENTAL_RAY_QUERY));
            assert_eq!(all.extensions, before);
        }
    }
}
