//! Vulkan, Metal, DX12 and GL, through wgpu.
//!
//! [`adapters`] lists what there is without opening anything. [`WgpuBackend::open`] opens a device by text,
//! [`WgpuBackend::from_device`] takes an application's own: create it with [`requirements`] and [`open_device`]. [`Tuning`] chooses among
//! ways that lead to the same bytes.
//!
//! # Which memory a strategy really uses
//!
//! `gpufeed devices` shows the memory type and heap that each strategy would get, before anything is opened. What that means:
//!
//! | card | `mapped-ring`, `staging-belt`, `direct-map` | `system-ring` | `imported` |
//! | --- | --- | --- | --- |
//! | discrete, resizable BAR | *video memory* behind the bus (DEVICE_LOCAL and HOST_VISIBLE): the CPU pushes every byte across in write-combined stores, and the later copy is inside the card | page-locked system memory: the CPU fills its own memory, the card's copy engine fetches it | the dataset's own memory: the card fetches the samples, the CPU copies nothing |
//! | discrete, small window | system memory | the same | the same |
//! | integrated, software | the one memory there is | the same, labelled `unified`, cached | the same |
//!
//! wgpu asks its allocator for memory that the CPU writes and the GPU reads, and the allocator prefers memory that is both visible
//! to the host and local to the device. On a card whose whole memory is visible that is video memory, and so wgpu's own
//! staging is not the equivalent of pinned memory there. Measured on one NVIDIA H200 (PCIe 5 x16, driver 580.159.04, Vulkan,
//! 2026-11-29; u8 images of 224x224x3 shuffled in memory, f32 NCHW out, 8 workers, verified bytes, one run of `cargo bench --bench
//! device`; the card's host-to-device copy made 50.8 GB/s in it):
//!
//! | strategy | memory | GB/s of u8, batch 256 | of that copy | of what the same threads write into that memory | CPU, cores | batch 64, GB/s |
//! | --- | --- | --: | --: | --: | --: | --: |
//! | `mapped-ring` | type 4, heap 0: video memory | 32.9 | 0.65 | 0.99 | 8.1 | 32.7 |
//! | `system-ring` | type 3, heap 1: system memory, cached | 37.7 | 0.74 | 0.83 (the card reads it meanwhile) | 8.0 | 37.1 |
//! | `imported` | the dataset's own | 49.5 | 0.97 | | 0.16 | 45.1 |
//!
//! Hosts differ: on others of the same day `system-ring` made 32.9 to 42.1 GB/s, 1.04 to 1.25 times what the host's own memcpy made in the same
//! run, and `imported` 48.4 to 50.3, 0.97 to 1.01 of the copy.
//!
//! `imported` gathers and normalises in one kernel that reads the dataset over the bus; a multi-region copy followed by the kernel reached
//! 45.7 GB/s, because submissions do not overlap under wgpu and the kernel's 59 us add to the copy. The kernel alone moves 3,240 to 3,370 GB/s
//! read and written to f32 and 2,820 to 2,980 to f16, where a copying kernel moves 3,810 at its best; of a copying kernel of the very same bytes that is 0.91 to
//! 0.94 and 0.88 to 0.94: a dispatch costs some 7 us whatever it moves, and an f16 batch moves fewer bytes.
//!
//! Mapped *files* are not imported by every driver (NVIDIA's refuses them): load the data into a
//! [`HostArena`](crate::source::HostArena) there.

mod adapters;
mod bandwidth;
mod buffers;
mod device;
mod direct;
mod feed;
mod health;
mod kernel;
mod lane;
mod mapped;
mod memory;
mod requirements;
mod staging;
mod submit;
mod tensor;
#[cfg(test)]
mod tests;
mod timing;
mod tuning;
mod vulkan;

pub use adapters::{adapters, adapters_of};
pub use device::{WgpuBackend, open_device};
pub use lane::WgpuLane;
pub use requirements::{Requirements, requirements};
pub use tensor::WgpuTensor;
pub use tuning::{Gather, HostCache, SlotReads, Tuning};
