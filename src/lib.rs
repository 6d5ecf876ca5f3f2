//! gpufeed feeds batches to GPUs: what `pin_memory=True` is for CUDA users of PyTorch, for Vulkan, Metal, DX12 and GL, and CUDA.
//!
//! A [`Source`] of samples (memory, `.npy` files, folders and tar shards of images, or your own) is read by worker threads
//! straight into staging memory; one pump thread copies it to the device and turns u8 images into normalised float tensors
//! there; a [`Batch`] comes out whose tensor is ready for your next GPU work, without the CPU ever waiting for the GPU.
//!
//! ```
//! use std::sync::Arc;
//! use gpufeed::{LoaderOptions, Normalize, SampleLayout, source::random_images};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let images = Arc::new(random_images(SampleLayout::image(64, 64, 3)?, 256, 1)?);
//! let options = LoaderOptions {
//!     batch_size: 32,
//!     seed: Some(42),
//!     preprocess: Normalize::imagenet().into(),
//!     ..LoaderOptions::default()
//! };
//! let mut loader = gpufeed::open("auto", images, options)?;
//! for batch in loader.epoch(0) {
//!     let batch = batch?;
//!     assert_eq!(batch.shape(), [32, 3, 64, 64]);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Where to start
//!
//! - Whatever device is there: [`open`], as above.
//! - Your own `wgpu` device: [`WgpuBackend::from_device`](backend::wgpu::WgpuBackend::from_device) and [`Loader`]; ask
//!   [`requirements`](backend::wgpu::requirements) before creating the device.
//! - Camera frames, NV12 and BGRA with a pitch, letterboxes, random crops, quantised inputs: [`Pipeline`] instead of [`Normalize`].
//! - The strategy and the number of workers that are best here, measured at the start within two seconds: [`open_auto`], or
//!   [`measure::tune`].
//! - Frames and requests in place of a dataset: [`Feeder`], whose frames lie in memory, are written in place, or are on the GPU already;
//!   several streams of them in one batch: [`FrameBatcher`].
//! - Which staging strategy is fastest here, and why: the command `gpufeed compare`; `--compute` beside a device that computes.
//! - What of a transfer is hidden behind your own work, on which API, and how an application keeps it: `docs/overlap.md`.
//! - One process among several, started by torchrun, MPI or Slurm: [`Share::from_env`].
//!
//! # How it is built
//!
//! | module | holds | knows |
//! | --- | --- | --- |
//! | `strategy` | the names of the staging strategies | nothing else |
//! | [`error`] | errors | `strategy` |
//! | [`layout`] | sizes and alignment | `error` |
//! | [`memory`] | host memory that stays where it is, for devices to read | `error` |
//! | [`preprocess`] | parameters of normalisation and pipelines, the CPU oracles, fingerprints | `layout` |
//! | [`staging`] | who may write a slot and when it may be sent | `layout`, `error`, `memory` |
//! | [`backend`] | the contract with a device; host, wgpu and CUDA behind it | the above |
//! | [`source`] | where samples come from | `layout`, `memory`, `staging` |
//! | [`loader`] | workers, pump, epochs, batches | all of the above |
//! | [`measure`] | statistics, ceilings, the comparison, the automatic choice | all of the above |
//! | [`any`] | one loader type for whatever is there | all of the above |
//!
//! # Invariants
//!
//! 1. **Constant memory.** Staging, device and output bytes are fixed when a loader is made, in exact sizes, inside a budget you can
//!    set; only strategies that [allocate per batch](Strategy::allocates_per_batch) are exempt, since showing that cost is what they
//!    are for.
//! 2. **One copy at most on the CPU**, shared by several workers, each in its own region of the slot.
//! 3. **Staging is write-only in the type.** Reading write-combined memory is a hundred times slower than writing it.
//! 4. **Submitting consumes; the device gives back**, on every path: success, error, early drop, panic.
//! 5. **The consumer never waits on the CPU for the GPU** unless it asks to.
//! 6. **Same batches everywhere.** Seed, epoch, rank and world fix indices and bytes for any worker count, depth, strategy and backend;
//!    the permutation is computed, not stored, so that resuming costs nothing.
//! 7. **Errors keep their cause**, with sample index and stage; a worker's panic is an error; nothing ends an epoch in silence; every
//!    wait can be ended.
//! 8. **No silent fallback.** What was asked for runs, or [`Unsupported`] says why.
//! 9. **A number is shown only for verified bytes.**
//!
//! # Features
//!
//! `wgpu` (Vulkan, Metal, DX12, GL), `images` (folders and tar shards of images), `npy` (`.npy` files), `cli` (the command), `cuda` (loaded at run time); all on by default.

// WebGPU type-checks, so that it stays possible. Calls that would not work in a page are marked there.
#![cfg_attr(target_arch = "wasm32", allow(deprecated))]

#[cfg(all(target_arch = "wasm32", any(feature = "cuda", feature = "images", feature = "cli")))]
compile_error!(
    "on wasm32 there are no drivers, libraries or command: take `default-features = false, features = [\"wgpu\"]`"
);

pub mod any;
pub mod backend;
pub mod error;
pub mod layout;
pub mod loader;
pub mod measure;
pub mod memory;
pub mod preprocess;
pub mod source;
pub mod staging;
mod strategy;

/// The version of cudarc that this crate's types belong to.
#[cfg(feature = "cuda")]
pub use ::cudarc;
/// The version of wgpu that this crate's types belong to.
#[cfg(feature = "wgpu")]
pub use ::wgpu;

pub use any::{AnyBackend, AnyBatch, AnyEpoch, AnyEpochStream, AnyLoader, devices, open, open_auto};
pub use backend::{AdapterInfo, Api, Backend, DeviceType, Strategy};
pub use error::{DeviceError, LayoutError, LoadError, OpenError, PumpState, SourceError, Stage, Stall, Unsupported};
pub use layout::{
    BatchLayout, ChromaSiting, Element, Field, FrameLayout, ImageLayout, PixelFormat, Placement, SampleLayout, Scalar,
    Yuv, YuvMatrix, YuvRange,
};
pub use loader::{
    AsFrame, BadSamples, Batch, BatcherOptions, Canceller, Epoch, EpochStream, FeedError, Feeder, FeederOptions,
    FieldProblem, FillError, Frame, FrameBatch, FrameBatcher, FrameStream, FrameWriter, LastBatch, Loader,
    LoaderOptions, LoaderStats, Overflow, PushError, ResumeError, ResumeToken, Share, ShareError, Subset, Tolerance,
    Trace,
};
pub use measure::{AutoOptions, Tuned};
pub use memory::{HostArena, StableHostMemory};
pub use preprocess::{
    Anchor, ChannelOrder, Crop, Filter, Flip, FloatType, Geometry, Jitter, Mask, Normalize, Orientation, Pipeline,
    Preprocess, Quantization, Resize, TensorDesc, TensorLayout, TensorType,
};
#[cfg(feature = "npy")]
pub use source::NpySource;
#[cfg(feature = "images")]
pub use source::{FolderSource, TarSource};
pub use source::{MemorySource, SampleContext, Source, SyntheticSource};
pub use staging::{FieldWriter, SampleBuffer, SampleWriter};

/// The README's code is compiled and run with the tests.
#[cfg(all(doctest, feature = "wgpu"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// So is that of the page about overlap.
#[cfg(all(doctest, feature = "wgpu"))]
#[doc = include_str!("../docs/overlap.md")]
struct OverlapPage;
