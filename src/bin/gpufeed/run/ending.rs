//! How loading ended.

use std::time::Duration;

use anyhow::Error;

/// How loading onto one device ended.
pub struct Ending {
    /// From the common start until the device had done its last batch.
    pub elapsed: Duration,
    pub interrupted: bool,
    pub error: Option<Error>,
}

/// The error of a device that another's error has stopped.
#[derive(Debug, thiserror::Error)]
#[error("stopped: another device failed")]
pub struct Stopped;

/// What a headline says of a run that did not end by itself.
pub fn ended(error: bool, interrupted: bool) -> &'static str {
    match (error, interrupted) {
        (true, _) => " (stopped by an error)",
        (false, true) => " (interrupted)",
        (false, false) => "",
    }
}
