//! Measuring: which staging strategy feeds a device fastest, by how much, and why, from verified bytes.
//!
//! - [`tune`] chooses strategy and number of workers at the start of a program, within two seconds.
//! - [`tune_again`] does so once more, beside the consumer that a loader has had.
//! - [`compare`] measures strategies in turn, and fills a [`report`].
//! - [`what_if`] estimates how fast a loader would be if one of its stages were free.
//!
//! `compare` verifies every configuration with the very settings it will be timed with, then times all of them in turn,
//! A B C A B C, so that a machine's drift meets them all, and measures in between what copying alone reaches: a parallel memcpy
//! on the host, which is a reference, and the device's own copy, which is a ceiling. A round runs from an idle device to an idle
//! device, and its last batch is read back and compared after the clock has stopped. A configuration that ever delivered wrong data has no numbers. What
//! physics forbids is no measurement, and is not shown.
//!
//! Nothing here prints. An [`Observer`] follows a comparison.

mod auto;
mod bounds;
mod busy;
mod ceilings;
mod comparison;
mod computing;
mod container;
mod cpu;
mod cycled;
mod device_clock;
mod engine;
mod events;
mod gate;
mod host_memory;
#[cfg(target_os = "linux")]
mod linux_memory;
mod machine;
mod memcpy;
mod outcome;
mod plan;
mod processor;
pub mod report;
mod rounds;
mod stats;
#[cfg(test)]
mod testing;
mod verify;
mod what_if;
#[cfg(windows)]
mod windows_memory;

pub use auto::{AutoOptions, Trial, Tuned, tune, tune_again};
pub use container::{ContainerMemory, container_memory};
pub use cpu::process_cpu;
pub use engine::compare;
pub use events::{Event, Observer};
pub use gate::{Gate, RatioInterval, paired_ratio};
pub use host_memory::available_memory;
pub use memcpy::parallel_memcpy;
pub use outcome::Verified;
pub use plan::{Plan, Timing};
pub use processor::largest_cache;
pub use stats::{MIN_ROUNDS, Ratio, Summary, describe_ratio, percentile};
pub use what_if::{Free, WhatIf, what_if};
