//! gpufeed's own heap stands still in steady state: counted by the allocator, on the host backend.

#![allow(unsafe_code)] // An allocator is unsafe by its nature.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use gpufeed::backend::host::HostBackend;
use gpufeed::source::random_images;
use gpufeed::{Loader, LoaderOptions, Normalize, SampleLayout};

/// The system's allocator, counted.
struct Counted;

static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);
static LARGE_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// A channel's blocking wait allocates less than this; anything that grows with a batch allocates more.
const LARGE: usize = 512;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE_BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        LARGE_ALLOCATIONS.fetch_add(u64::from(layout.size() >= LARGE), Ordering::Relaxed);
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller keeps GlobalAlloc's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

#[test]
fn the_heap_stands_still_over_epochs_and_is_given_back() {
    let layout = SampleLayout::image(31, 17, 3).expect("a valid layout");
    let source = Arc::new(random_images(layout, 200, 1).expect("images"));
    let backend = HostBackend::new();
    let before = LIVE_BYTES.load(Ordering::Relaxed);
    let options = LoaderOptions {
        batch_size: 8,
        workers: 3,
        seed: Some(5),
        preprocess: Normalize::imagenet().into(),
        fingerprints: true,
        ..LoaderOptions::default()
    };
    let mut loader = Loader::new(&backend, source.clone(), options).expect("the loader opens");
    let mut epochs = |count: u64| {
        for epoch in 0..count {
            loader.epoch(epoch).for_each(|batch| drop(batch.expect("memory can be read")));
        }
        // The last batches' messages may be on their way; asking the pump for anything puts us behind them.
        let memory = loader.memory().expect("the pump is there");
        (LIVE_BYTES.load(Ordering::Relaxed), LARGE_ALLOCATIONS.load(Ordering::Relaxed), memory)
    };
    let (_, large, memory) = epochs(20);
    let (live, _, _) = epochs(1);
    let (live_later, large_later, memory_later) = epochs(200);
    assert_eq!(memory, memory_later);
    assert_eq!(large, large_later, "nothing of a batch's size is allocated after warm-up");
    // Threads that are blocked in a channel at this moment hold a small allocation each.
    assert!((live_later - live).abs() <= 8 * LARGE as i64, "{live} bytes became {live_later}");
    drop(loader);
    let after = LIVE_BYTES.load(Ordering::Relaxed);
    assert!((after - before).abs() <= 4 * LARGE as i64, "{before} bytes before, {after} after");
}
