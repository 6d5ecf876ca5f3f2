//! Buffers and textures of the application's: what frames are read from, and what tensors are written into.
//!
//! Everything is checked before anything is recorded. What cannot be asked of wgpu (whether a buffer is of this device, destroyed or
//! mapped) shows in the error scope in which the work is recorded and submitted, and nothing is sent then.

mod error;
mod slotless;
mod source;
mod target;
mod texture;

pub use error::ResourceError;
pub(crate) use error::SubmitError;
pub(super) use slotless::Slotless;
pub(crate) use source::GpuFrames;
