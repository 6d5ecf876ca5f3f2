//! CUDA, through cudarc, with the driver loaded at run time.
//!
//! [`adapters`] lists what there is; without a driver that is nothing, and [`CudaBackend::open`] says in one line what is missing.
//! [`CudaBackend::from_context`] takes an application's own context.
//!
//! # Streams
//!
//! A lane has two streams of its own, neither of which is the default stream: one copies, one runs kernels. Two device buffers
//! stand between them, so that the kernel of one batch runs while the next one is copied. Everything else is ordered by
//! events. Work of an application joins through [`CudaTensor::on_stream`]: its stream waits for the batch it uses and for no other, and
//! the next batch in the same tensor waits for its work. A loader takes tensors that are idle first, so that there is nothing to wait for
//! and copies run beside the application's kernels. So do the kernels, in parts that let an application's in between: see [`Tuning`].
//!
//! # Errors of others
//!
//! A context may be shared. What an application's own calls have done wrong stays in the context for the application to find; a device is
//! lost when it says so itself, and not before.
//!
//! # Page-locked memory
//!
//! `pinned-ring` locks its slots once. `registered` locks the source's own memory in place ([`HostArena`](crate::HostArena) is memory to load a
//! data set into) and has the device gather the samples: see [`GatherMethod`].

mod adapters;
mod backend;
mod consumer;
mod device;
mod driver;
mod health;
mod kernel;
mod lane;
mod locks;
mod measure;
mod open;
mod pipeline;
mod staging;
mod submit;
mod tensor;
mod timing;
mod tuning;
mod uses;

pub use adapters::adapters;
pub use consumer::CudaConsumer;
pub use device::{CudaBackend, GatherMethod};
pub use lane::CudaLane;
pub use measure::KernelSpeed;
pub use tensor::{CudaTensor, OnStream};
pub use tuning::{KernelPriority, Tuning};
