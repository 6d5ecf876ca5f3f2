//! Measuring on a device of any backend.

use std::sync::Arc;
use std::time::Duration;

use super::backend::AnyBackend;
use super::each;
use crate::backend::Backend;
use crate::error::DeviceError;
use crate::loader::LoaderOptions;
use crate::measure::report::DeviceReport;
use crate::measure::{Observer, Plan, WhatIf, compare, what_if};
use crate::source::Source;

impl AnyBackend {
    /// Compares configurations on this device, as [`compare`].
    pub fn compare(&self, source: Arc<dyn Source>, plan: &Plan, observer: &mut dyn Observer) -> DeviceReport {
        each!(Self, self, backend => compare(backend, source, plan, observer))
    }

    /// How fast a loader on this device would be if its stages were free, as [`what_if`].
    pub fn what_if(
        &self,
        source: &Arc<dyn Source>,
        options: &LoaderOptions,
        each: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Vec<WhatIf> {
        each!(Self, self, backend => what_if(backend, source, options, each, stop))
    }

    /// The device's own copy from staging to device memory, in bytes a second, as [`Backend::copy_ceiling`].
    ///
    /// # Errors
    /// The device's error.
    pub fn copy_ceiling(&self, bytes: usize, at_least: Duration) -> Result<f64, DeviceError> {
        each!(Self, self, backend => backend.copy_ceiling(bytes, at_least))
    }
}
