//! What is asked of the CUDA driver, in calls that are safe to make. All of the backend's unsafe code is in this folder.
//!
//! Three facts carry the safety of asynchronous work here. Host memory that the device reads is owned by what waits for it:
//! a [`Copying`] or a [`Direct`]. Device memory is freed only when its context has nothing left to do. And every kernel is
//! launched by one typed function, which checks that what it touches lies inside the memory it is given.
//!
//! The chosen device's context is bound to the calling thread before every call: a thread that never did so would open a
//! context on the first device.

#![allow(unsafe_code)]

mod batch;
mod copy;
mod device;
mod event;
mod launch;
mod limits;
mod memory;
mod normalize;
mod nvml;
mod register;
mod sums;

pub(super) use batch::BatchCopy;
pub(super) use copy::{Copies, Copying, download, upload, upload_words};
pub(super) use device::{Device, devices, of_context, start};
pub(super) use event::Event;
pub(super) use launch::Module;
pub(super) use limits::memlock;
pub(super) use memory::{DeviceMemory, Memory, PinKind};
pub(super) use normalize::{Affine, Gathered, Normalized, Shape};
pub(super) use nvml::Nvml;
pub(super) use register::{Direct, Registration};
pub(super) use sums::{Copied, Samples, Sums};

use cudarc::driver::DriverError;

/// What the driver said, in words.
pub(super) fn words(error: DriverError) -> String {
    let name = format!("{:?}", error.0);
    match error.error_string() {
        Ok(text) => format!("{name} ({})", text.to_string_lossy()),
        Err(_) => name,
    }
}
