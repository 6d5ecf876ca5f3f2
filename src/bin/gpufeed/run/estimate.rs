//! How fast each device would be if its stages were free, measured after the run.

use std::sync::Arc;
use std::time::Duration;

use gpufeed::LoaderOptions;

use super::open::DeviceRun;
use super::report::Report;
use crate::interrupt;

/// How long each of the runs takes.
const EACH: Duration = Duration::from_millis(300);

/// Measures one device after the other. The loaders go: their memory is needed.
pub fn estimate(runs: Vec<DeviceRun>, reports: &mut [Report]) {
    let part = |run: &DeviceRun| {
        let loader = &run.loader;
        let options = LoaderOptions { strategy: Some(loader.strategy()), ..loader.options().clone() };
        (run.device.clone(), Arc::clone(loader.source()), options)
    };
    let parts: Vec<_> = runs.iter().map(part).collect();
    drop(runs);
    for ((device, source, options), report) in parts.into_iter().zip(reports) {
        if report.error.is_none() && !interrupt::requested() {
            report.what_if = Some(device.what_if(&source, &options, EACH, &interrupt::requested));
        }
    }
}
