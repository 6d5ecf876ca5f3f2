//! Vulkan, Metal, DX12 and GL, through wgpu.
//!
//! [`adapters`] lists what there is without opening anything. [`WgpuBackend::open`] opens a device by text,
//! [`WgpuBackend::from_device`] takes an application's own: create it with [`requirements`] and [`open_device`]. [`Tuning`] chooses among
//! ways that lead to the same bytes.
//!
//! # Which thread runs callbacks
//!
//! wgpu runs the callbacks of an application (of mapping, of submitted work) on whichever thread polls the device or submits to it
//! next, and a loader's pump does both all the time: so they run there, and on threads that wait for a batch, as well as on the
//! application's own. A callback should do little. A panic in one is logged with its text and ends nothing of gpufeed's; so is an error that
//! one causes while gpufeed submits, which a handler of the application does not see then. While gpufeed waits it holds no lock of wgpu's.
//!
//! # The default strategy
//!
//! | device | strategy | measured |
//! | --- | --- | --- |
//! | integrated, one memory for both | `direct-map` where it can: no second copy | no |
//! | discrete, Vulkan | `system-ring`: what the CPU fills is its own memory, and the card fetches it | on one H200: 1.06 to 1.14 times `mapped-ring` |
//! | any other | `mapped-ring` | on lavapipe, against `write-buffer` only |
//!
//! On unified memory that is one copy at most: with a kernel, none, since it reads the slot where the CPU wrote it.
//!
//! A [`Feeder`](crate::Feeder) takes `mapped-ring` on a discrete card too: there is no other batch beside which its copy could cross the bus. A frame of
//! 3.9 MB was letterboxed and waited for in 127 us by it on one H200, in 246 by `system-ring`, and in 99 to 112 by `direct-map`, whose memory is
//! video memory on that card and not on every one.
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
//! device`; the card's host-to-device copy made 50.7 GB/s in it):
//!
//! | strategy | memory | GB/s of u8, batch 256 | of that copy | of what the same threads write into that memory | CPU, cores | batch 64, GB/s |
//! | --- | --- | --: | --: | --: | --: | --: |
//! | `mapped-ring` | type 4, heap 0: video memory | 33.4 | 0.66 | 0.99 | 8.0 | 33.1 |
//! | `system-ring` | type 3, heap 1: system memory, cached | 35.5 | 0.70 | 0.86 (the card reads it meanwhile) | 7.9 | 33.7 |
//! | `imported` | the dataset's own | 48.8 | 0.96 | | 0.14 (0.11 at batch 512) | 43.9 |
//!
//! Hosts differ: on others of the same day `system-ring` made 32.9 to 42.1 GB/s, 1.04 to 1.25 times what the host's own memcpy made in the same
//! run, and `imported` 48.4 to 50.3, 0.97 to 1.01 of the copy.
//!
//! `imported` gathers and normalises in one kernel that reads the dataset over the bus; a multi-region copy followed by the kernel reached
//! 45.7 GB/s, because submissions do not overlap under wgpu and the kernel's 59 us add to the copy. The kernel alone moves 3,250 GB/s
//! read and written to f32 and 2,840 to f16 at batch 256, 3,630 and 3,370 at batch 512, where a copying kernel moves 3,840 at its best: a dispatch costs some 7
//! us whatever it moves, and an f16 batch moves 0.6 of the bytes. At about as many bytes f16 is as fast: 3,370 at batch 512 and 3,250 in f32 at 256.
//!
//! # Copies and kernels beside the application's work
//!
//! wgpu has one queue, so whatever is submitted there takes turns: a copy, a kernel of gpufeed's, the application's own work. On Vulkan
//! [`open_device`] opens queues of other families as well where the driver has them ([`WgpuBackend::has_second_queue`] says why it has
//! none); on DX12 any device has a queue for copies, and on Metal one is [untried](#dx12-and-metal). What runs where:
//!
//! | | copies of `system-ring` | copies of `imported` | kernels |
//! | --- | --- | --- | --- |
//! | where nobody chooses | the copy engines' queues, else wgpu's | a kernel gathers | wgpu's queue |
//! | to choose | [`CopyQueue`] | [`CopyQueue`] | [`KernelQueue`] |
//!
//! That holds for gpufeed's own devices and an application's alike; `gpufeed devices` says which queues copy, or why it is wgpu's.
//! Frames that are pushed stay on wgpu's queue, where each takes the shortest way.
//!
//! A batch is delivered when it has arrived, so the application's queue never waits for one; it is the batches prepared ahead that hide the
//! time. An application keeps the overlap
//!
//! - by not holding every output, and by not waiting on the CPU for what it computes with a batch before it takes the next one;
//! - where kernels have a queue of their own, by one output more, since a tensor is written again only when all has ended that was
//!   submitted before its batch was dropped. What uses a batch is submitted before that: later work would race with the next batch.
//!
//! # DX12 and Metal
//!
//! | | DX12 | Metal |
//! | --- | --- | --- |
//! | `mapped-ring`, `direct-map` | custom heaps of system memory (`L0`) on every card, which the CPU writes around its caches (`WRITE_COMBINE`) | shared buffers, write-combined |
//! | `system-ring` | the same memory, so what it adds is another: written through the caches (`WRITE_BACK`), mapped for as long as the lane lives, copied by a copy queue | shared buffers, cached, copied by a second queue |
//! | `imported` | `OpenExistingHeapFromAddress`: what `VirtualAlloc` gave, as a [`HostArena`](crate::memory::HostArena) is | `newBufferWithBytesNoCopy`, whole pages of 16 KiB |
//! | kernels beside wgpu's queue | wgpu opens no second queue over the same device | the same |
//! | seen to run | all but `imported`, under Wine on lavapipe; never on a card | of these nothing: type-checked |
//!
//! What was compiled and has never run is refused by name, and `GPUFEED_UNPROVEN=1` in the environment tries it.
//!
//! Mapped *files* are not imported by every driver (NVIDIA's refuses them): load the data into a
//! [`HostArena`](crate::memory::HostArena) there.
//!
//! # With burn and cubecl
//!
//! burn 0.22 and cubecl 0.11 are on wgpu 30 as well, so one device serves both, and a batch becomes a tensor by one copy on the device. Their
//! kernels use what the *adapter* offers, so a device that gpufeed opens for them has all of it:
//! [`Requirements::with_all_of`], and [`open_device`] for `imported`.
//!
//! ```ignore
//! let needs = requirements(&adapter, None)?.with_all_of(&adapter); // for `required_features` and `required_limits`
//! let (device, queue) = open_device(&adapter, &descriptor)?;
//! let backend = WgpuBackend::from_parts(&instance, &adapter, device.clone(), queue.clone())?;
//! let setup = WgpuSetup { backend: adapter.get_info().backend, instance, adapter, device, queue };
//! let burn = burn::tensor::Device::wgpu_options().setup(setup).init()?;
//!
//! // A batch as a tensor of burn's. Without burn's feature `fusion`, with which a tensor has no buffer yet.
//! let tensor = Tensor::<4>::empty(shape, &burn); // as `batch.shape()`
//! let own = tensor.clone().try_into_primitive::<burn::backend::Wgpu>()?;
//! // Right before the copy: it submits what burn has recorded, which may still read this memory as another tensor's.
//! let memory = own.client.get_resource::<WgpuServer<AutoCompiler>>(own.handle.clone())?; // of `burn::cubecl::wgpu`
//! batch.fill_into(&memory.resource().buffer, memory.resource().offset)?;
//! ```
//!
//! It works the other way round too, and has to where burn compiles to SPIR-V (its feature `vulkan`): `wgpu_options().init_with_setup()` opens the
//! device and hands out its parts for [`WgpuBackend::from_parts`]. burn leaves `MAPPABLE_PRIMARY_BUFFERS` out, so that `direct-map` does not run on
//! such a device, nor does `imported`; other strategies do. `examples/ocr`, a workspace of its own, runs a network so, and compares its answers
//! with those of onnxruntime.

mod abilities;
mod adapters;
mod apis;
mod backend;
mod bandwidth;
mod beside;
mod beyond;
mod buffers;
mod callbacks;
mod clock;
mod consumer;
mod default_strategy;
mod device;
mod direct;
mod dx12;
mod external;
mod given;
mod health;
mod kernel;
mod kernel_queue;
mod kinds;
mod lane;
mod mapped;
mod memory;
mod metal;
// In a browser no API offers anything, and what is common to them is not used.
#[cfg_attr(
    not(any(windows, target_vendor = "apple", target_os = "linux", target_os = "android", target_os = "freebsd")),
    allow(dead_code, unused_imports)
)]
mod native;
mod open_device;
mod outputs;
mod requirements;
mod second;
mod staging;
mod step;
mod submit;
mod tensor;
#[cfg(test)]
mod tests;
mod timing;
mod transfer;
mod tuning;
mod unproven;
mod vulkan;
mod wait;
mod work;

pub use adapters::{adapters, adapters_of};
pub use consumer::WgpuConsumer;
pub use device::WgpuBackend;
pub use external::ResourceError;
pub(crate) use external::{GpuFrames, SubmitError};
pub use lane::WgpuLane;
pub use open_device::open_device;
pub use requirements::{Requirements, requirements};
pub use tensor::WgpuTensor;
pub use tuning::{CopyQueue, Gather, HostCache, KernelQueue, SlotReads, Tuning};
pub use vulkan::NoSecondQueue;
