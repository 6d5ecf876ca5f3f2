//! Host memory that stays where it is, so that devices can read it without the CPU.
//!
//! A leaf: it knows neither who fills such memory (a [`Source`](crate::Source)) nor who reads it (a [`Backend`](crate::Backend)).

mod allocation;
mod arena;
mod host;
#[cfg(feature = "npy")]
mod mapped;
mod stable;

pub use arena::HostArena;
pub(crate) use host::HostMemory;
#[cfg(feature = "npy")]
pub(crate) use mapped::MappedFile;
pub use stable::StableHostMemory;
