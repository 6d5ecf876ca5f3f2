//! gpufeed's own heap stands still in steady state: counted by the allocator, on the host backend.

#[path = "support/counting.rs"]
mod counting;

use std::sync::Arc;

use counting::{LARGE_BYTES, large_allocations, live};
use gpufeed::backend::host::HostBackend;
use gpufeed::source::random_images;
use gpufeed::{Loader, LoaderOptions, Normalize, SampleLayout};

/// Threads that are blocked in a channel hold a small allocation each.
fn near(one: i64, other: i64, allocations: i64) -> bool {
    (one - other).abs() <= allocations * LARGE_BYTES as i64
}

/// What is asserted of a loader with these options; its batches are read now and then.
fn stands_still(options: LoaderOptions) {
    let layout = SampleLayout::image(11, 7, 3).expect("a valid layout");
    let source = Arc::new(random_images(layout, 28, 1).expect("images"));
    let backend = HostBackend::new();
    let before = live();
    let mut loader = Loader::new(&backend, source.clone(), options).expect("the loader opens");
    let mut epochs = |count: u64| {
        for epoch in 0..count {
            loader.epoch(epoch).for_each(|batch| drop(batch.expect("memory can be read")));
        }
        // The last batches' messages may be on their way; asking the pump for anything puts us behind them.
        let memory = loader.memory().expect("the pump is there");
        (live(), large_allocations(), memory)
    };
    let (_, large, memory) = epochs(20);
    let (bytes, _, _) = epochs(1);
    let (bytes_later, large_later, memory_later) = epochs(1000);
    assert_eq!(memory, memory_later);
    assert_eq!(large, large_later, "nothing of a batch's size is allocated after warm-up");
    assert!(near(bytes_later, bytes, 8), "{bytes} bytes became {bytes_later}");
    drop(loader);
    let after = live();
    assert!(near(after, before, 4), "{before} bytes before, {after} after");
}

#[test]
fn the_heap_stands_still_over_a_thousand_epochs_and_is_given_back() {
    let options = LoaderOptions {
        batch_size: 8,
        workers: 3,
        seed: Some(5),
        preprocess: Normalize::imagenet().into(),
        fingerprints: true,
        ..LoaderOptions::default()
    };
    stands_still(options.clone());
    // One after the other: the whole process is counted.
    stands_still(LoaderOptions { ordered: false, stall_timeout: None, ..options });
}
