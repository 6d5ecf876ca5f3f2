//! From the registry and `GetLogicalProcessorInformation`.

#![allow(unsafe_code)] // C functions that fill what they are given

use std::mem::size_of;
use std::ptr;

use windows_sys::Win32::Foundation::ERROR_SUCCESS;
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::Win32::System::SystemInformation::{
    GetLogicalProcessorInformation, RelationCache, SYSTEM_LOGICAL_PROCESSOR_INFORMATION as Entry,
};
use windows_sys::w;

/// Of the first processor.
pub fn name() -> Option<String> {
    const KEY: windows_sys::core::PCWSTR = w!("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0");
    let mut text = [0u16; 128];
    let mut bytes = size_of_val(&text) as u32;
    let (value, no_type) = (w!("ProcessorNameString"), ptr::null_mut());
    let room = text.as_mut_ptr().cast();
    // SAFETY: both names end with a zero, and at most `bytes` bytes are written to `text`, which has as many.
    let status = unsafe { RegGetValueW(HKEY_LOCAL_MACHINE, KEY, value, RRF_RT_REG_SZ, no_type, room, &raw mut bytes) };
    let units = text.iter().copied().take_while(|&unit| unit != 0);
    let name = char::decode_utf16(units).collect::<Result<String, _>>().ok()?.trim().to_owned();
    (status == ERROR_SUCCESS && !name.is_empty()).then_some(name)
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
