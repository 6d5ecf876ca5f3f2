//! The stages that can hold a loader back.

use serde::{Deserialize, Serialize};

/// The stage that holds a loader back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Bottleneck {
    /// There were too few batches to tell: most of the time went into getting under way.
    Startup,
    /// Reading samples.
    Source,
    /// Too few slots: source and device wait for each other in turn, and neither is busy.
    Slots,
    /// The device's copies.
    Copy,
    /// The device's kernels.
    Kernel,
    /// The device's copies or kernels: without [`timing`](crate::LoaderOptions::timing) they cannot be told apart.
    Device,
    /// The device's copies, which take turns with the user's own work there: they are not hidden behind it.
    NotHidden,
    /// Taking staging memory, and recording and queueing copies and kernels.
    Submission,
    /// Too few outputs: nothing can be prepared while the user holds what there is.
    Outputs,
    /// Nothing: the user takes batches more slowly than they come.
    Consumer,
}

impl Bottleneck {
    /// Whether it is one of the device's own.
    pub(super) const fn is_of_the_device(self) -> bool {
        matches!(self, Self::Copy | Self::Kernel | Self::Device)
    }

    /// A description that follows "held back by".
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Startup => "its start: there were too few batches to tell",
            Self::Source => "the source: reading samples into staging memory",
            Self::Slots => "too few slots: source and device take turns",
            Self::Copy => "the device's copies",
            Self::Kernel => "the device's kernels",
            Self::Device => "the device: its copies or its kernels",
            Self::NotHidden => "copies that are not hidden: they take turns with its user's work on the device",
            Self::Submission => "submission: taking staging memory, recording and queueing",
            Self::Outputs => "too few outputs: nothing is prepared while the user holds them",
            Self::Consumer => "its user: batches come faster than they are taken",
        }
    }
}
