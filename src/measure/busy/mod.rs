//! Measuring beside a consumer that computes: how much work is how long, what the best possible is, and what became of the batches.

mod calibrate;
mod overlap;
mod user;

pub(super) use calibrate::{Work, calibrate, time_alone, wake};
pub(super) use overlap::{hidden, ideal};
pub(super) use user::{User, check_seen};
