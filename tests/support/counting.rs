//! The system's allocator, counted.

#![allow(unsafe_code)] // An allocator is unsafe by its nature.
#![allow(dead_code)] // Not every test asks for every count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

struct Counted;

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
static LARGE: AtomicU64 = AtomicU64::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// A channel's blocking wait allocates less than this; anything that grows with a batch allocates more.
pub const LARGE_BYTES: usize = 512;

/// Bytes allocated and not freed.
pub fn live() -> i64 {
    LIVE.load(Relaxed)
}

/// Allocations of [`LARGE_BYTES`] and more so far.
pub fn large_allocations() -> u64 {
    LARGE.load(Relaxed)
}

/// The most bytes that were live beyond those before, and the largest single request, while `work` ran; by all threads.
pub fn peak<R>(work: impl FnOnce() -> R) -> (R, i64, usize) {
    let before = live();
    PEAK.store(before, Relaxed);
    LARGEST.store(0, Relaxed);
    let result = work();
    (result, PEAK.load(Relaxed) - before, LARGEST.load(Relaxed))
}

fn count(bytes: usize) {
    let live = LIVE.fetch_add(bytes as i64, Relaxed) + bytes as i64;
    PEAK.fetch_max(live, Relaxed);
    LARGEST.fetch_max(bytes, Relaxed);
    LARGE.fetch_add(u64::from(bytes >= LARGE_BYTES), Relaxed);
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        LIVE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;
