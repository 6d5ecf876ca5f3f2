//! How a consumer takes its batches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a consumer takes a batch: what its CPU waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandOver {
    /// For nothing: it queues its work, and the device puts it behind the copy.
    #[default]
    Queued,
    /// For the batch to be on the device, before it queues its work.
    Waited,
    /// For the batch, and for its own work as well, before it takes the next one.
    Blocking,
}

impl HandOver {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Queued, Self::Waited, Self::Blocking];

    /// Its name.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waited => "waited",
            Self::Blocking => "blocking",
        }
    }

    /// A description.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Queued => "the CPU waits for nothing: work is queued behind the copy",
            Self::Waited => "the CPU waits until the batch is on the device, then queues its work",
            Self::Blocking => "the CPU waits for the batch, and for its own work before the next",
        }
    }
}

impl fmt::Display for HandOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

impl FromStr for HandOver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|way| way.key() == text);
        found.ok_or_else(|| format!("`{text}` is none of queued, waited and blocking"))
    }
}
