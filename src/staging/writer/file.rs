//! One positioned read by raw pointer: those of the standard library want a `&mut [u8]`, which memory that must not be read cannot be.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// Reads at most `most` bytes of `file` at `offset`; none at its end.
///
/// # Safety
/// `to` is valid for writes of `most` bytes.
#[cfg(unix)]
pub(super) unsafe fn read_some(file: &File, offset: u64, to: NonNull<u8>, most: usize) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    // `off_t` ends at 2 GiB on their 32-bit systems; on the others it is as wide as a file.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    use libc::{off_t, pread};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    use libc::{off64_t as off_t, pread64 as pread};
    let offset = off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    loop {
        // SAFETY: the caller's promise; the descriptor is open as long as `file` is borrowed.
        let read = unsafe { pread(file.as_raw_fd(), to.as_ptr().cast(), most, offset) };
        match usize::try_from(read) {
            Ok(read) => return Ok(read),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// As on Unix. The file's own position moves along, as in the standard library's `seek_read`.
///
/// # Safety
/// `to` is valid for writes of `most` bytes.
#[cfg(windows)]
pub(super) unsafe fn read_some(file: &File, offset: u64, to: NonNull<u8>, most: usize) -> io::Result<usize> {
    use std::os::windows::io::AsRawHandle;
    use windows_sys::Win32::Foundation::{ERROR_HANDLE_EOF, ERROR_IO_INCOMPLETE, ERROR_IO_PENDING, GetLastError};
    use windows_sys::Win32::Storage::FileSystem::ReadFile;
    use windows_sys::Win32::System::IO::{GetOverlappedResult, OVERLAPPED};

    let handle = file.as_raw_handle();
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let (mut read, mut overlapped) = (0, OVERLAPPED::default());
    overlapped.Anonymous.Anonymous.Offset = offset as u32;
    overlapped.Anonymous.Anonymous.OffsetHigh = (offset >> 32) as u32;
    // SAFETY: the caller's promise; the handle is open as long as `file` is borrowed. `overlapped` stays where it is until the read has
    // ended, which for a handle opened for overlapped reads is waited for below.
    let mut done = unsafe { ReadFile(handle, to.as_ptr(), most, &raw mut read, &raw mut overlapped) } != 0;
    loop {
        if done {
            return Ok(read as usize);
        }
        // SAFETY: asks for the thread's last error.
        match unsafe { GetLastError() } {
            ERROR_HANDLE_EOF => return Ok(0),
            // Another read through the same handle may end the wait before this one has ended.
            ERROR_IO_PENDING | ERROR_IO_INCOMPLETE => {
                // SAFETY: the read that was begun above with this `overlapped`.
                done = unsafe { GetOverlappedResult(handle, &raw const overlapped, &raw mut read, 1) } != 0;
            }
            error => return Err(io::Error::from_raw_os_error(error as i32)),
        }
    }
}

/// Other systems read files through what is shared by all who read them.
///
/// # Safety
/// None is needed here.
#[cfg(not(any(unix, windows)))]
pub(super) unsafe fn read_some(_: &File, _: u64, _: NonNull<u8>, _: usize) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no reads at a position"))
}
