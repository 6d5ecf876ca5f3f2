//! Following a comparison.

use serde::{Deserialize, Serialize};

use super::outcome::Verified;
use super::report::{DeviceReport, Settings};

/// What happens during a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// The consumer's work was calibrated.
    Calibrated {
        /// What was asked for, in microseconds.
        compute_us: u32,
        /// What it takes alone, in microseconds.
        alone_us: f64,
    },
    /// A configuration is being verified.
    Verifying {
        /// Which.
        settings: Settings,
    },
    /// A configuration delivers what it should.
    Verified {
        /// Which.
        settings: Settings,
        /// What was checked.
        verified: Verified,
    },
    /// The device cannot run a configuration.
    Unsupported {
        /// Which.
        settings: Settings,
        /// Why not.
        reason: String,
    },
    /// A configuration failed, and will have no numbers.
    Failed {
        /// Which.
        settings: Settings,
        /// What happened.
        message: String,
    },
    /// A configuration was timed once more.
    Timed {
        /// Which.
        settings: Settings,
        /// The round, from one.
        round: usize,
        /// How many there are at most.
        of: usize,
        /// Samples a second in this round.
        samples_s: f64,
        /// Gigabytes a second in this round.
        gb_s: f64,
    },
}

/// Who follows a comparison.
pub trait Observer {
    /// Something happened; this is the report so far.
    fn event(&mut self, event: &Event, so_far: &DeviceReport);

    /// Whether to end: what was measured so far stays. Asked about once a batch.
    fn stop(&self) -> bool {
        false
    }
}

/// Follows nothing.
impl Observer for () {
    fn event(&mut self, _: &Event, _: &DeviceReport) {}
}
