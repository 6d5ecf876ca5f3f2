//! Memory as Windows tells it.

#![allow(unsafe_code)] // GlobalMemoryStatusEx is a C function

use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};

pub(super) fn physical() -> Option<u64> {
    status().map(|status| status.ullTotalPhys)
}

pub(super) fn available() -> Option<u64> {
    status().map(|status| status.ullAvailPhys)
}

fn status() -> Option<MEMORYSTATUSEX> {
    // The function knows the struct by its length.
    let length = size_of::<MEMORYSTATUSEX>() as u32;
    let mut status = MEMORYSTATUSEX { dwLength: length, ..MEMORYSTATUSEX::default() };
    // SAFETY: the pointer is valid for writing one such struct, whose length is set.
    let told = unsafe { GlobalMemoryStatusEx(&raw mut status) };
    (told != 0).then_some(status)
}
