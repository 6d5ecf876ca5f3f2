//! The staging strategies, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! strategies {
    ($($(#[$doc:meta])* $name:ident = $key:literal, $what:literal;)*) => {
        /// How samples get from the CPU to the device. What each one is: [`Strategy::describe`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Strategy {
            $($(#[$doc])* #[serde(rename = $key)] $name,)*
        }

        impl Strategy {
            /// Every strategy there is.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The strategy's name, as options and reports spell it.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self { $(Self::$name => $key),* }
            }

            /// What the strategy does, in one line.
            #[must_use]
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$name => $what),* }
            }
        }
    };
}

strategies! {
    /// Plain host memory (host backend).
    Memcpy = "memcpy", "plain host memory: the reference, and what runs where there is no driver";
    /// [`Queue::write_buffer`] (wgpu).
    ///
    /// [`Queue::write_buffer`]: https://docs.rs/wgpu/latest/wgpu/struct.Queue.html#method.write_buffer
    WriteBuffer = "write-buffer", "Queue::write_buffer from pageable memory; allocates per batch";
    /// [`Queue::write_buffer_with`] (wgpu).
    ///
    /// [`Queue::write_buffer_with`]: https://docs.rs/wgpu/latest/wgpu/struct.Queue.html#method.write_buffer_with
    WriteBufferWith = "write-buffer-with", "Queue::write_buffer_with, filled in place; allocates per batch";
    /// [`StagingBelt`] (wgpu).
    ///
    /// [`StagingBelt`]: https://docs.rs/wgpu/latest/wgpu/util/struct.StagingBelt.html
    StagingBelt = "staging-belt", "wgpu's StagingBelt, one a slot";
    /// A new mapped buffer for each batch (wgpu).
    FreshMapped = "fresh-mapped", "a new mapped buffer for each batch: what pinning per batch costs; allocates per batch";
    /// A fixed ring of mapped buffers (wgpu): the portable default.
    MappedRing = "mapped-ring", "a fixed ring of mapped buffers, mapped again on submit: the portable default";
    /// Workers write the buffer that the kernel reads (wgpu).
    DirectMap = "direct-map", "workers write the very buffer that the kernel reads, for unified memory and resizable BAR";
    /// Copies from ordinary memory (CUDA).
    Pageable = "pageable", "copies from ordinary memory, which the driver stages itself";
    /// A new page-locked buffer for each batch (CUDA).
    PinPerBatch = "pin-per-batch", "page-locks a new buffer for each batch: what pinning per batch costs; allocates per batch";
    /// A fixed ring of page-locked slots (CUDA): the default there.
    PinnedRing = "pinned-ring", "a fixed ring of page-locked slots: CUDA's default";
    /// A fixed ring of write-combined page-locked slots (CUDA).
    PinnedWriteCombined = "pinned-write-combined", "a fixed ring of page-locked slots that the CPU's caches do not hold";
    /// The source's own memory, page-locked in place (CUDA).
    Registered = "registered", "page-locks the source's own memory, and the device gathers the samples: no CPU copy";
    /// A fixed ring in page-locked memory of the host (wgpu on Vulkan).
    SystemRing = "system-ring", "a fixed ring in page-locked memory of the host, also where wgpu's own staging is video memory (Vulkan)";
    /// The source's own memory becomes buffers of the device (wgpu on Vulkan).
    Imported = "imported", "the device reads the source's own memory: no slot, no copy by the CPU (Vulkan)";
}

impl Strategy {
    /// Whether the device reads the source's own memory: no slot, no worker, no copy by the CPU.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::Imported | Self::Registered)
    }

    /// Whether this strategy allocates for every batch, and so is exempt from constant memory: showing that cost is
    /// what it is for.
    #[must_use]
    pub const fn allocates_per_batch(self) -> bool {
        matches!(self, Self::WriteBuffer | Self::WriteBufferWith | Self::FreshMapped | Self::PinPerBatch)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

/// A name that is no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no strategy; there are: {}", Strategy::ALL.iter().map(|s| s.key()).collect::<Vec<_>>().join(", "))]
pub struct UnknownStrategy {
    name: String,
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|strategy| strategy.key() == name)
            .ok_or_else(|| UnknownStrategy { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_parse_back() {
        for &strategy in Strategy::ALL {
            assert_eq!(strategy.key().parse(), Ok(strategy));
            let json = serde_json::to_string(&strategy).expect("serialises");
            assert_eq!(json, format!("\"{strategy}\""));
        }
        let error = "pinned".parse::<Strategy>().expect_err("no such name").to_string();
        assert!(error.contains("mapped-ring"), "{error}");
    }
}
