//! Host memory as a device: the reference every other backend is compared with, and what runs where there is no driver.
//!
//! Its one strategy is `memcpy`. Batches become [`HostTensor`]s in ordinary memory; normalisation runs on the CPU from tables
//! rounded once from f64. [`Faults`] make it slow down, fail or lose its device, and choose when each copy and each kernel ends,
//! so that programs can test how they take that.

mod adapters;
mod backend;
mod consumer;
mod faults;
mod kernel;
mod lane;
mod moments;
mod pipeline;
mod queue;
mod tensor;
mod timing;

pub use adapters::host_info;
pub use backend::HostBackend;
pub use consumer::HostConsumer;
pub use faults::Faults;
pub use lane::HostLane;
pub use moments::{Moments, Release};
pub use tensor::HostTensor;
