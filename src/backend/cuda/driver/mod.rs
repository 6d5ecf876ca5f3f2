//! What is asked of the CUDA driver, in calls that are safe to make. All of the backend's unsafe code is in this folder.
//!
//! Three facts carry the safety of asynchronous work here. Host memory that the device reads is owned by what waits for it:
//! a [`Copying`] or a [`RegisteredReader`]. Device memory is freed only when its context has nothing left to do. And every kernel is
//! launched by one typed function, which checks that what it touches lies inside the memory it is given.
//!
//! The chosen device's context is made current on the calling thread before every call: a thread that never did so would open a
//! context on the first device. That is done by [`context`] and not by cudarc, which would hand us the application's errors.

#![allow(unsafe_code)]

mod batch;
mod consume;
mod context;
mod copy;
mod device;
mod event;
mod launch;
mod limits;
mod memory;
mod normalize;
mod nvml;
mod pipeline;
mod reader;
mod register;
mod sums;

pub(super) use batch::BatchCopy;
pub(super) use consume::Consume;
pub(super) use context::{Stream, bind as make_current, probe, wait_for};
pub(super) use copy::{Copies, Copying, copy_on_device, download, upload, upload_list};
pub(super) use device::{Device, devices, of_context, start};
pub(super) use event::Event;
pub(super) use launch::Module;
pub(super) use limits::memlock;
pub(super) use memory::{DeviceMemory, Memory, PinKind};
pub(super) use normalize::{Affine, Gathered, Normalized, Shape};
pub(super) use nvml::Nvml;
pub(super) use pipeline::{PipelineLane, PipelinePlaces, PipelineVariant, Pipelined};
pub(super) use reader::RegisteredReader;
pub(super) use register::Registration;
pub(super) use sums::{Copied, Samples, Sums};

use cudarc::driver::DriverError;

/// What the driver reported, for people.
pub(super) fn explain(error: DriverError) -> String {
    let name = format!("{:?}", error.0);
    match error.error_string() {
        Ok(text) => format!("{name} ({})", text.to_string_lossy()),
        Err(_) => name,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// What cudarc's types offer that takes the errors of an application, records ours among them, or changes its context.
    const NOT_OURS: [&str; 6] =
        ["bind_to_thread", "check_err", "record_err", ".synchronize()", ".new_stream()", ".default_stream()"];

    fn check(folder: &Path) {
        for entry in fs::read_dir(folder).expect("the sources are here") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                check(&path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("it can be read");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let call = NOT_OURS.iter().find(|call| line.contains(**call));
                assert_eq!(call, None, "{}: {line}", path.display());
            }
        }
    }

    #[test]
    fn nothing_is_called_that_takes_the_errors_of_an_application() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backend/cuda"));
    }
}
