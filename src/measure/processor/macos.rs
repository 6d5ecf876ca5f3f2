//! From sysinfo and sysctl.

#![allow(unsafe_code)] // sysctlbyname is a C function

use std::ffi::CStr;
use std::ptr;

pub fn name() -> Option<String> {
    let processor = sysinfo::RefreshKind::nothing().with_cpu(sysinfo::CpuRefreshKind::nothing());
    let system = sysinfo::System::new_with_specifics(processor);
    let name = system.cpus().first()?.brand().trim().to_owned();
    Some(name).filter(|name| !name.is_empty())
}

/// The level-3 cache of Intel's processors, the level-2 cache that Apple's fast cores share.
pub fn largest_cache() -> Option<u64> {
    [c"hw.l3cachesize", c"hw.perflevel0.l2cachesize", c"hw.l2cachesize"].into_iter().filter_map(number).max()
}

/// A number of four or eight bytes.
fn number(name: &CStr) -> Option<u64> {
    let (mut value, mut len) = ([0u8; 8], 8usize);
    // SAFETY: the name ends with a zero, and at most `len` bytes are written to `value`, which has as many.
    let status =
        unsafe { libc::sysctlbyname(name.as_ptr(), value.as_mut_ptr().cast(), &raw mut len, ptr::null_mut(), 0) };
    // Apple's processors are little-endian: of a shorter number the upper bytes stay zero.
    (status == 0).then(|| u64::from_le_bytes(value)).filter(|&bytes| bytes > 0)
}
