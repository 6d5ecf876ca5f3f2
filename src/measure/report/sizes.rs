//! The settings that can be swept.

use super::configuration::Settings;

/// A setting that may be swept, and then has a column before the others.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Size {
    /// Its name in JSON and CSV.
    pub key: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its value.
    pub of: fn(&Settings) -> String,
}

/// Every setting but the strategy, in the order in which they stand.
pub const SIZES: &[Size] = &[
    Size { key: "sample_bytes", title: "sample bytes", of: |settings| settings.sample_bytes.to_string() },
    Size { key: "batch_size", title: "batch", of: |settings| settings.batch_size.to_string() },
    Size { key: "workers", title: "workers", of: |settings| settings.workers.to_string() },
    Size { key: "slots", title: "slots", of: |settings| settings.slots.to_string() },
    Size { key: "outputs", title: "outputs", of: |settings| settings.outputs.to_string() },
    Size { key: "compute_asked_us", title: "compute", of: |settings| settings.compute_us.to_string() },
    Size { key: "hand_over", title: "hand-over", of: |settings| settings.hand_over.to_string() },
];

impl Size {
    /// Whether it is about what the batches are used for, and not about the loader.
    #[must_use]
    pub fn is_of_the_consumer(&self) -> bool {
        matches!(self.key, "compute_asked_us" | "hand_over")
    }
}
