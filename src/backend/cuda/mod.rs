//! CUDA, through cudarc, with the driver loaded at run time.
//!
//! [`adapters`] lists what there is; without a driver that is nothing, and [`CudaBackend::open`] says in one line what is missing.
//! [`CudaBackend::from_context`] takes an application's own context.
//!
//! # Streams
//!
//! A lane has two streams of its own, neither of which is the default stream: one copies, one runs kernels. Two device buffers
//! stand between them, so that the kernel of one batch runs while the next one is copied. Everything else is ordered by
//! events. Work of an application joins through [`CudaTensor::on_stream`].
//!
//! # Page-locked memory
//!
//! `pinned-ring` locks its slots once. `registered` locks the source's own memory in place ([`HostArena`](crate::HostArena) is memory to load a
//! data set into) and has the device gather the samples: see [`Gather`].

mod adapters;
mod device;
mod driver;
mod feed;
mod health;
mod kernel;
mod lane;
mod locks;
mod measure;
mod open;
mod staging;
mod submit;
mod tensor;
mod timing;

pub use adapters::adapters;
pub use device::{CudaBackend, Gather};
pub use lane::CudaLane;
pub use measure::KernelSpeed;
pub use tensor::{CudaTensor, OnStream};
