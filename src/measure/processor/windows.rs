//! From `GetLogicalProcessorInformation`.

#![allow(unsafe_code)] // a C function that fills a table

use std::mem::size_of;
use std::ptr;

use windows_sys::Win32::System::SystemInformation::{
    GetLogicalProcessorInformation, RelationCache, SYSTEM_LOGICAL_PROCESSOR_INFORMATION as Entry,
};

pub fn name() -> Option<String> {
    super::name_by_sysinfo()
}

/// Of the caches in the processor group of this thread.
pub fn largest_cache() -> Option<u64> {
    let caches = table()?;
    let sizes = caches.iter().filter(|entry| entry.Relationship == RelationCache).map(|entry| {
        // SAFETY: the relationship says that the union holds a cache.
        let cache = unsafe { entry.Anonymous.Cache };
        u64::from(cache.Size)
    });
    sizes.max().filter(|&bytes| bytes > 0)
}

fn table() -> Option<Vec<Entry>> {
    let mut bytes = 0u32;
    // SAFETY: without a table only the number of bytes is written.
    unsafe { GetLogicalProcessorInformation(ptr::null_mut(), &raw mut bytes) };
    let entries = (bytes as usize).div_ceil(size_of::<Entry>());
    let mut table: Vec<Entry> = Vec::with_capacity(entries);
    // SAFETY: the table has room for `bytes` bytes, and no more are written.
    let told = unsafe { GetLogicalProcessorInformation(table.as_mut_ptr(), &raw mut bytes) };
    if told == 0 {
        return None;
    }
    // SAFETY: the call has filled `bytes` bytes, in whole entries, which are no more than there is room for.
    unsafe { table.set_len(bytes as usize / size_of::<Entry>()) };
    Some(table)
}
