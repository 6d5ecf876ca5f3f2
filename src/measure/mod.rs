//! Comparing staging strategies: which one feeds a device fastest, by how much, and why, from verified bytes.
//!
//! [`compare`] verifies every configuration with the very settings it will be timed with ([`verify()`]), then
//! times all of them in turn, A B C A B C, so that a machine's drift meets them all, and measures in between what copying alone
//! reaches: a parallel memcpy on the host ([`parallel_memcpy`]) and the device's own copy. A round runs from an idle device to
//! an idle device, and its last batch is read back and compared after the clock has stopped. A configuration that ever
//! delivered wrong data has no numbers. The result is a [`Report`] that keeps every sample.
//!
//! Nothing here prints. Who wants to follow it is an [`Observer`].

pub mod auto;
mod bounds;
mod ceilings;
mod check;
pub mod cpu;
mod cycled;
mod engine;
mod events;
pub mod export;
mod gpu;
pub mod limits;
pub mod machine;
pub mod memcpy;
mod plan;
pub mod report;
mod rounds;
pub mod stats;
#[cfg(test)]
pub(crate) mod testing;
mod verdict;
pub mod verify;
mod what_if;

pub use auto::{AutoOptions, Trial, Tuned, tune};
pub use check::Mismatch;
pub use cpu::{available_memory, physical_memory, process_cpu};
pub use engine::compare;
pub use events::{Event, Observer};
pub use gpu::GpuRates;
pub use memcpy::parallel_memcpy;
pub use plan::{Plan, Timing};
pub use report::Report;
pub use stats::{Ratio, Summary, Winner, percentile, ratio_in_words, winner};
pub use verify::{Extent, Verified, VerifyError, verify};
pub use what_if::{Free, WhatIf, what_if};
