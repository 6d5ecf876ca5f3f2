//! Choosing strategy and number of workers by measuring, at the start of a program and within a stated time.
//!
//! [`tune`] tries what the device can run with the user's own source, samples and options, and says what it chose and why. Strategies that
//! [allocate per batch](Strategy::allocates_per_batch) are not tried. What it starts from, the backend's default strategy and the
//! options' number of workers, stays unless something else is clearly better; where fewer workers are as good, they are taken. What
//! must not vary can be pinned, and a file can remember what was found.
//!
//! A device that computes meanwhile may be served best by another strategy than an idle one: [`AutoOptions::compute`] says how long the
//! consumer computes, and [`tune_again`] finds it out from a loader that has run beside it.
//!
//! A minute of [`compare`](super::compare) knows more: it verifies every batch and measures for longer. Here one batch of what was chosen
//! is compared with the source.

mod cache;
mod candidate;
mod consumed;
mod describe;
mod infer;
mod memory_budget;
mod open_loaders;
mod options;
mod scoreboard;
mod trial;
mod tune;
mod tuned;
mod tuner;
mod wanted;
mod workers;

pub use options::AutoOptions;
pub use tune::{tune, tune_again};
pub use tuned::{Trial, Tuned};
