//! Copies past the CPU's caches.
//!
//! An ordinary store first fetches the cache line that it is about to overwrite. Where the CPU does not read the memory again (a
//! device does), that is a third of all memory traffic for nothing, and it throws other data out of the cache.

#![allow(unsafe_code)]

use std::ptr::NonNull;

/// Below this, what is written is likely to be still in the cache when the device's read snoops it.
#[cfg(target_arch = "x86_64")]
const SMALLEST: usize = 4 << 10;

/// Copies `from` to `to`, past the caches where the processor can and it is worth while. The stores are ordered only by the fence
/// that ends a region.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes and does not overlap `from`.
pub(super) unsafe fn copy(from: &[u8], to: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    if from.len() >= SMALLEST && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the caller's promise, and AVX is there.
        unsafe { copy_avx(from, to) };
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(NonNull::from(from).cast(), from.len()) };
}

/// # Safety
/// As [`copy`]; the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_avx(from: &[u8], to: NonNull<u8>) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};

    const LINE: usize = 64;
    // Up to the first whole line of the destination, and behind the last one, ordinary stores.
    let head = to.as_ptr().align_offset(LINE).min(from.len());
    let lines = (from.len() - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: the caller's promise; `head` is at most the length.
    unsafe { to.copy_from_nonoverlapping(NonNull::from(from).cast(), head) };
    for line in (head..tail).step_by(LINE) {
        // SAFETY: `line + LINE <= tail <= from.len()`.
        let source = unsafe { from.as_ptr().add(line) }.cast::<__m256i>();
        // SAFETY: as above, within the destination.
        let target = unsafe { to.as_ptr().add(line) }.cast::<__m256i>();
        // SAFETY: 32 bytes at `source` are within the slice; the load needs no alignment.
        let low = unsafe { _mm256_loadu_si256(source) };
        // SAFETY: the line is 64 bytes, so the second half is within the slice too.
        let upper = unsafe { source.add(1) };
        // SAFETY: as above.
        let high = unsafe { _mm256_loadu_si256(upper) };
        // SAFETY: `target` is a whole line of the destination, aligned to 64 bytes.
        unsafe { _mm256_stream_si256(target, low) };
        // SAFETY: as above, the line's second half.
        let upper = unsafe { target.add(1) };
        // SAFETY: as above.
        unsafe { _mm256_stream_si256(upper, high) };
    }
    let rest = &from[tail..];
    // SAFETY: `tail` is at most the length, so the rest is within the destination.
    let end = unsafe { to.add(tail) };
    // SAFETY: as above.
    unsafe { end.copy_from_nonoverlapping(NonNull::from(rest).cast(), rest.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_at_any_offset_is_copied_whole_and_nothing_beside_it() {
        let from: Vec<u8> = (0..9000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for len in [0, 1, 63, 4095, 4096, 4097, 8000, 8191] {
            for offset in [0, 1, 31, 32, 63] {
                let mut to = vec![0xEE; 8300];
                let at = NonNull::from(&mut to[offset..]).cast();
                // SAFETY: 8300 - 63 bytes are more than any of the lengths.
                unsafe { copy(&from[offset..][..len], at) };
                assert_eq!(to[offset..offset + len], from[offset..offset + len], "{len} bytes at {offset}");
                assert!(to[..offset].iter().chain(&to[offset + len..]).all(|&byte| byte == 0xEE));
            }
        }
    }
}
